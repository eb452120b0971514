"""What the time of a response goes into: work, and waits for CPUs, locks, backends and disks.

In a closed loop without pauses each connection has a request under way at any time, so the mean
time of a response is connections over throughput (Little, Operations Research 1961). What servers
work is counted, and so is how long their threads wait for a CPU (schedstat). Where a service has a
fixed number of workers that take a request each and all of them are taken, the connections beyond
that number wait in front of it: their share of the time is Little's law again, and so is that of
threads that were blocked: by a lock, a disk, a pause, a backend. The rest is spent in sockets and
event loops, on the way, and in the client.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from webdyno.core import format as text
from webdyno.core.base import Interval
from webdyno.core.experiment import OWN_GENERATOR
from webdyno.core.findings import Waiting
from webdyno.core.judgement import DIFFERENT, Judgement
from webdyno.core.metrics import THROUGHPUT, responses, server_cpu_us, throughput_rps
from webdyno.core.readings import BlockedBy
from webdyno.core.records import SlotRecord
from webdyno.evidence.point_data import PointData
from webdyno.statistics.interval import mean_interval
from webdyno.validity import valid_for

FEWEST_ROUNDS = 2
CONFIDENCE = 0.95
IDLE_BELOW = 0.5
"""CPUs that servers keep busy: with more of them, waiting is for others' work."""
MOST_OF_IT = 0.1
"""So many times the difference of waiting at most may that of work be."""
BLOCKED: dict[BlockedBy, str] = {
    "locks": "of waiting for locks",
    "disks": "of waiting for disks",
    "pauses": "of pauses of its own",
    "backends": "of waiting for backends",
}
"""What threads are blocked by, in words, the nearest cause first."""
LEAST_SHARE = 0.02
"""Of a response's time that a part needs to be reported."""
DELAYED_ACK_US = (35_000, 50_000)
"""Linux delays an acknowledgement by 40 ms (TCP_DELACK_MIN)."""
NAGLE = (
    " Steps of 40 ms come from Nagle's algorithm and delayed acknowledgements, where head and body "
    "are written apart: set TCP_NODELAY, or write them at once."
)


class _Parts(NamedTuple):
    whole_us: float
    work_us: float
    cpu_us: float
    queue_us: float
    blocked_us: Mapping[BlockedBy, float]


def waiting(data: PointData) -> Iterator[Waiting]:
    """Take each variant's time apart, where the load and the probes can say."""
    valid = valid_for(data, THROUGHPUT)
    yield from filter(None, (_waiting_of(valid, variant) for variant in data.experiment.variants))


def _waiting_of(valid: PointData, variant: str) -> Waiting | None:
    load = valid.experiment.load_of(variant)
    if load.loop == "open" or load.think_s or valid.experiment.generator != OWN_GENERATOR:
        return None
    crowd = _full_service(valid.of_variant(variant), load.connections)
    by_round = [
        parts
        for this_round in valid.rounds
        if (parts := _parts(this_round.of(variant), load.connections, crowd)) is not None
    ]
    if len(by_round) < FEWEST_ROUNDS:
        return None
    whole, work, cpu, queue = (
        np.array(part) for part in zip(*(parts[:4] for parts in by_round), strict=True)
    )
    blocked = {
        what: np.array([parts.blocked_us.get(what, 0.0) for parts in by_round])
        for what in BLOCKED
        if any(parts.blocked_us.get(what) for parts in by_round)
    }
    return Waiting(
        variant=variant,
        connections=load.connections,
        whole_us=mean_interval(whole, CONFIDENCE),
        work_us=mean_interval(work, CONFIDENCE),
        cpu_us=mean_interval(cpu, CONFIDENCE),
        queue_us=mean_interval(queue, CONFIDENCE) if crowd else None,
        queue_at=crowd[0] if crowd else None,
        workers=crowd[1] if crowd else None,
        blocked_us={what: mean_interval(us, CONFIDENCE) for what, us in blocked.items()},
        rest_us=mean_interval(whole - work - cpu - queue - sum(blocked.values()), CONFIDENCE),
    )


def _full_service(slots: Sequence[SlotRecord], connections: int) -> tuple[str, int] | None:
    """Name the service all of whose workers were taken in each slot, and how many these are."""
    seen: list[dict[str, int]] = []
    for slot in slots:
        full = dict[str, int]()
        if readings := slot.readings:
            for role, status in readings.status.items():
                workers, most = status.workers, min(status.most_busy or 0, connections - 1)
                if workers and workers <= most and role != readings.front:
                    full[role] = workers
        seen.append(full)
    for role, workers in (seen[0] if seen else {}).items():
        if all(each.get(role) == workers for each in seen):
            return role, workers
    return None


