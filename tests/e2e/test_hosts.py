"""The hosts that the tests of the cluster make."""

import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from e2e.hosts import own_temporary_folder


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts take root")
def test_a_checkout_below_the_temporary_folder_stays_visible_on_a_host() -> None:
    with tempfile.TemporaryDirectory(prefix="a checkout ", dir="/tmp") as name:
        checkout, other = Path(name) / "webdyno", Path(name) / "other"
        checkout.mkdir()
        (checkout / "program").write_text("here")
        other.write_text("")
        script = (
            f'{own_temporary_folder(checkout)} cat "$0"/program; test ! -e "$1"; stat -c %a /tmp'
        )
        words = ("unshare", "--mount", "sh", "-ec", script, checkout, other)
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split()) == (0, ["here1777"]), done.stderr
