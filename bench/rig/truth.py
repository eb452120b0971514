"""Delays of the server with known delays, and the latency that follows from them.

The latency of a request that is due at t is the server's response to a request sent at t,
minus t: in an open loop nobody waits for anything but the server.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Times = NDArray[np.float64]

PERCENTILES = (50.0, 75.0, 90.0, 95.0, 99.0, 99.9)
TOLERANCE_SHARE = 0.02
TOLERANCE_MS = 1.0
BOUNDS = f"{TOLERANCE_SHARE * 100:g}% + {TOLERANCE_MS:g} ms"
"""What a table calls the tolerance."""
TOO_LATE_LIMIT = 0.0004
"""Share of responses that the server may write late by more than their tolerance: less than half of
what lies beyond p99.9.

It is also less than the 5 of 10 000 that are on their way at 5 ms and 1 000/s: when the whole
machine stalls, they are all that the server sees of what the client sends and reads late.
"""


class Delays(Protocol):
    """What the server does to a request."""

    @property
    def title(self) -> str:
        """What a table calls it."""

    @property
    def server_arguments(self) -> list[str]:
        """Arguments of `delay_server` that make it behave so."""

    def latency_ms(self, due_ms: Times) -> Times:
        """Give the latency of requests that are due at these times, in order."""


@dataclass(frozen=True)
class Constant:
    """Each request takes equally long."""

    delay_ms: float

    @property
    def title(self) -> str:
        """What a table calls it."""
        return f"constant {self.delay_ms:g} ms"

    @property
    def server_arguments(self) -> list[str]:
        """Arguments of `delay_server`."""
        return ["constant", "--delay-ms", f"{self.delay_ms}"]

    def latency_ms(self, due_ms: Times) -> Times:
        """Give the latency."""
        return np.full_like(due_ms, self.delay_ms)


@dataclass(frozen=True)
class Bimodal:
    """One request in `slow_every` is slow."""

    fast_ms: float
    slow_ms: float
    slow_every: int

    @property
    def title(self) -> str:
        """What a table calls it."""
        return f"bimodal: {self.fast_ms:g} ms, each {self.slow_every}th {self.slow_ms:g} ms"

    @property
    def server_arguments(self) -> list[str]:
        """Arguments of `delay_server`."""
        return [
            *("bimodal", "--fast-ms", f"{self.fast_ms}", "--slow-ms", f"{self.slow_ms}"),
            *("--slow-every", f"{self.slow_every}"),
        ]

    def latency_ms(self, due_ms: Times) -> Times:
        """Give the latency."""
        count = np.arange(1, len(due_ms) + 1)
        return np.where(count % self.slow_every == 0, self.slow_ms, self.fast_ms)


@dataclass(frozen=True)
class Frozen:
    """Nothing is answered during a part of each period; what was due then comes at its end."""

    base_ms: float
    freeze_at_ms: float
    freeze_ms: float
    period_ms: float

    @property
    def title(self) -> str:
        """What a table calls it."""
        return (
            f"frozen {self.freeze_ms:g} ms in each {self.period_ms / 1000:g} s, "
            f"else {self.base_ms:g} ms"
        )

    @property
    def server_arguments(self) -> list[str]:
        """Arguments of `delay_server`."""
        return [
            *("frozen", "--base-ms", f"{self.base_ms}", "--freeze-at-ms", f"{self.freeze_at_ms}"),
            *("--freeze-ms", f"{self.freeze_ms}", "--period-ms", f"{self.period_ms}"),
        ]

    def latency_ms(self, due_ms: Times) -> Times:
        """Give the latency: a request ready inside of a freeze waits for its end."""
        phase_ms = (due_ms + self.base_ms) % self.period_ms
        end_ms = self.freeze_at_ms + self.freeze_ms
        frozen = (phase_ms >= self.freeze_at_ms) & (phase_ms < end_ms)
        latency_ms = np.full_like(due_ms, self.base_ms)
        latency_ms[frozen] += end_ms - phase_ms[frozen]
        return latency_ms


def due_times_ms(rate_rps: float, duration_s: float) -> Times:
    """Give the due times of a constant rate, each in the middle of its interval."""
    count = np.arange(round(rate_rps * duration_s), dtype=np.float64)
    return (count + 0.5) * (1000 / rate_rps)


def percentile(values: Times, percent: float) -> float:
    """Give the smallest value that at least `percent` of the values don't exceed, as HDR does."""
    # Rounding keeps 0.999 x 10 000 from becoming 9 990.000000000002 and then 9 991.
    rank = math.ceil(round(percent / 100 * len(values), 6))
    return float(np.sort(values)[max(rank, 1) - 1])


def true_percentiles(delays: Delays, rate_rps: float, duration_s: float) -> dict[float, float]:
    """Compute what an open loop has to report, in milliseconds by percentile."""
    latency_ms = delays.latency_ms(due_times_ms(rate_rps, duration_s))
    return {percent: percentile(latency_ms, percent) for percent in PERCENTILES}


def within(reported_ms: float, true_ms: float) -> bool:
    """Say whether a reported time is as near to the truth as it has to be."""
    return abs(reported_ms - true_ms) <= bound_ms(true_ms)


def bound_ms(true_ms: float) -> float:
    """Give how far from the truth a reported time may be."""
    return TOLERANCE_SHARE * true_ms + TOLERANCE_MS


def allowance_arguments() -> list[str]:
    """Give the arguments of `delay_server` that say which answers are too late."""
    return [
        *("--late-ms", f"{TOLERANCE_MS}"),
        *("--late-share", f"{TOLERANCE_SHARE}"),
    ]


def sound(requests: int, too_late: int) -> bool:
    """Say whether a server's delays were the known ones, so that clients can be judged by them."""
    return too_late <= TOO_LATE_LIMIT * requests


def all_within(reported_ms: Mapping[float, float], true_ms: Mapping[float, float]) -> bool:
    """Say whether every percentile is."""
    return all(within(reported_ms[percent], true) for percent, true in true_ms.items())
