"""The page's server ends when it is asked to, whatever it is doing."""

import signal
import subprocess
import sys
import time
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from report import comparisons

SLOW = """
import sys, time
from pathlib import Path
import webdyno.interfaces.ui.runs

def judge(*_):
    Path("judging").touch()
    time.sleep(600)

webdyno.interfaces.ui.runs.see = judge
from webdyno.interfaces.cli import main
sys.argv = ["webdyno", "ui", "."]
main()
"""


@pytest.mark.timeout(90)
def test_a_run_whose_judging_never_ends_keeps_nobody_from_leaving(tmp_path: Path) -> None:
    comparisons.decided().stored(tmp_path / "slow")
    with subprocess.Popen(
        [sys.executable, "-c", SLOW], stdout=subprocess.PIPE, text=True, cwd=tmp_path
    ) as process:
        try:
            assert process.stdout is not None
            address = urlsplit(process.stdout.readline().strip())
            with closing(HTTPConnection(address.netloc)) as connection:
                connection.request("GET", f"{address.path}verdict/slow")
                while not (tmp_path / "judging").exists():
                    time.sleep(0.05)
                process.send_signal(signal.SIGINT)
                assert process.wait(60) == 130
        finally:
            process.kill()
