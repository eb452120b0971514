"""Commands of the catalogue: as the servers' user, under a warden, and to their end."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from waiting import wait_until
from webdyno.host.server_process import PLAIN_ENVIRONMENT
from webdyno.host.this_machine import Testbed
from webdyno.host.users import uid_of
from webdyno.host.workspace import Workspace
from webdyno.servers.output import CommandError, run_checked, version_output


def run(script: str) -> None:
    testbed = Testbed()
    with Workspace() as workspace:
        run_checked(
            ["sh", "-c", script],
            cwd=workspace.path,
            environment=PLAIN_ENVIRONMENT,
            testbed=testbed,
            workspace=workspace,
        )


def test_its_own_words_are_reported_when_it_fails() -> None:
    run("true")
    with pytest.raises(CommandError, match=r"^    the reason$"):
        run("echo the reason; exit 3")


def test_a_version_is_asked_for_as_the_servers_user() -> None:
    testbed = Testbed()
    with Workspace() as workspace:
        words = ["sh", "-c", "id -u; echo whatever the exit code; exit 1"]
        said = version_output(words, testbed, workspace)
    assert said == f"{uid_of(testbed.user)}\nwhatever the exit code\n"


DRIVER = """
import sys
from webdyno.host.server_process import PLAIN_ENVIRONMENT
from webdyno.host.this_machine import Testbed
from webdyno.host.workspace import (Workspace)
from webdyno.servers.output import run_checked
testbed = Testbed()
with Workspace() as workspace:
    run_checked(
        ["sh", "-c", f"(sleep 87654 &); echo up > {sys.argv[1]}; sleep 87654"],
        cwd=workspace.path, environment=PLAIN_ENVIRONMENT, testbed=testbed, workspace=workspace,
    )
"""


def test_no_command_outlives_a_killed_webdyno(open_folder: Path) -> None:
    open_folder.chmod(0o1777)
    up = open_folder / "up"
    driver = subprocess.Popen([sys.executable, "-c", DRIVER, str(up)])
    wait_until(up.exists)
    family = psutil.Process(driver.pid).children(recursive=True)
    assert len(family) >= 3
    os.kill(driver.pid, signal.SIGKILL)
    driver.wait()
    _, left = psutil.wait_procs(family, timeout=60)
    assert left == []
