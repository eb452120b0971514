"""Servers under a warden: whatever happens to webdyno, nothing of them is left."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from waiting import wait_until
from webdyno.core.errors import OperationError
from webdyno.host import warden
from webdyno.host.children import in_session
from webdyno.host.server_process import ServerProcess
from webdyno.host.this_machine import Testbed
from webdyno.host.workspace import Workspace

ENVIRONMENT = {"PATH": "/usr/bin:/bin"}

STUBBORN = """
trap '' TERM
(setsid sh -c 'echo up; exec sleep 600' &)
echo up
exec sleep 600
"""
"""A server that ignores its stop signal and has a daemon for a grandchild."""


@pytest.fixture
def workspace() -> Iterator[Workspace]:
    made = Workspace()
    yield made
    made.remove()


def spawn(workspace: Workspace, tmp_path: Path, *argv: str, grace_s: float = 5.0) -> ServerProcess:
    return Testbed().spawn(
        argv,
        cwd=workspace.path,
        env=ENVIRONMENT,
        log=tmp_path / "log",
        workspace=workspace,
        stop_within_s=grace_s,
    )


def test_a_server_is_pinned_in_its_own_session_and_unprivileged(
    workspace: Workspace, tmp_path: Path
) -> None:
    testbed = Testbed()
    process = spawn(workspace, tmp_path, "sleep", "600")
    try:
        server = psutil.Process(process.pid)
        wait_until(lambda: server.name() == "sleep")
        assert server.cpu_affinity() == testbed.split.servers
        assert os.getsid(process.pid) not in {os.getsid(0), os.getsid(process.warden_pid)}
        assert server.uids().real == (testbed.user.uid if testbed.user else os.getuid())
        assert os.geteuid() != 0 or server.uids().effective != 0
    finally:
        process.stop()
    assert not psutil.pid_exists(process.pid)


def test_a_catalogue_has_no_say_in_what_root_runs(workspace: Workspace, tmp_path: Path) -> None:
    """With LD_PRELOAD or the like it could put code of its own into a warden."""
    process = Testbed().spawn(
        ["sleep", "600"],
        cwd=workspace.path,
        env=ENVIRONMENT | {"LD_WHATEVER": "of the catalog"},
        log=tmp_path / "log",
        workspace=workspace,
    )
    try:
        server, warden = psutil.Process(process.pid), psutil.Process(process.warden_pid)
        wait_until(lambda: server.name() == "sleep")
        assert server.environ() == ENVIRONMENT | {"LD_WHATEVER": "of the catalog"}
        assert "LD_WHATEVER" not in warden.environ()
        assert "of the catalog" not in " ".join(warden.cmdline())
    finally:
        process.stop()


def test_stopping_is_graceful_first(workspace: Workspace, tmp_path: Path) -> None:
    script = "trap 'echo goodbye; exit 7' TERM; echo up; while :; do sleep 0.01; done"
    process = spawn(workspace, tmp_path, "sh", "-c", script)
    wait_until(lambda: "up" in (tmp_path / "log").read_text())
    process.stop()
    assert "goodbye" in (tmp_path / "log").read_text()
    assert process.poll() == 7


def test_a_log_has_a_limit_and_says_so(workspace: Workspace, tmp_path: Path) -> None:
    script = "echo first; yes line | head -c 40000000; echo last; sleep 600"
    log = tmp_path / "log"
    for start in (1, 2):
        process = spawn(workspace, tmp_path, "sh", "-c", script)
        wait_until(lambda: log.read_bytes().count(b"last\n") == start)  # noqa: B023 (waited for)
        process.stop()
    lines = log.read_text().splitlines()
    assert log.stat().st_size < 2 * warden.MOST_LOG_BYTES
    assert (lines[0], lines[-1]) == ("first", "last")
    assert lines.count("first") == 2
    (*_, cut) = (line for line in lines if line.startswith("[webdyno cut "))
    assert int(cut.split()[2]) > 20_000_000


def test_the_stubborn_are_killed_with_their_orphans(workspace: Workspace, tmp_path: Path) -> None:
    process = spawn(workspace, tmp_path, "sh", "-c", STUBBORN, grace_s=0.1)
    wait_until(lambda: (tmp_path / "log").read_text().count("up") == 2)
    pids = process.pids()
    assert len(pids) == 2
    process.stop()
    assert not any(psutil.pid_exists(pid) for pid in pids)
    assert process.poll() == 128 + signal.SIGKILL


def test_a_servers_own_end_is_noticed(workspace: Workspace, tmp_path: Path) -> None:
    process = spawn(workspace, tmp_path, "sh", "-c", "echo last words; exit 3")
    wait_until(lambda: process.poll() is not None)
    assert process.poll() == 3
    assert (tmp_path / "log").read_text() == "last words\n"
    process.stop()


@pytest.mark.parametrize(
    ("script", "within_s", "code"), [("exit 3", 60.0, 3), ("sleep 600 & sleep 600", 0.1, None)]
)
def test_nothing_of_a_command_is_left_when_its_run_is_over(
    workspace: Workspace, tmp_path: Path, script: str, within_s: float, code: int | None
) -> None:
    before = psutil.Process().children(recursive=True)
    ended = Testbed().run(
        ["sh", "-c", script],
        cwd=workspace.path,
        env=ENVIRONMENT,
        log=tmp_path / "log",
        workspace=workspace,
        within_s=within_s,
    )
    assert ended == code
    assert psutil.Process().children(recursive=True) == before


def test_a_program_that_is_not_there(workspace: Workspace, tmp_path: Path) -> None:
    process = spawn(workspace, tmp_path, "/no/such/program")
    wait_until(lambda: process.poll() is not None)
    assert "No such file" in (tmp_path / "log").read_text()
    process.stop()


@pytest.mark.skipif(os.geteuid() != 0, reason="root alone starts programs as somebody else")
def test_nobody_stands_where_he_cant_get_by_himself(workspace: Workspace, tmp_path: Path) -> None:
    """A folder inside of one that is closed to him: root could have put him there."""
    tmp_path.chmod(0o700)
    (inside := tmp_path / "inside").mkdir()
    log, testbed = tmp_path / "log", Testbed()
    code = testbed.run(
        ["cat", "."], cwd=inside, env=ENVIRONMENT, log=log, workspace=workspace, within_s=60.0
    )
    assert code == 127
    assert re.search(r"can't start cat: \S+, as whom .*may not enter the folder /", log.read_text())
    said = tmp_path / "said"
    with (
        said.open("wb") as output,
        in_session(["pwd"], output=output, user=testbed.user, folder=inside) as process,
    ):
        assert process.wait() != 0
    assert f"'{inside}': Permission denied" in said.read_text()


DRIVER = f"""
import sys, time
from pathlib import Path
from webdyno.host.this_machine import Testbed
from webdyno.host.workspace import (Workspace)
testbed = Testbed()
workspace = Workspace()
process = testbed.spawn(
    ["sh", "-c", {STUBBORN!r}], cwd=workspace.path, env={ENVIRONMENT!r},
    log=Path(sys.argv[1]), workspace=workspace, stop_within_s=0.1,
)
print(process.pid, process.warden_pid, workspace.path, flush=True)
time.sleep(60)
"""


def start_driver(script: str, log: Path) -> tuple[subprocess.Popen[str], int, int, Path]:
    driver = subprocess.Popen(
        [sys.executable, "-c", script, str(log)], stdout=subprocess.PIPE, text=True
    )
    assert driver.stdout is not None
    with driver.stdout:
        pid, warden_pid, workspace = driver.stdout.readline().split()
    wait_until(lambda: log.read_text().count("up") == 2)
    return driver, int(pid), int(warden_pid), Path(workspace)


def test_kill_9_leaves_nothing(tmp_path: Path) -> None:
    driver, _, warden_pid, workspace = start_driver(DRIVER, tmp_path / "log")
    warden = psutil.Process(warden_pid)
    family = [warden, *warden.children(recursive=True)]
    assert len(family) == 3
    driver.kill()
    driver.wait()
    wait_until(lambda: not any(process.is_running() for process in family))
    assert not workspace.exists()


def test_the_kernel_stops_the_server_when_the_warden_is_killed_too(tmp_path: Path) -> None:
    polite = DRIVER.replace("trap", ":")
    driver, pid, warden_pid, _ = start_driver(polite, tmp_path / "log")
    server = psutil.Process(pid)
    daemons = [p for p in psutil.Process(warden_pid).children(recursive=True) if p != server]
    driver.kill()
    os.kill(warden_pid, signal.SIGKILL)
    driver.wait()
    wait_until(lambda: not server.is_running())
    # What left its server's care can only be found by a control group, as the next workspace does,
    # which may be another test's.
    for daemon in daemons:
        with suppress(psutil.NoSuchProcess):
            daemon.kill()


def test_the_next_workspace_sweeps_away_what_was_left() -> None:
    script = (
        "import os, signal; from webdyno.host.workspace import Workspace; w = Workspace();"
        "print(w.path, flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    left = Path(done.stdout.decode().strip())
    assert left.name
    mine = Workspace()
    assert not left.exists()
    other = Workspace()
    assert mine.path.exists()
    other.remove()
    mine.remove()


def test_a_warden_that_does_not_answer_is_a_trouble(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("webdyno.host.warden.__file__", "/no/such/warden.py")
    with pytest.raises(OperationError, match="could not be started"):
        spawn(workspace, tmp_path, "sleep", "600")
