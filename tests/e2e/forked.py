"""Processes of webdyno that are forked off one that has imported it."""

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO, Self

FORERUNNER = Path(__file__).parent / "forerunner.py"


class Forked:
    """What tests need of `subprocess.Popen`; the rest is that of its namesakes there."""

    def __init__(
        self,
        words: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        stdout: IO[str] | None = None,
        stderr: IO[str] | None = None,
    ) -> None:
        """Start; without `stdout` there is a pipe, which has the errors as well."""
        self._words = words
        self.returncode: int | None = None
        self._reported, reported = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        order = {"words": [*words], "folder": str(cwd), "environment": dict(env)}
        with reported, Path(os.devnull).open() as nothing:
            self.stdout: IO[str]
            if stdout is None:
                reads, writes = os.pipe()
                self.stdout = os.fdopen(reads, encoding="utf-8")
            else:
                self.stdout, writes = stdout, os.dup(stdout.fileno())
            errors = writes if stderr is None else stderr.fileno()
            files = [reported.fileno(), nothing.fileno(), writes, errors]
            socket.send_fds(forerunner(), [json.dumps(order).encode()], files)
        os.close(writes)
        self.pid = int(self._reported.recv(100))

    def poll(self) -> int | None:
        """Give the exit code, if it has ended."""
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Give the exit code, that of `Popen`, once it has ended."""
        if self.returncode is None:
            self._reported.settimeout(timeout)
            try:
                self.returncode = int(self._reported.recv(100))
            except (BlockingIOError, TimeoutError):
                raise subprocess.TimeoutExpired(self._words, timeout or 0) from None
            self._reported.close()
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[str, None]:
        """Give what it printed, once it has ended; what it left running may keep the pipe open."""
        began = time.monotonic()
        text = self.stdout.read()
        self.wait(None if timeout is None else max(0.0, timeout - (time.monotonic() - began)))
        return text, None

    def send_signal(self, number: int) -> None:
        """Send it a signal, if it hasn't ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it."""
        self.send_signal(signal.SIGKILL)

    def __enter__(self) -> Self:
        """Give itself: it runs."""
        return self

    def __exit__(self, *_: object) -> None:
        """Wait for its end."""
        self.stdout.close()
        self.wait()


def run(
    words: Sequence[str], *, cwd: Path, env: Mapping[str, str], timeout: float
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        process = Forked(words, cwd=cwd, env=env, stdout=output, stderr=errors)
        try:
            code = process.wait(timeout)
        except BaseException:
            process.kill()
            process.wait()
            raise
        output.seek(0)
        errors.seek(0)
        return subprocess.CompletedProcess(words, code, output.read(), errors.read())


@cache
def forerunner() -> socket.socket:
    """Start the one of this process and of its forks, which ends when none can ask it any more."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-P", FORERUNNER, str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            start_new_session=True,
            cwd="/",
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        )
    atexit.register(process.wait)
    atexit.register(ours.close)
    return ours
