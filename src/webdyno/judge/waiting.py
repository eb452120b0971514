"""How long an answer is worked on, and for what it waits the rest of its time.

In a closed loop without pauses each connection has a request under way at any time, so the mean
time of an answer is connections over rate (Little, Operations Research 1961). What servers work is
counted, and so is how long their threads wait for a CPU (schedstat). Where a service has a fixed
number of workers that take a request each and all of them are taken, the connections beyond that
number wait in front of it: their share of the time is Little's law again. What is left is spent in
sockets and event loops, on the way, and in the client.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from webdyno.judge.interval import estimate
from webdyno.judge.point_data import PointData
from webdyno.model.experiment import OWN_GENERATOR
from webdyno.model.interval import Interval
from webdyno.model.metrics import answers, rate_rps, server_cpu_us
from webdyno.model.records import SlotRecord
from webdyno.model.waiting import Waiting

FEWEST_BLOCKS = 2


class _Parts(NamedTuple):
    whole_us: float
    work_us: float
    cpu_us: float
    queue_us: float


def waiting(data: PointData, arm: str) -> Waiting | None:
    """Take an arm's time apart; None where the load or the probes can't tell."""
    load = data.experiment.load_of(arm)
    if load.loop == "open" or load.think_s or data.experiment.generator != OWN_GENERATOR:
        return None
    crowd = _crowded(data.of_arm(arm), load.connections)
    found = [
        parts
        for block in data.blocks
        if (parts := _parts(block.of(arm), load.connections, crowd)) is not None
    ]
    if len(found) < FEWEST_BLOCKS:
        return None
    whole, work, cpu, queue = (np.array(part) for part in zip(*found, strict=True))
    return Waiting(
        arm=arm,
        connections=load.connections,
        whole_us=_interval(whole),
        work_us=_interval(work),
        cpu_us=_interval(cpu),
        queue_us=_interval(queue) if crowd else None,
        queue_at=crowd[0] if crowd else None,
        workers=crowd[1] if crowd else None,
        rest_us=_interval(whole - work - cpu - queue),
    )


def _crowded(slots: Sequence[SlotRecord], connections: int) -> tuple[str, int] | None:
    """Name the service all of whose workers were taken in each slot, and how many these are."""
    seen: list[dict[str, int]] = []
    for slot in slots:
        readings = slot.readings
        status = readings.status if readings else {}
        seen.append(
            {
                role: it.workers
                for role, it in status.items()
                if readings
                and role != readings.front
                and it.workers
                and it.most_busy is not None
                and it.workers <= min(it.most_busy, connections - 1)
            }
        )
    for role, workers in (seen[0] if seen else {}).items():
        if all(each.get(role) == workers for each in seen):
            return role, workers
    return None


def _parts(
    slots: Sequence[SlotRecord], connections: int, crowd: tuple[str, int] | None
) -> _Parts | None:
    rate, work_us = rate_rps(slots), server_cpu_us(slots)
    waited_s = [
        use.waited_for_cpu_s
        for slot in slots
        for use in (slot.readings.services.values() if slot.readings else ())
    ]
    known_s = [it for it in waited_s if it is not None]
    if rate is None or work_us is None or not known_s or len(known_s) < len(waited_s):
        return None
    return _Parts(
        whole_us=connections / rate * 1e6,
        work_us=work_us,
        cpu_us=sum(known_s) / sum(map(answers, slots)) * 1e6,
        queue_us=(connections - crowd[1]) / rate * 1e6 if crowd else 0.0,
    )


def _interval(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Interval:
    return estimate(values, 0.95).interval(0.95)