def _parts(
    slots: Sequence[SlotRecord], connections: int, crowd: tuple[str, int] | None
) -> _Parts | None:
    throughput, work_us = throughput_rps(slots), server_cpu_us(slots)
    waited_s = [
        use.waited_for_cpu_s
        for slot in slots
        for use in (slot.readings.services.values() if slot.readings else ())
    ]
    known_s = [wait_s for wait_s in waited_s if wait_s is not None]
    if throughput is None or work_us is None or not known_s or len(known_s) < len(waited_s):
        return None
    whole_us = connections / throughput * 1e6
    cpu_us = sum(known_s) / sum(map(responses, slots)) * 1e6
    queue_us = (connections - crowd[1]) / throughput * 1e6 if crowd else 0.0
    rest_us = whole_us - work_us - cpu_us - queue_us
    return _Parts(whole_us, work_us, cpu_us, queue_us, _blocked_us(slots, throughput, rest_us))


def _blocked_us(
    slots: Sequence[SlotRecord], throughput: float, rest_us: float
) -> dict[BlockedBy, float]:
    """Return for how long blocked threads held a response, at most the rest of its time in all."""
    seen = [slot.readings.blocked for slot in slots if slot.readings and slot.readings.blocked]
    blocked_us, left_us = dict[BlockedBy, float](), max(rest_us, 0.0)
    for what in BLOCKED if seen else ():
        threads = sum(threads_by.get(what, 0.0) for threads_by in seen) / len(seen)
        blocked_us[what] = min(threads / throughput * 1e6, left_us)
        left_us -= blocked_us[what]
    return blocked_us


def where_time_goes(waitings: Sequence[Waiting]) -> Iterator[str]:
    """Describe of each variant how long a response takes, is worked on, and waits for what."""
    for took in waitings:
        parts = [
            f"{_time(took.work_us)} of work on the servers' CPUs",
            f"{_time(took.cpu_us)} of waiting for a CPU",
        ]
        if took.queue_us is not None:
            parts.append(
                f"{_time(took.queue_us)} in front of the {took.workers} workers of "
                f"{took.queue_at}, all of them taken"
            )
        parts += [
            f"{_time(us)} {BLOCKED[what]}"
            for what, us in took.blocked_us.items()
            if us.estimate >= LEAST_SHARE * took.whole_us.estimate
        ]
        yield (
            f"{took.variant}: with {took.connections} connections a response takes "
            f"{_time(took.whole_us)}: {', '.join(parts)}, and {_time(took.rest_us)} in sockets "
            "and event loops, on the way, and in the client."
        )


class _Wait(NamedTuple):
    """Two variants of which one waits longer for each response, and not for work on CPUs."""

    slow: Waiting
    fast: Waiting

    @property
    def longer_us(self) -> float:
        return self.slow.rest_us.estimate - self.fast.rest_us.estimate

    @property
    def is_nagle(self) -> bool:
        return DELAYED_ACK_US[0] <= self.longer_us <= DELAYED_ACK_US[1]


def _waits(judged: Judgement) -> Iterator[_Wait]:
    """Yield differences of throughput that are of waiting, not of work on the servers' CPUs."""
    by_variant = {part.variant: part for part in judged.waiting}
    for comparison in judged.comparisons:
        differs = comparison.verdict in DIFFERENT
        if comparison.metric != THROUGHPUT or not differs or comparison.limited_by:
            continue
        if not {comparison.a, comparison.b} <= by_variant.keys():
            continue
        both = (by_variant[comparison.a], by_variant[comparison.b])
        wait = _Wait(*sorted(both, key=lambda part: -part.whole_us.estimate))
        slow, work_us = wait.slow, abs(wait.slow.work_us.estimate - wait.fast.work_us.estimate)
        # Requests under way times the share of work.
        busy_cpus = slow.connections * slow.work_us.estimate / slow.whole_us.estimate
        if busy_cpus <= IDLE_BELOW and work_us <= MOST_OF_IT * wait.longer_us:
            yield wait


def what_waits(judged: Judgement) -> Iterator[str]:
    """Describe such differences, with how long a response of each takes."""
    for wait in _waits(judged):
        slow, fast = wait
        yield (
            f"{slow.variant} waits: of the {_time(slow.whole_us)} that its response takes, "
            f"{_time(slow.work_us)} are work on the servers' CPUs ({fast.variant}: "
            f"{_time(fast.work_us)} of {_time(fast.whole_us)}).{NAGLE if wait.is_nagle else ''}"
        )


def waits_in_short(judged: Judgement, *, known_alone: bool) -> Iterator[str]:
    """Describe such differences in a line; with `known_alone` those whose cause is known."""
    for wait in _waits(judged):
        longer = f"{wait.slow.variant} waits {text.latency(wait.longer_us)} longer"
        if wait.is_nagle:
            yield f"{longer} for lack of TCP_NODELAY"
        elif not known_alone:
            yield f"{longer} for a response"


def _time(us: Interval) -> str:
    return text.latency(max(us.estimate, 0.0))
