"""Clients whose percentiles are compared with the truth: how each makes about the same load."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from rig import percentiles
from rig.cases import BUDGETS
from rig.percentiles import LUA, Percentiles
from rig.truth import Delays, due_times_ms

OPEN_CONNECTIONS = 256
"""Enough for all requests that are due in a freeze of 200 ms at 1 000/s."""
KERNEL_TIMES = "kernel-times"
HEY_CONNECTIONS = 50
"""hey's default."""
WRK2_CONNECTIONS = 200
"""wrk2 opens one each 5 ms and measures from 10 s after the last: this makes whole seconds."""
WRK2_CALIBRATION_S = 11


@dataclass(frozen=True)
class Load:
    """What is asked of each."""

    delays: Delays
    url: str
    rate_rps: int
    duration_s: int


@dataclass(frozen=True)
class Reporter:
    """A client and what it says about latency."""

    name: str
    how: str
    """What a table says of the load it makes."""
    arguments: Callable[[Load], list[str]]
    read: Callable[[str], Percentiles]
    longer_s: int = 0
    """How much longer it has to run to measure equally long."""
    good_exits: tuple[int, ...] = (0,)
    program: str = ""
    """What it is called on the PATH, where that isn't its name."""
    server: str = "delay_server"
    """The server of known delays that it asks."""

    def command(self, path: Path, load: Load) -> list[str]:
        """Give the whole command."""
        return [str(path), *self.arguments(load)]


def closed_loop_connections(load: Load) -> int:
    """Give as many connections as make about the rate in a closed loop (Little's law)."""
    latency_ms = load.delays.latency_ms(due_times_ms(load.rate_rps, load.duration_s))
    # The median, because a closed loop hardly notices the rare long ones: that is its fault.
    return max(1, round(load.rate_rps * float(np.median(latency_ms)) / 1000))


def _loadgen(load: Load, flags: tuple[str, ...] = ()) -> list[str]:
    return [
        *("run", load.url, "--threads", "1", "--json"),
        *("--connections", str(OPEN_CONNECTIONS), "--rate", str(load.rate_rps)),
        *("--time", f"{load.duration_s}s", *flags),
    ]


def _loadgen_websocket(load: Load) -> list[str]:
    over = replace(load, url=load.url.replace("http", "ws", 1))
    return _loadgen(over, ("--message", "Hello, World!"))


def _loadgen_grpc(load: Load) -> list[str]:
    return _loadgen(replace(load, url=load.url.replace("http", "grpc", 1) + "a.Service/Call"))


def _wrk(load: Load) -> list[str]:
    connections = closed_loop_connections(load)
    return ["-t1", f"-c{connections}", f"-d{load.duration_s}s", "-s", str(LUA), load.url]


def _wrk2(load: Load) -> list[str]:
    time_s = load.duration_s + WRK2_CALIBRATION_S
    return [
        *("-t1", f"-c{WRK2_CONNECTIONS}", f"-d{time_s}s", f"-R{load.rate_rps}"),
        *("-s", str(LUA), load.url),
    ]


def _hey(load: Load) -> list[str]:
    return [
        *("-cpus", "1", "-z", f"{load.duration_s}s", "-c", str(HEY_CONNECTIONS)),
        *("-q", f"{load.rate_rps / HEY_CONNECTIONS:g}", "-o", "csv", load.url),
    ]


def _oha(load: Load) -> list[str]:
    return [
        *("--no-tui", "--output-format", "json", "--worker-threads", "1"),
        *("-z", f"{load.duration_s}s", "-c", str(OPEN_CONNECTIONS)),
        *("-q", str(load.rate_rps), "--latency-correction", load.url),
    ]


REPORTERS = {
    reporter.name: reporter
    for reporter in (
        Reporter(
            "loadgen",
            f"open loop, {OPEN_CONNECTIONS} connections",
            _loadgen,
            percentiles.loadgen,
            good_exits=(0, 3),
        ),
        *(
            Reporter(
                f"loadgen-{name}",
                f"the same, {how}",
                partial(_loadgen, flags=flags),
                percentiles.loadgen,
                good_exits=(0, 3),
                program="loadgen",
            )
            for name, how, flags in (
                (KERNEL_TIMES, "timed by the kernel", ("--kernel-times",)),
                *(
                    (
                        budget,
                        f"sent up to {budget} late, timed by the kernel",
                        ("--send-delay-budget", budget),
                    )
                    for budget in BUDGETS
                ),
            )
        ),
        Reporter(
            "loadgen-websocket",
            "the same, by messages over WebSocket",
            _loadgen_websocket,
            percentiles.loadgen,
            good_exits=(0, 3),
            program="loadgen",
        ),
        Reporter(
            "loadgen-grpc",
            "the same, by calls of gRPC",
            _loadgen_grpc,
            percentiles.loadgen,
            good_exits=(0, 3),
            program="loadgen",
        ),
        Reporter(
            "loadgen-http3",
            "the same, over HTTP/3",
            partial(_loadgen, flags=("--http3", "--tls-verify", "off")),
            percentiles.loadgen,
            good_exits=(0, 3),
            program="loadgen",
            server="quic_delay_server",
        ),
        Reporter(
            "wrk", "closed loop, as many connections as make about that rate", _wrk, percentiles.wrk
        ),
        Reporter(
            "wrk2",
            f"-R, {WRK2_CONNECTIONS} connections, {WRK2_CALIBRATION_S} s of calibration before",
            _wrk2,
            percentiles.wrk,
            longer_s=WRK2_CALIBRATION_S,
        ),
        Reporter(
            "hey",
            f"-q, {HEY_CONNECTIONS} workers, each at its share of the rate",
            _hey,
            percentiles.hey,
        ),
        Reporter(
            "oha",
            f"-q --latency-correction, {OPEN_CONNECTIONS} connections",
            _oha,
            percentiles.oha,
        ),
    )
}
