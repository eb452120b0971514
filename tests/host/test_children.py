"""Programs are run in one way; what they leave running is ended, also in other sessions."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil
import pytest

from waiting import wait_until
from webdyno.core.errors import OperationError
from webdyno.host.children import (
    ending_with_us,
    in_session,
    interrupt,
    must,
    no_orphans,
    run_program,
)

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


def test_a_program_is_run_to_its_end() -> None:
    done = run_program(["sh", "-c", "cat; echo gone >&2; exit 3"], within_s=10, given="said")
    assert (done.returncode, done.stdout, done.stderr) == (3, "said", "gone\n")
    with pytest.raises(OperationError, match=r"^it failed: gone$"):
        must(done, "it failed")


def test_what_keeps_a_program_from_its_end_is_reported(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no program")
    for words, said in (
        (["no-such-program"], "^there is no program no-such-program; install it$"),
        ([tmp_path / "text"], "text can't be started: Permission denied"),
        (["sleep", "60"], "^sleep did not end within 0.1 s$"),
    ):
        with pytest.raises(OperationError, match=said):
            run_program(words, within_s=0.1)
    with pytest.raises(OperationError, match=r"^get it$"):
        run_program(["no-such-program"], within_s=1, install="get it")


def test_a_session_ends_with_all_that_is_in_it() -> None:
    with tempfile.TemporaryFile() as said:
        with in_session(["sh", "-c", "sleep 600 & echo $!"], output=said) as process:
            assert process.wait(10) == 0
            said.seek(0)
            left = psutil.Process(int(said.read()))
        left.wait(10)


def test_who_minds_no_interruption_is_killed() -> None:
    deaf = (
        "import signal, time; signal.signal(2, signal.SIG_IGN); print(flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", deaf], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        interrupt(process, 0.1)
    assert process.returncode == -signal.SIGKILL


def test_a_child_ends_with_its_parent() -> None:
    words = [*ending_with_us("KILL"), "sh", "-c", "echo $$; exec sleep 600"]
    parent = f"import subprocess; subprocess.Popen({words}); input()"
    with subprocess.Popen(
        [sys.executable, "-c", parent], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        child = psutil.Process(int(process.stdout.readline()))
        process.kill()
    psutil.wait_procs([child], 10)
    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE


def test_a_program_that_is_run_ends_with_us(tmp_path: Path) -> None:
    """Such as a pull of an image, which takes minutes."""
    file = tmp_path / "pid"
    line = f"echo $$ >{file}; exec sleep 600"
    runs = f"run_program({['sh', '-c', line]}, within_s=None)"
    program = f"from webdyno.host.children import run_program; {runs}"
    with subprocess.Popen([sys.executable, "-c", program]) as process:
        wait_until(lambda: file.exists() and bool(file.read_text()))
        process.kill()
    pid = int(file.read_text())
    wait_until(lambda: not psutil.pid_exists(pid) or psutil.Process(pid).status() == "zombie")
