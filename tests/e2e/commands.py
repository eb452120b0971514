"""Helpers for tests that type what users type, and look for what is left behind."""

import atexit
import hashlib
import io
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from random import Random, SystemRandom

import pytest

from e2e import forked
from e2e.forked import Forked
from waiting import what_stays
from webdyno.core.records import SlotRecord
from webdyno.interfaces.cli import run_command_line
from webdyno.measure.folder import RunFolder

WEBDYNO = Path(sys.executable).parent / "webdyno"
QUICK = (
    "--set=measure.slot_s=0.1",
    "--set=measure.warmup_s=0",
    "--set=measure.slots_per_variant=2",
    "--set=measure.budget_s=1s",
)
"""Makes a run as short as the method allows: six rounds of four short slots."""
FEW = ("--set=load.connections=4", "--set=load.count=40", "--set=measure.slot_s=60", *QUICK[1:])
"""Does it with as few connections and requests as a small server of Python stands, however long
they take on a busy machine."""
PATIENCE_S = 120
INTERRUPTED = 130


def webdyno(
    *arguments: str, folder: Path, within_s: float = PATIENCE_S
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end in a folder that also holds all of its temporary files.

    Without the report unless it is asked for: drawing it takes as long as some of these runs.
    """
    draws = bool({"run", "compare", "gate", "resume"}.intersection(arguments[:1]))
    quicker = ["--no-report"] * (draws and "--report" not in arguments)
    words = [str(WEBDYNO), *arguments, *quicker]
    return forked.run(words, cwd=folder, env=environment(folder), timeout=within_s)


def webdyno_here(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command that starts nothing, such as one that is refused, without a process of its own.

    What a start costs is then spent once. Processes are shown by `webdyno`, in each file.
    """
    output, errors = io.StringIO(), io.StringIO()
    with (
        chdir(folder),
        pytest.MonkeyPatch.context() as patch,
        redirect_stdout(output),
        redirect_stderr(errors),
    ):
        for name, value in environment(folder).items():
            patch.setenv(name, value)
        try:
            code = run_command_line(arguments)
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
    return subprocess.CompletedProcess(arguments, code, output.getvalue(), errors.getvalue())


@contextmanager
def started_webdyno(*arguments: str, folder: Path) -> Iterator[Forked]:
    """Start a command that the test will end, in a session of its own as a terminal gives it."""
    with Forked([str(WEBDYNO), *arguments], cwd=folder, env=environment(folder)) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def next_to(work: Callable[[threading.Event], None]) -> Iterator[None]:
    """Let a thread work until it is reported that it is enough."""
    enough = threading.Event()
    thread = threading.Thread(target=work, args=(enough,))
    thread.start()
    try:
        yield
    finally:
        enough.set()
        thread.join()


def run_rounds(rounds: int, *arguments: str, folder: Path) -> str:
    """Press Ctrl-C when the run in `folder`/run has so many rounds; give what webdyno printed.

    For what one round shows as well as a whole run; a verdict needs the run's own end.
    """
    quicker = ["--no-report"] * ("resume" not in arguments[:1])
    with started_webdyno(*arguments, "--output=run", *quicker, folder=folder) as process:
        _wait_for_rounds(rounds, folder / "run/slots.jsonl", process)
        process.send_signal(signal.SIGINT)
        reported, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == INTERRUPTED, reported
    assert left_behind(folder) == []
    return reported


def _wait_for_rounds(rounds: int, path: Path, process: Forked) -> None:
    """Wait until a round is going on after so many ended ones, or the run has ended without it.

    Not only until they have ended: Python loses a Ctrl-C that comes while it destroys objects, as
    at the end of a round.
    """
    deadline = time.monotonic() + PATIENCE_S
    while process.poll() is None and time.monotonic() < deadline:
        with suppress(FileNotFoundError):
            *_, going_on = parts = path.read_bytes().split(b'{"kind":"round"')
            if len(parts) > rounds and going_on.count(b"\n") > 1:
                return
        time.sleep(0.02)


def environment(folder: Path) -> dict[str, str]:
    """Keep temporary files inside the test's folder, by which `left_behind` knows processes."""
    # Servers run as another user, who must be able to get there.
    for parent in (folder, *folder.parents):
        with suppress(PermissionError):
            if not parent.stat().st_mode & 0o001:
                parent.chmod(parent.stat().st_mode | 0o011)
    return {
        "XDG_STATE_HOME": str(scratch(folder) / "state"),
        "XDG_CACHE_HOME": str(scratch(folder) / "cache"),
        **os.environ,
        "TMPDIR": str(scratch(folder)),
        "COLUMNS": "100",
    }


def scratch(folder: Path) -> Path:
    """Give a test a folder of its own for temporary files, with a path short enough for sockets.

    A Unix socket's path has at most 107 bytes, which pytest's own folders can use up.
    """
    name = hashlib.sha256(str(folder).encode()).hexdigest()[:8]
    short = Path("/tmp") / f"wd-{name}"  # noqa: S108 (named after the test's own folder)
    if not short.exists():
        short.mkdir(mode=0o755)
        atexit.register(shutil.rmtree, short, ignore_errors=True)
    return short


def left_behind(folder: Path) -> list[str]:
    """Name the processes that belong to a test's folder, after giving them time to end."""
    return what_stays(lambda: left_now(folder))


def left_now(folder: Path) -> list[str]:
    """Name the processes that belong to a test's folder: `PID: COMMAND in FOLDER`."""
    return list(_processes_of(folder))


def _processes_of(folder: Path) -> Iterator[str]:
    folders = (folder, scratch(folder))
    for process in Path("/proc").glob("[0-9]*"):
        if int(process.name) == os.getpid():
            continue
        with suppress(OSError):
            command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            place = str((process / "cwd").readlink())
            if any(str(ours) in text for ours in folders for text in (command, place)):
                yield f"{process.name}: {command} in {place}"


def seeded(name: str) -> Random:
    """Give a source of random moments, its seed printed: WEBDYNO_TEST_SEED repeats a test."""
    seed = int(os.environ.get("WEBDYNO_TEST_SEED") or SystemRandom().getrandbits(32))
    print(f"{name}: WEBDYNO_TEST_SEED={seed}")  # noqa: T201 (pytest shows it of a test that fails)
    return Random(seed)


def wait_for(path: Path, lines: int) -> None:
    """Wait until a file has that many lines."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        with suppress(FileNotFoundError):
            if path.read_bytes().count(b"\n") >= lines:
                return
        time.sleep(0.02)
    raise AssertionError(f"{path} has not got {lines} lines")


def master_processes(folder: Path, title: bytes) -> list[int]:
    """The processes with this title that were started from a test's folder."""
    return [
        int(process.name)
        for process in Path("/proc").glob("[0-9]*")
        if title in _command(process) and str(scratch(folder)).encode() in _command(process)
    ]


def _command(process: Path) -> bytes:
    try:
        return (process / "cmdline").read_bytes()
    except OSError:
        return b""


def slots(run: RunFolder) -> list[SlotRecord]:
    """Give the slots of a run."""
    return [it for it in run.records() if isinstance(it, SlotRecord)]


def statuses(folder: Path) -> set[str]:
    """Give the status codes of all responses in the run that `run_rounds` left in a folder.

    Of all slots together, since a short one on a busy machine may have had none.
    """
    return {code for it in slots(RunFolder.open(folder / "run")) for code in it.load.by_status}
