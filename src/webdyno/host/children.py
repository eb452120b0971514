"""Child processes: programs run to their end, and children that end when this process does.

Servers are run by `host.server_process`, whose warden ends them however webdyno ends. Where Python
starts Python, nothing is imported from the current folder, whoever wrote into it: a `json.py` there
would be imported in place of the library's, as the caller.
"""

import ctypes
import errno
import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from subprocess import CompletedProcess
from typing import IO, TypedDict

import psutil

from webdyno.core.debug_log import words_without_secrets
from webdyno.core.errors import OperationError
from webdyno.core.kernel import kernel_lines
from webdyno.host.users import ServerUser

logger = logging.getLogger(__name__)

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 36, 38
KILL_WITHIN_S = 5.0
OTHERS_WRITE = 0o022
"""Nobody else changes what programs make that we run."""
_libc = ctypes.CDLL(None, use_errno=True)


def python_module(module: str, python: str | None = None) -> list[str]:
    """Return the words that run an installed module, by this Python or another one with webdyno."""
    return [python or sys.executable, "-P", "-m", module]


def python_file(file: str) -> list[str]:
    """Return the words that run one file, which imports Python's own library alone."""
    return [sys.executable, "-I", "-S", file]


def words_of(call: str) -> list[str]:
    """Return the program that makes one call of the Python API, such as `compare`.

    It ends with the exit codes of the command line: 0 where something was measured to its end,
    whatever came of it.
    """
    return [*python_module("webdyno.interfaces.python"), call]


@contextmanager
def input_of(arguments: Mapping[str, object], *, allow_commands: bool) -> Iterator[IO[bytes]]:
    """Yield that program's standard input: everybody could read arguments in a command line.

    `allow_commands`: whether a person agreed to run what the arguments name, which may be commands.
    They are what JSON can hold; paths become texts.
    """
    given = json.dumps({**arguments, "allow_commands": allow_commands}, default=str)
    with tempfile.TemporaryFile() as file:  # rather than a pipe, which may be full
        file.write(given.encode())
        file.seek(0)
        yield file


@contextmanager
def from_no_folder() -> Iterator[None]:
    """Keep processes that Python starts by itself from importing from the current folder.

    `multiprocessing` starts them by `-c`. Programs of users aren't to inherit that.
    """
    before = os.environ.get("PYTHONSAFEPATH")
    os.environ["PYTHONSAFEPATH"] = "1"
    try:
        yield
    finally:
        del os.environ["PYTHONSAFEPATH"]
        if before is not None:
            os.environ["PYTHONSAFEPATH"] = before


def run_program(
    words: Sequence[str | Path],
    *,
    within_s: float | None,
    given: str = "",
    user: ServerUser | None = None,
    environment: Mapping[str, str] | None = None,
    folder: str | Path | None = None,
    named: str = "",
    install: str = "",
) -> CompletedProcess[str]:
    """Run a program to its end, whatever its exit code, and return what it said.

    Raise OperationError where it can't be started (`install` is what to say if it isn't there), or
    hasn't ended within `within_s`, after which it is killed. Messages call it `named`, or by its
    name.
    """
    named = named or str(words[0])
    within = "" if within_s is None else f", for {within_s:g} s at most"
    logger.debug("runs %s%s", words_without_secrets(words), within)
    try:
        _demand_program(str(words[0]), environment)
        done = _run([str(word) for word in words], given, within_s, user, environment, folder)
        logger.debug("%s ended with exit code %d", named, done.returncode)
    except FileNotFoundError:
        raise OperationError(install or f"there is no program {words[0]}; install it") from None
    except OSError as error:
        raise OperationError(f"{named} can't be started: {error.strerror}") from error
    except subprocess.TimeoutExpired:
        raise OperationError(f"{named} did not end within {within_s:g} s") from None
    return done


def _demand_program(name: str, environment: Mapping[str, str] | None) -> None:
    """Raise OSError as its start would: `setpriv`, by which it starts, has an exit code alone."""
    path = None if environment is None else environment.get("PATH")
    if shutil.which(name, path=path) is None:
        fault = errno.EACCES if Path(name).exists() else errno.ENOENT
        raise OSError(fault, os.strerror(fault))


