"""`perf`, kept on other CPUs than the servers', which counts or samples from word to word."""

import os
import select
import subprocess
import tempfile
import time
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from webdyno.host.processes import run_program
from webdyno.model.mistake import Trouble

PERF = "perf"
NOT_THERE = f"profiles take `{PERF}` (Debian: apt-get install linux-perf)"
ANSWERS_WITHIN_S = 30.0
READ_WITHIN_S, LOOK_S = 60.0, 0.05


class Perf:
    """A subcommand of `perf` at work while it is entered, from when the kernel has begun."""

    def __init__(
        self, options: Sequence[str], cpus: Collection[int], beside: Collection[int]
    ) -> None:
        """Look at some CPUs, working on others; entering raises Trouble where one may not."""
        self._options, self._beside = options, beside
        self._cpus = ",".join(map(str, sorted(cpus)))

    def __enter__(self) -> Self:
        """Begin."""
        with ExitStack() as exits:
            folder = tempfile.TemporaryDirectory(prefix="webdyno-perf-")
            place = Path(exits.enter_context(folder))
            self.output = place / "output"
            pipes = [place / name for name in ("control", "ack")]
            self._control, self._ack = (_pipe(it, exits) for it in pipes)
            self._process = exits.enter_context(self._started(*pipes))
            exits.callback(self._process.kill)
            os.sched_setaffinity(self._process.pid, self._beside)
            self.say("enable")
            self._exits = exits.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End it; its output goes with it."""
        self._exits.close()

    def _started(self, control: Path, ack: Path) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                [
                    *(PERF, *self._options, f"--cpu={self._cpus}", "--delay=-1"),
                    *(f"--output={self.output}", f"--control=fifo:{control},{ack}"),
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except FileNotFoundError:
            raise Trouble(NOT_THERE) from None

    def say(self, word: str) -> None:
        """Tell it something and wait until it has done it."""
        os.write(self._control, f"{word}\n".encode())
        deadline = time.monotonic() + ANSWERS_WITHIN_S
        while not select.select([self._ack], [], [], LOOK_S)[0]:
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise Trouble(f"{PERF} can't look here: {self._complaint()}")
        os.read(self._ack, 64)

    def finish(self, signal: int | None = None) -> None:
        """Wait until its output is written, after a signal if it takes one to end it."""
        if signal is not None:
            self._process.send_signal(signal)
        self._process.wait(ANSWERS_WITHIN_S)

    def _complaint(self) -> str:
        said = b""
        if self._process.poll() is not None and self._process.stderr is not None:
            said = self._process.stderr.read().strip()
        why = said.decode(errors="replace")[-300:] or "it gave no answer"
        return f"{why}; root may, others where kernel.perf_event_paranoid is -1"


def _pipe(path: Path, exits: ExitStack) -> int:
    """Make a named pipe, open at both ends: else each side would wait for the other."""
    os.mkfifo(path)
    opened = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    exits.callback(os.close, opened)
    return opened


def read_by_perf(*arguments: str) -> str:
    """Give what a subcommand of `perf` prints; raise Trouble when it fails."""
    done = run_program([PERF, *arguments], within_s=READ_WITHIN_S, install=NOT_THERE)
    if done.returncode:
        raise Trouble(f"{PERF} {arguments[0]}: {done.stderr.strip()[-300:]}")
    return done.stdout
