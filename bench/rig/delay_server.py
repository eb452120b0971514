"""The server with known delays as a running program."""

import json
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeVar

from rig.process import BenchError, pinned
from rig.truth import Delays, allowance_arguments, sound

Result = TypeVar("Result")


@dataclass(frozen=True)
class Punctuality:
    """How well a server kept its delays. The truth is true to this extent."""

    requests: int
    too_late: int
    """Responses that used up more of their tolerance than the server's part of it."""
    late_us: dict[str, int]
    """How late responses were written: p50, p99 and max."""
    arrived_late_us: dict[str, int] | None = None
    """How late requests arrived by an even timetable, if one was named: the same."""

    @property
    def sound(self) -> bool:
        """Whether clients can be judged by these delays."""
        return sound(self.requests, self.too_late)


def serve_while(
    work: Callable[[str], Result],
    path: Path,
    delays: Delays,
    cpus: Sequence[int],
    due_per_s: float | None = None,
) -> tuple[Result, Punctuality]:
    """Serve with these delays while `work` is done with the server's URL."""
    due = [] if due_per_s is None else ["--due-per-s", f"{due_per_s}"]
    process = subprocess.Popen(
        pinned([str(path), *allowance_arguments(), *due, *delays.server_arguments], cpus),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        if process.stdin is None or process.stdout is None:
            raise AssertionError("both were asked for")
        scheme = "https" if path.name.startswith("quic") else "http"
        url = f"{scheme}://127.0.0.1:{_line(process.stdout)['port']}/"
        try:
            result = work(url)
        finally:
            # That is what makes it end.
            process.stdin.close()
        return result, Punctuality(**_line(process.stdout))


def _line(output: IO[str]) -> dict[str, Any]:
    line = output.readline()
    if not line:
        raise BenchError("delay_server ended early; it says above why")
    found: dict[str, Any] = json.loads(line)
    return found