def _run(
    words: Sequence[str],
    given: str,
    within_s: float | None,
    user: ServerUser | None,
    environment: Mapping[str, str] | None,
    folder: str | Path | None,
) -> CompletedProcess[str]:
    """As `subprocess.run`, out of reach of our terminal, into which another user could type.

    It ends with us, however we do; what it starts itself may not.
    """
    alone = user is not None
    with subprocess.Popen(
        [*ending_with_us("KILL"), *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        cwd=folder,
        env=environment,
        start_new_session=alone,
        umask=_umask() | OTHERS_WRITE,
        **identity(user),
    ) as process:
        try:
            output, errors = process.communicate(given, within_s)
        except BaseException:  # Ctrl-C doesn't reach another session
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL) if alone else process.kill()
            raise
    return CompletedProcess(words, process.returncode, output, errors)


def _umask() -> int:
    """Read it where nothing changes it."""
    lines = kernel_lines(Path("/proc/self/status"))
    return next(int(line.split()[1], 8) for line in lines if line.startswith("Umask:"))


def must(done: CompletedProcess[str], what: str) -> str:
    """Return what a program printed; raise OperationError, in its own words, when it failed."""
    if done.returncode:
        raise OperationError(f"{what}: {done.stderr.strip() or f'exit code {done.returncode}'}")
    return done.stdout.strip()


@contextmanager
def in_session(
    words: Sequence[str | Path],
    *,
    output: IO[bytes],
    errors: IO[bytes] | int = subprocess.STDOUT,
    user: ServerUser | None = None,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a program in a session of its own, all of which is killed at the end.

    It ends with us, even by kill -9; what it starts itself may not.
    """
    if user is not None:  # a folder that he can't enter by himself isn't entered for him
        words, folder = ["env", f"--chdir={folder or Path.cwd()}", *words], Path("/")
    process = subprocess.Popen(
        [*ending_with_us("KILL"), *words],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=errors,
        env=environment,
        cwd=folder,
        start_new_session=True,
        **identity(user),
    )
    logger.debug("process %d runs %s", process.pid, words_without_secrets(words))
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        logger.debug("process %d ended with exit code %d", process.pid, process.wait())


class Identity(TypedDict):
    """As whom `subprocess` starts a program."""

    user: int | None
    group: int | None
    extra_groups: list[int] | None


def identity(user: ServerUser | None) -> Identity:
    """Return a user as `subprocess` takes one; None is ourselves."""
    if user is None:
        return Identity(user=None, group=None, extra_groups=None)
    return Identity(user=user.uid, group=user.gid, extra_groups=list(user.groups or [user.gid]))


def interrupt(process: subprocess.Popen[bytes], within_s: float) -> None:
    """Press Ctrl-C and wait until a process has ended; kill it after so long."""
    if process.poll() is not None:
        return
    process.send_signal(signal.SIGINT)
    try:
        process.wait(within_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def ending_with_us(signal_name: str) -> tuple[str, ...]:
    """Return the words before a command that have the kernel signal it when this thread ends."""
    return ("setpriv", "--pdeathsig", signal_name)


def end_with_parent(signal_number: int, parent: int) -> None:
    """In a child: end when the parent's thread that made it ends, at once if it has already."""
    _libc.prctl(PR_SET_PDEATHSIG, signal_number, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def gain_no_rights() -> None:
    """Gain no rights from here on by running a program, such as one with set-user-ID."""
    _libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


@contextmanager
def no_orphans() -> Iterator[None]:
    """Kill at the end all that was started inside; orphans are this process's for so long."""
    before = _children()
    _libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        deadline = time.monotonic() + KILL_WITHIN_S
        while (left := _children() - before) and time.monotonic() < deadline:
            for pid in left:
                with suppress(ProcessLookupError, PermissionError, ChildProcessError):
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)
        _libc.prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def _children() -> set[int]:
    return {child.pid for child in psutil.Process().children()}
