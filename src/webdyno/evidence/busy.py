"""How busy servers' CPUs were under load, and whether throughput says anything of them.

At full speed a client sends the next request once it has the last response. Where servers keep less
than half a CPU busy so, no thread of theirs is at work most of the time: throughput is connections
over what a response waits for (Little's law), on the way, in the client, for CPUs that others have.
"""

from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import NamedTuple

from webdyno.core.format import percent
from webdyno.core.records import SlotRecord
from webdyno.evidence.point_data import PointData

FULL = 0.9
"""Share of its CPUs' time from which a server or a client counts as saturated."""
MUCH_TAKEN = 0.1
"""Share of the servers' CPUs that others have from which on absolute figures are those of a busy
machine."""
HALF = 0.5
"""Share of the CPUs, and CPUs, below which not even a single thread works most of the time."""


class Busy(NamedTuple):
    """How much of its CPUs a variant used: the medians of its slots."""

    share: float
    """Of what others left."""
    of_all: float
    cpus: float

    @property
    def is_full(self) -> bool:
        return self.share >= FULL

    @property
    def is_mostly_idle(self) -> bool:
        return self.share < HALF and self.share * self.cpus < HALF

    @property
    def is_by_others(self) -> bool:
        """Whether others had more of the CPUs than the servers."""
        return self.of_all < self.share / 2


def busy_by_variant(data: PointData) -> dict[str, Busy | None]:
    """Return it of each variant with slots; None of those on machines that can't be seen."""
    slots = {variant: data.of_variant(variant) for variant in data.experiment.variants}
    unseen = data.round_trips_s
    return {
        variant: None if variant in unseen else _busy(data, mine)
        for variant, mine in slots.items()
        if mine
    }


def are_mostly_idle(data: PointData, busy: Mapping[str, Busy | None]) -> bool:
    """Whether no variant's servers had much to do, although they were asked at full speed."""
    load = data.experiment.load_of_slots
    at_full_speed = load.loop == "closed" and not load.think_s
    idle = [each is not None and each.is_mostly_idle for each in busy.values()]
    return at_full_speed and bool(idle) and all(idle)


def busy_range(known: Iterable[Busy]) -> str:
    """Return how busy they were: `42% to 44%`."""
    shares = [each.share for each in known]
    least, most = (percent(end(shares)) for end in (min, max))
    return most if least == most else f"{least} to {most}"


def mostly_idle_words(known: Iterable[Busy]) -> str:
    """Return what there is to know of throughput where servers are mostly idle."""
    waits = "what they or the client wait for sets throughput"
    return f"servers mostly idle ({busy_range(known)} busy): {waits}"


def _busy(data: PointData, slots: Sequence[SlotRecord]) -> Busy:
    cpus = data.head.cpus_of(slots[0].variant) or 1
    share = median(_used_share(slot, cpus) for slot in slots)
    if data.head.machine.split.shared:
        return Busy(share, share, cpus)  # the client is no one else
    return Busy(share, median(_used_of_all(slot, cpus) for slot in slots), cpus)


def _used_share(slot: SlotRecord, cpus: float) -> float:
    used_s, took_s = slot.servers.cpu_s, slot.load.all_of_it.length_s
    left_s = took_s * cpus
    if slot.readings:
        left_s = min(left_s, used_s + slot.readings.host.servers.idle_s)
    return min(used_s / left_s, 1.0) if left_s else 0.0


def _used_of_all(slot: SlotRecord, cpus: float) -> float:
    took_s = slot.load.all_of_it.length_s
    return slot.servers.cpu_s / took_s / cpus if took_s else 0.0
