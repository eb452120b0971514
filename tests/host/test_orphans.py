"""What a program leaves running is ended, also in sessions of its own."""

import os
import subprocess

import psutil

from webdyno.host.orphans import no_orphans

LEAVES = "setsid sleep 600 >/dev/null 2>&1 & echo $!"


def test_nothing_of_a_program_goes_on() -> None:
    own = subprocess.Popen(["sleep", "600"])
    try:
        with no_orphans():
            left = int(subprocess.run(["sh", "-c", LEAVES], capture_output=True, check=True).stdout)
            assert psutil.pid_exists(left)
        assert not psutil.pid_exists(left)
        assert os.waitpid(own.pid, os.WNOHANG) == (0, 0)
    finally:
        own.kill()
        own.wait()
