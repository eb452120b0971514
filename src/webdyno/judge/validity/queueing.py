"""Whether a variant that is cheap at a given arrival rate lets requests wait for it.

Who gathers requests and works on many at a time saves CPU on each; so does who sleeps in between.
Failed requests have rules of their own, which refuse the figures.
"""

from collections.abc import Iterator, Sequence
from itertools import permutations
from statistics import median
from typing import NamedTuple

from webdyno.judge.cost import cost_rate_rps
from webdyno.judge.interval import estimate
from webdyno.judge.log_ratios import pair_of
from webdyno.judge.point_data import PointData
from webdyno.judge.validity.rule import RunRule, note
from webdyno.model.base import Interval
from webdyno.model.format import latency, listed, times
from webdyno.model.judgement import ValidityWarning
from webdyno.model.metrics import CPU_TIME, METRICS

CONFIDENCE = 0.95
WAITING = {"p50": "latency_p50_us", "p99": "latency_p99_us"}
CHEAPER = 0.98
"""Share of the other's CPU that a cheaper one needs at most: beyond it they count as equal."""
LONGER, LONGER_US = 1.5, 500.0
"""So many times as long, with 95% confidence, and so much longer requests wait at least: nobody's
objective is about less."""


class Wait(NamedTuple):
    """A percentile of latency that is longer than another variant's."""

    percentile: str
    mine_us: float
    others_us: float

    @property
    def words(self) -> str:
        return f"{self.percentile} {latency(self.mine_us)} against {latency(self.others_us)}"


class Queueing(NamedTuple):
    """A variant that needs less CPU than another one, and keeps requests waiting longer."""

    variant: str
    other: str
    cpu: Interval
    waits: Sequence[Wait]

    @property
    def longest(self) -> float:
        """How many times as long they wait."""
        return max(wait.mine_us / wait.others_us for wait in self.waits)


def _look(data: PointData) -> Iterator[ValidityWarning]:
    """Tell it of each such variant, beside the other one whose requests wait least."""
    worst: dict[str, Queueing] = {}
    for variant, other in permutations(data.experiment.variants, 2):
        queueing = _queueing(data, variant, other)
        if queueing and (variant not in worst or queueing.longest > worst[variant].longest):
            worst[variant] = queueing
    yield from map(_warning, worst.values())


def _queueing(data: PointData, variant: str, other: str) -> Queueing | None:
    rate_rps, others_rps = (cost_rate_rps(data.experiment, name) for name in (variant, other))
    if rate_rps is None or rate_rps != others_rps:
        return None
    cpu = _ratio(data, variant, other, CPU_TIME)
    waits = list(_waits(data, variant, other))
    return Queueing(variant, other, cpu, waits) if cpu and cpu.high < CHEAPER and waits else None


def _waits(data: PointData, variant: str, other: str) -> Iterator[Wait]:
    for percentile, metric in WAITING.items():
        ratio = _ratio(data, variant, other, metric)
        if ratio is None or ratio.low < LONGER:
            continue
        mine_us, others_us = (
            median(data.values(name, METRICS[metric]).values()) for name in (variant, other)
        )
        if mine_us - others_us >= LONGER_US:
            yield Wait(percentile, mine_us, others_us)


def _ratio(data: PointData, variant: str, other: str, metric: str) -> Interval | None:
    d = pair_of(data, variant, other, METRICS[metric]).d
    return estimate(d, CONFIDENCE).ratio(CONFIDENCE) if len(d) > 1 else None


def _warning(queueing: Queueing) -> ValidityWarning:
    return note(
        CHEAP_BY_QUEUEING.name,
        queueing.variant,
        f"it needs {times(queueing.cpu)} the CPU of {queueing.other}, but requests wait longer: "
        f"{listed(wait.words for wait in queueing.waits)}",
        "Compare what both can take at the latency that you need: `webdyno capacity` with --slo.",
    )


CHEAP_BY_QUEUEING = RunRule("cheap-by-queueing", _look)
