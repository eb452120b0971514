"""What loadgen's memory grows with: open connections, and (it should not) finished requests.

First it runs with few and with many connections; the difference of its peak memory is what a
connection costs. Then it sends millions of requests while its memory is watched.
"""

import resource
import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from rig import machine, programs
from rig.machine import Cores
from rig.nginx import Nginx, running_nginx
from rig.options import count
from rig.process import BenchError, pinned
from rig.script import Script, progress

EXAMPLES = """\
  20 000 connections, then 10 million requests (3 minutes)
    .venv/bin/python bench/connections.py
  less of both
    .venv/bin/python bench/connections.py --connections 5000 --requests 1000000
"""

FEW = 64
GOAL_BYTES = 4096
OTHER_FILES = 64
"""Descriptors next to the connections that loadgen insists on."""
OPEN_WITHIN_S = 30.0
HOLD_S = 2.0
"""How long all connections are in use before memory is read."""
LOOK_EACH_S = 0.25
KB = 1024


def script() -> Script:
    """Describe the command line."""
    made = Script(__doc__, EXAMPLES)
    made.add_argument(
        "--connections", type=count, default=20_000, help="open at the same time (20000)"
    )
    made.add_argument(
        "--requests", type=count, default=10_000_000, help="over which memory is watched (10000000)"
    )
    return made


def allow_connections(connections: int) -> int:
    """Raise the limit of open files as far as needed and allowed; give what it allows."""
    needed = connections + OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < needed:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (needed, max(hard, needed)))
        except (ValueError, OSError):  # more than an ordinary user may have
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return min(connections, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - OTHER_FILES)


@dataclass(frozen=True)
class Memory:
    """Resident memory of a process in bytes."""

    own: int
    """Anonymous pages: what it allocated, without its program text."""
    peak: int
    """The most that was ever resident, program text included."""


def parse_memory(status: str) -> Memory | None:
    """Read /proc/PID/status; None for a process that has ended."""
    fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    if "RssAnon" not in fields:
        return None
    own, peak = (int(fields[name].split()[0]) * KB for name in ("RssAnon", "VmHWM"))
    return Memory(own, peak)


@contextmanager
def running_loadgen(
    path: Path, nginx: Nginx, cpu: int, arguments: Sequence[str]
) -> Iterator[subprocess.Popen[bytes]]:
    """Run loadgen in the background; end it if it still runs afterwards."""
    command = [str(path), "run", nginx.url("/100b"), "--threads", "1", "--json", *arguments]
    process = subprocess.Popen(
        pinned(command, [cpu]), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def memory_of(process: subprocess.Popen[bytes]) -> Memory | None:
    """Read the memory of a process of ours; None if it has ended."""
    if process.poll() is not None:
        return None
    return parse_memory(Path(f"/proc/{process.pid}/status").read_text())


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[bytes], what: str) -> None:
    """Wait until something is so while the process runs."""
    end_s = time.monotonic() + OPEN_WITHIN_S
    while not condition():
        if process.poll() is not None:
            raise BenchError(f"loadgen ended (exit code {process.returncode}) before {what}")
        if time.monotonic() > end_s:
            raise BenchError(f"{OPEN_WITHIN_S:g} s were not enough for: {what}")
        time.sleep(LOOK_EACH_S)


def memory_with(connections: int, path: Path, nginx: Nginx, cpu: int) -> Memory:
    """Give loadgen's memory when so many connections are open and in use."""
    wait_until_free(nginx)
    duration_s = OPEN_WITHIN_S + 2 * HOLD_S
    arguments = ["--connections", str(connections), "--time", f"{duration_s:g}s"]
    with running_loadgen(path, nginx, cpu, arguments) as process:
        wait_for(
            lambda: nginx.counters().active >= connections,
            process,
            f"{connections} connections were open",
        )
        time.sleep(HOLD_S)
        found = memory_of(process)
    if found is None:
        raise BenchError("loadgen ended while its connections were open")
    return found


def wait_until_free(nginx: Nginx) -> None:
    """Wait until nginx has closed what an earlier run left."""
    end_s = time.monotonic() + OPEN_WITHIN_S
    while nginx.counters().active > 0 and time.monotonic() < end_s:
        time.sleep(LOOK_EACH_S)


def memory_over_requests(requests: int, path: Path, nginx: Nginx, cpu: int) -> list[Memory]:
    """Watch loadgen's memory from a tenth of its requests to the last."""
    progress.print(f"sending {requests:,} requests")
    start = nginx.counters().requests
    seen: list[Memory] = []
    arguments = ["--connections", str(FEW), "--count", str(requests)]
    with running_loadgen(path, nginx, cpu, arguments) as process:
        while (found := memory_of(process)) is not None:
            done = nginx.counters().requests - start
            if done >= requests / 10:
                seen.append(found)
            time.sleep(LOOK_EACH_S)
        if process.returncode not in (0, 3):
            raise BenchError(f"loadgen failed with exit code {process.returncode}")
    done = nginx.counters().requests - start
    if done < requests or len(seen) < 2:
        raise BenchError(f"nginx counted only {done:,} requests, too few to judge by")
    return seen


def report_connections(
    console: Console, wanted: int, path: Path, nginx: Nginx, cores: Cores
) -> None:
    """Print what a connection costs."""
    connections = allow_connections(wanted)
    if connections < wanted:
        console.print(
            f"The limit of open files allows {connections:,} connections, not {wanted:,}; "
            "'ulimit -n' shows it, root can raise it."
        )
    few = memory_with(FEW, path, nginx, cores.client)
    many = memory_with(connections, path, nginx, cores.client)
    each_bytes = max(many.own - few.own, many.peak - few.peak) / (connections - FEW)
    word = "reached" if each_bytes <= GOAL_BYTES else "missed"
    for number, memory in ((FEW, few), (connections, many)):
        console.print(
            f"{number:,} connections: {memory.own / KB:,.0f} KB allocated and resident, "
            f"peak with program text {memory.peak / KB:,.0f} KB"
        )
    console.print(f"each connection {each_bytes:,.0f} bytes; goal: at most {GOAL_BYTES:,}: {word}")


def report_requests(
    console: Console, requests: int, path: Path, nginx: Nginx, cores: Cores
) -> None:
    """Print how memory developed over many requests."""
    seen = memory_over_requests(requests, path, nginx, cores.client)
    growth = seen[-1].own - seen[0].own
    console.print(
        f"{requests:,} requests: {seen[0].own / KB:,.0f} KB after a tenth, "
        f"{seen[-1].own / KB:,.0f} KB at the end, growth {growth / KB:,.0f} KB "
        f"in {len(seen) * LOOK_EACH_S:,.0f} s"
    )


def watch(options: Namespace, console: Console) -> None:
    """Run both parts and print what they show."""
    path = programs.build("loadgen")["loadgen"]
    cores = machine.split_this_machine()
    console.print(machine.describe())
    allowed = allow_connections(options.connections)
    with running_nginx(cores.server, allowed + OTHER_FILES) as nginx:
        report_connections(console, options.connections, path, nginx, cores)
        report_requests(console, options.requests, path, nginx, cores)


if __name__ == "__main__":
    sys.exit(script().run(watch))
