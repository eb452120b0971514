"""What was saturated just below a variant's capacity, or at it.

Requests that the servers are working on, and those that wait in front of them, are the rate times
the mean time that a response takes once it was asked for (Little, Operations Research 1961). Where
they are as many as a service has workers, all of these have one; where they are as many as there
are connections, the next request waits for one. What servers count as the most since their start
says no more than that it may be so: an overload that was tried before counts as well.
"""

from collections.abc import Callable, Iterator, Sequence
from statistics import median

from webdyno.core import format as text
from webdyno.core.base import memory_words
from webdyno.core.capacity import Trial
from webdyno.core.explain import CountedResource, ResourceUse, Saturation
from webdyno.core.load_result import LoadResult
from webdyno.core.metrics import CAPACITY, METRICS
from webdyno.core.readings import CpuUse, Readings, ServerStatus
from webdyno.core.records import SlotRecord
from webdyno.evidence.point_data import PointData, derived
from webdyno.validity.client import client_was_the_limit
from webdyno.validity.network import LINK_LIMIT, link_share
from webdyno.validity.servers import MEMORY_LIMIT

NEAR = 0.9
"""Trials from this share of a round's capacity on show what the servers do there."""
FULL = 0.9
"""Share from which on there is no more of it: what arrives at random needs some room."""
AT_THE_LIMIT = "What was saturated just below each capacity"


@derived
def saturation(data: PointData) -> list[Saturation]:
    """Report what variants used near their capacities, where there are trials near these."""
    saturations = (_saturation_of(data, variant) for variant in data.experiment.variants)
    return [each for each in saturations if each]


def _saturation_of(data: PointData, variant: str) -> Saturation | None:
    """Report what a variant used near its capacities; None where there is no trial near these."""
    capacities_rps = data.values(variant, METRICS[CAPACITY])
    near = [
        slot
        for this_round in data.rounds
        if (found_rps := capacities_rps.get(this_round.record.round))
        for slot in this_round.of(variant)
        if slot.trial and _is_near(slot.trial, found_rps)
    ]
    if not near:
        return None
    load = data.experiment.load_of(variant)
    at_once = load.connections * load.streams
    quota_cpus = data.experiment.variants[variant].cpus
    client_limits = client_was_the_limit(data, variant)
    uses = [
        use
        for slot in near
        for use in (
            *_of_servers(slot, quota_cpus),
            *_of_connections(slot.load, at_once),
            *_of_client(slot.load, limits=client_limits),
        )
    ]
    return Saturation(variant=variant, trials=len(near), uses=list(_together(uses)))


def _is_near(trial: Trial, capacity_rps: float) -> bool:
    at_or_below = NEAR * capacity_rps <= trial.rate_rps <= capacity_rps
    return at_or_below and trial.purpose == "search"


def _together(uses: Sequence[ResourceUse]) -> Iterator[ResourceUse]:
    """Give one line for each thing, of all trials that say of it."""
    for resource, role in dict.fromkeys((use.resource, use.role) for use in uses):
        same = [use for use in uses if (use.resource, use.role) == (resource, role)]
        yield ResourceUse(
            resource=resource,
            role=role,
            share=median(use.share for use in same),
            whole=same[-1].whole,
            at_limit=2 * sum(use.at_limit for use in same) > len(same),
        )


def _of_servers(slot: SlotRecord, quota_cpus: float | None) -> Iterator[ResourceUse]:
    readings = slot.readings
    if readings is None:
        return
    yield from _of_cpus(readings)
    if quota_cpus:
        used_cpus = slot.servers.cpu_s / readings.host.took_s if readings.host.took_s else 0.0
        yield _use("cpu-quota", used_cpus / quota_cpus, whole=quota_cpus)
    for role, status in readings.status.items():
        yield from _of_workers(role, status, slot.load)
    if memory := readings.memory:
        share = memory.peak_bytes / memory.limit_bytes if memory.limit_bytes else 1.0
        reached = MEMORY_LIMIT.broken(slot)
        yield _use("memory", share, whole=memory.limit_bytes, at_limit=reached)
    if readings.network.link_bytes_per_s:
        share = link_share(readings)
        yield _use("link", share, at_limit=share > LINK_LIMIT)


