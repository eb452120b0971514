"""The server with known delays as a running program."""

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from rig.process import BenchError, pinned
from rig.truth import Delays


@dataclass
class DelayServer:
    """A running server; `late_us` is known after its end."""

    url: str
    requests: int = 0
    late_us: dict[str, int] | None = None
    """How late it wrote its answers: p50, p99 and max. The truth is true to this extent."""


@contextmanager
def running_delay_server(path: Path, delays: Delays, cpus: Sequence[int]) -> Iterator[DelayServer]:
    """Serve with these delays; the server ends when its standard input closes."""
    process = subprocess.Popen(
        pinned([str(path), *delays.server_arguments], cpus),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        if process.stdin is None or process.stdout is None:
            raise AssertionError("both were asked for")
        server = DelayServer(f"http://127.0.0.1:{_line(process.stdout)['port']}/")
        try:
            yield server
        finally:
            process.stdin.close()
        last = _line(process.stdout)
        server.requests, server.late_us = last["requests"], last["late_us"]


def _line(output: IO[str]) -> dict[str, Any]:
    line = output.readline()
    if not line:
        raise BenchError("delay_server ended early; it says above why")
    found: dict[str, Any] = json.loads(line)
    return found
