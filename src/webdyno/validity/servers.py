"""Whether the servers had what they need, and did nothing else.

They reach a limit (`memory-limit`), are stopped (`servers-stopped`), work without load
(`left-over-work`) or on the slot before (`undrained`), or have no worker left
(`workers-all-busy`). A server that is cheap at a given arrival rate may let requests wait for it
(`cheap-by-queueing`).
"""

from collections.abc import Iterator, Sequence
from itertools import permutations
from statistics import geometric_mean, median
from typing import NamedTuple

from webdyno.core.base import Interval, memory_words
from webdyno.core.format import count, duration, latency, listed, number, percent, times
from webdyno.core.judgement import ValidityWarning
from webdyno.core.metrics import CPU_TIME, METRICS, responses
from webdyno.core.readings import Readings
from webdyno.core.records import SlotRecord
from webdyno.evidence.cost import cost_rate_rps
from webdyno.evidence.log_ratios import pair_of
from webdyno.evidence.point_data import PointData
from webdyno.statistics.interval import estimate
from webdyno.validity.rule import (
    INTERFERENCE_TOLERATED,
    WORK,
    RunRule,
    SlotRule,
    note,
    readings_of,
    with_readings,
)

LEFT_OVER_LIMIT = 0.02
"""Share of the slot's CPU time that variants which should be idle may use."""
UNDRAINED_LIMIT = 0.01
"""Share of the responses that may still be missing after the drain."""
CONFIDENCE = 0.95
WAITING = {"p50": "latency_p50_us", "p99": "latency_p99_us"}
CHEAPER = 0.98
"""Share of the other's CPU that a cheaper one needs at most: beyond it they count as equal."""
LONGER, LONGER_US = 1.5, 500.0
"""So many times as long, with 95% confidence, and so much longer requests wait at least: nobody's
objective is about less. What the client sent late is none of it."""


def _limit_reached(readings: Readings) -> bool:
    """Whether the kernel had to take memory back; not every kernel counts how often it did."""
    memory = readings.memory
    return memory is not None and (
        memory.oom_kills > 0 or memory.reclaims > 0 or memory.peak_bytes >= memory.limit_bytes
    )


def _killed_for_memory(slots: Sequence[SlotRecord]) -> str:
    uses = [readings.memory for readings in readings_of(slots) if readings.memory]
    killed = sum(use.oom_kills for use in uses)
    limit = memory_words(max(use.limit_bytes for use in uses))
    deaths = f", and the kernel killed {number(killed)} of its processes" if killed else ""
    return f"its memory limit of {limit} was reached{deaths}"


MEMORY_LIMIT = SlotRule(
    name="memory-limit",
    broken=with_readings(_limit_reached),
    what=_killed_for_memory,
    fix="Raise the memory limit, or give the services fewer workers.",
)


def left_over_s(slot: SlotRecord) -> float:
    return sum(slot.readings.other_variants_cpu_s.values()) if slot.readings else 0.0


def left_over_share(slot: SlotRecord) -> float:
    """Return the CPU time of variants that should have been idle, as a share of the servers'."""
    total_s = slot.readings.host.servers.total_s if slot.readings else 0.0
    return left_over_s(slot) / total_s if total_s else 0.0


def _busy_others(slots: Sequence[SlotRecord]) -> str:
    others = [each.other_variants_cpu_s.items() for each in readings_of(slots)]
    names = sorted({name for each in others for name, cpu_s in each if cpu_s > 0})
    return (
        f"{', '.join(names)} went on working, without load, with up to "
        f"{percent(max(map(left_over_share, slots)))} of the servers' CPUs"
    )


LEFT_OVER = SlotRule(
    name="left-over-work",
    broken=lambda slot: left_over_share(slot) > LEFT_OVER_LIMIT,
    what=_busy_others,
    fix="Use fewer connections or a lower arrival rate, or turn off what they do by themselves.",
    invalidates=WORK,
    has_bias_bound=True,
)


def _left_open(slot: SlotRecord) -> int:
    return (slot.load.requests.unanswered or 0) - slot.load.requests.drained


UNDRAINED = SlotRule(
    name="undrained",
    broken=lambda slot: _left_open(slot) > UNDRAINED_LIMIT * max(responses(slot), 1),
    what=lambda slots: (
        f"{count(sum(map(_left_open, slots)), 'request')} still had no response when the slot's "
        "drain was over, and went on using the server in the next slot"
    ),
    fix="Use fewer connections or a lower arrival rate, or raise load.timeout_s.",
)


def stopped_s(slot: SlotRecord) -> float:
    """Return the seconds in which somebody had stopped processes of the servers."""
    return slot.readings.stopped.servers_s if slot.readings and slot.readings.stopped else 0.0