def _of_cpus(readings: Readings) -> Iterator[ResourceUse]:
    """Report all the servers' CPUs; of the busiest one where not all of them are at work."""
    share = _busy_share(readings.host.servers)
    if share is None:
        return
    yield _use("servers-cpus", share)
    busiest = readings.host.busiest_server_cpu
    if busiest is not None and share < FULL:
        yield _use("busiest-cpu", busiest)


def _busy_share(cpus: CpuUse) -> float | None:
    return 1 - cpus.idle_s / cpus.total_s if cpus.total_s else None


def _of_workers(role: str, status: ServerStatus, load: LoadResult) -> Iterator[ResourceUse]:
    """Report workers that have a request, or a connection that is kept."""
    under_way = requests_under_way(load)
    if not status.workers or (status.busy is None and under_way is None):
        return
    at_work = under_way or 0.0
    if status.most_busy is not None:
        at_work = min(at_work, status.most_busy)
    share = max(status.busy or 0.0, at_work) / status.workers
    yield _use("workers", share, role=role, whole=status.workers)


def _of_connections(load: LoadResult, at_once: int) -> Iterator[ResourceUse]:
    under_way = requests_under_way(load)
    if under_way is not None:
        yield _use("connections", under_way / at_once, whole=at_once)


def _of_client(load: LoadResult, *, limits: bool) -> Iterator[ResourceUse]:
    if not load.client.busy_waits:
        yield _use("client", load.client.busy, at_limit=limits)


def requests_under_way(load: LoadResult) -> float | None:
    """Give how many requests were sent and not answered yet, on average; None if not known."""
    mean_us = load.service_time_us.mean
    if mean_us is None or not load.measured_s:
        return None
    return load.requests.completed / load.measured_s * mean_us / 1e6


def _use(
    resource: CountedResource,
    share: float,
    *,
    role: str | None = None,
    whole: float | None = None,
    at_limit: bool | None = None,
) -> ResourceUse:
    return ResourceUse(
        resource=resource,
        role=role,
        share=min(max(share, 0.0), 1.0),
        whole=whole,
        at_limit=share >= FULL if at_limit is None else at_limit,
    )


def what_was_full(saturations: Sequence[Saturation]) -> Iterator[str]:
    """Say of each variant what there was no more of.

    Of what there was least where that is nothing.
    """
    for each in saturations:
        if each.limits:
            used_up = " and ".join(WORDS[use.resource](use) for use in each.limits)
            yield f"{each.variant}: {used_up}{_lower_bound(each)}."
        elif each.uses:
            nearest = WORDS[each.nearest.resource](each.nearest)
            yield (
                f"{each.variant}: no resource (closest: {nearest}). Random arrivals queue, and "
                "late responses break the objective, before a resource is full."
            )


def _lower_bound(full: Saturation) -> str:
    """Say what follows where only the load was used up; more connections may show more."""
    if not full.is_lower_bound:
        return ""
    limits = {use.resource: use for use in full.limits}
    connections = limits.get("connections")
    more = f"; try -c {2 * connections.whole:.0f}" if connections and connections.whole else ""
    return f", so its capacity is a lower bound{more}"


def _percent(use: ResourceUse) -> str:
    return text.percent(use.share)


def _whole(use: ResourceUse) -> str:
    return text.number(use.whole or 0.0)


def _client(use: ResourceUse) -> str:
    late = ", too late to offer more" if use.at_limit else ""
    return f"the load generator ({_percent(use)} busy{late})"


WORDS: dict[CountedResource, Callable[[ResourceUse], str]] = {
    "servers-cpus": lambda use: f"the servers' CPUs ({_percent(use)} busy)",
    "busiest-cpu": lambda use: f"the busiest of the servers' CPUs ({_percent(use)} busy)",
    "cpu-quota": lambda use: f"its quota of {use.whole:g} CPUs ({_percent(use)} used)",
    "workers": lambda use: f"the {_whole(use)} workers of {use.role} ({_percent(use)} busy)",
    "connections": lambda use: f"the load's {_whole(use)} connections ({_percent(use)} in use)",
    "memory": lambda use: (
        f"the memory limit of {memory_words(int(use.whole or 0))} ({_percent(use)} used)"
    ),
    "link": lambda use: f"the link ({_percent(use)} full)",
    "client": _client,
}
"""By what it is: its name, and how much of it was in use."""