SERVERS_STOPPED = SlotRule(
    name="servers-stopped",
    broken=lambda slot: stopped_s(slot) > 0,
    what=lambda slots: (
        f"processes of its servers were stopped for {duration(sum(map(stopped_s, slots)))}, by a "
        "signal or a debugger, and answered nothing in that time"
    ),
    fix="Leave the servers alone while webdyno runs.",
    invalidates=WORK,
    tolerated=INTERFERENCE_TOLERATED,
    has_bias_bound=True,
)

RULES = (MEMORY_LIMIT, LEFT_OVER, UNDRAINED, SERVERS_STOPPED)


def _full_workers(data: PointData) -> Iterator[ValidityWarning]:
    """Find services all of whose workers were taken, or in whose queue connections stood."""
    for variant in data.experiment.variants:
        connections = data.experiment.load_of(variant).connections
        by_role = {
            (role, status.workers): status
            for readings in readings_of(data.of_variant(variant))
            for role, status in readings.status.items()
            if status.workers is not None
            and status.most_busy is not None
            and (status.most_waiting or connections > status.workers == status.most_busy)
        }
        for (role, workers), status in by_role.items():
            queue = (
                f"; up to {count(status.most_waiting, 'connection')} stood in its queue"
                if status.most_waiting
                else ""
            )
            yield note(
                "workers-all-busy",
                variant,
                f"{number(status.most_busy or 0)} of {count(workers or 0, 'worker')} of {role} had "
                f"a request at the same time, with {number(connections)} connections: further "
                f"requests waited for one{queue}",
                f"Use fewer connections, or give {role} more workers.",
            )


WORKERS_ALL_BUSY = RunRule("workers-all-busy", _full_workers)


class Wait(NamedTuple):
    """A percentile of latency that is longer than another variant's."""

    percentile: str
    mine_us: float
    others_us: float

    @property
    def words(self) -> str:
        return f"{self.percentile} {latency(self.mine_us)} against {latency(self.others_us)}"


class Queueing(NamedTuple):
    """How a variant saves CPU by requests that wait: it works on many at a time, or sleeps."""

    other: str
    cpu: Interval
    waits: Sequence[Wait]

    @property
    def longest(self) -> float:
        return max(wait.mine_us / wait.others_us for wait in self.waits)


def _cheap_by_queueing(data: PointData) -> Iterator[ValidityWarning]:
    """Report each variant that does so, next to the one whose requests wait least."""
    worst: dict[str, Queueing] = {}
    for variant, other in permutations(data.experiment.variants, 2):
        rate_rps, others_rps = (cost_rate_rps(data.experiment, name) for name in (variant, other))
        if rate_rps is None or rate_rps != others_rps:
            continue
        cpu = _ratio(data, variant, other, CPU_TIME)
        waits = list(longer_waits(data, variant, other))
        if cpu and cpu.high < CHEAPER and waits:
            queueing = Queueing(other, cpu, waits)
            if variant not in worst or queueing.longest > worst[variant].longest:
                worst[variant] = queueing
    for variant, queueing in worst.items():
        yield note(
            CHEAP_BY_QUEUEING.name,
            variant,
            f"it needs {times(queueing.cpu)} the CPU of {queueing.other}, but requests wait "
            f"longer: {listed(wait.words for wait in queueing.waits)}",
            "Compare what both can take at the latency that you need: `webdyno capacity` with "
            "--slo.",
        )


def longer_waits(
    data: PointData, variant: str, other: str, confidence: float = CONFIDENCE
) -> Iterator[Wait]:
    """Return the percentiles at which a variant's requests wait longer than another one's."""
    for percentile, metric in WAITING.items():
        ratio = _ratio(data, variant, other, metric, confidence)
        if ratio is None or ratio.low < LONGER:
            continue
        mine_us, others_us = (
            geometric_mean(data.values(name, METRICS[metric]).values()) for name in (variant, other)
        )
        late_us = _sent_late_us(data, variant, percentile) - _sent_late_us(data, other, percentile)
        if mine_us - others_us - max(late_us, 0.0) >= LONGER_US:
            yield Wait(percentile, mine_us, others_us)


def _sent_late_us(data: PointData, variant: str, percentile: str) -> float:
    late_us = [
        getattr(slot.load.send_delay_us, percentile) or 0.0 for slot in data.of_variant(variant)
    ]
    return median(late_us) if late_us else 0.0


def _ratio(
    data: PointData, variant: str, other: str, metric: str, confidence: float = CONFIDENCE
) -> Interval | None:
    d = pair_of(data, variant, other, METRICS[metric]).d
    return estimate(d, confidence).ratio(confidence) if len(d) > 1 else None


CHEAP_BY_QUEUEING = RunRule("cheap-by-queueing", _cheap_by_queueing)
