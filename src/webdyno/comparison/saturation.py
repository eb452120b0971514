"""What was saturated just below a variant's capacity, or at it, and what came of asking for more.

Requests that servers work on, and those that wait in front of them, are the rate times the mean
time that a response takes once it was requested (Little, Operations Research 1961). Where they are
as many as a service has workers, all of these have one; where they are as many as there are
connections, the next request waits for one. What servers count as the most since their start is an
upper bound alone, since it includes earlier overloads.
"""

from collections.abc import Callable, Iterator, Sequence
from statistics import median

from webdyno.core import format as text
from webdyno.core.base import memory_words
from webdyno.core.capacity import Trial
from webdyno.core.findings import CountedResource, Overload, OverRounds, ResourceUse, Saturation
from webdyno.core.load_result import LoadResult
from webdyno.core.metrics import CAPACITY, METRICS
from webdyno.core.objectives import Objective
from webdyno.core.readings import ServerStatus
from webdyno.core.records import SlotRecord
from webdyno.evidence.point_data import PointData, compute_once
from webdyno.validity.client import client_was_the_limit
from webdyno.validity.connections import LINK_LIMIT, link_share
from webdyno.validity.servers import MEMORY_LIMIT

NEAR = 0.9
"""Trials from this share of a round's capacity on show what the servers do there."""
FULL = 0.9
"""Share from which on there is no more of it: what arrives at random needs some room."""
AT_THE_LIMIT = "What was saturated just below each capacity"

FEWEST_FAILED = 2
"""In a window: a single request may fail for any reason."""


@compute_once
def saturation(data: PointData) -> list[Saturation]:
    """Return what variants used near their capacities, where there are trials near these."""
    saturations = []
    for variant in data.experiment.variants:
        load = data.experiment.load_of(variant)
        at_once = load.connections * load.streams
        quota_cpus = data.experiment.variants[variant].cpus
        client_limits = client_was_the_limit(data, variant)
        near = _trials_near_capacity(data, variant)
        uses = list[ResourceUse]()
        for slot in near:
            uses += _of_servers(slot, quota_cpus)
            if (under_way := requests_under_way(slot.load)) is not None:
                uses.append(_use("connections", under_way / at_once, whole=at_once))
            if not (client := slot.load.client).busy_waits:
                uses.append(_use("client", client.busy, at_limit=client_limits))
        if near:
            by_resource = list(_together(uses))
            saturations.append(Saturation(variant=variant, trials=len(near), uses=by_resource))
    return saturations


def _trials_near_capacity(data: PointData, variant: str) -> list[SlotRecord]:
    capacities_rps = data.values(variant, METRICS[CAPACITY])
    return [
        slot
        for this_round in data.rounds
        if (found_rps := capacities_rps.get(this_round.record.round))
        for slot in this_round.of(variant)
        if slot.trial and slot.trial.purpose == "search"
        if NEAR * found_rps <= slot.trial.rate_rps <= found_rps
    ]


def _together(uses: Sequence[ResourceUse]) -> Iterator[ResourceUse]:
    """Sum up the trials by resource and role."""
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
    cpus, busiest = readings.host.servers, readings.host.busiest_server_cpu
    if cpus.total_s:
        share = 1 - cpus.idle_s / cpus.total_s
        yield _use("servers-cpus", share)
        if busiest is not None and share < FULL:
            yield _use("busiest-cpu", busiest)
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


def _of_workers(role: str, status: ServerStatus, load: LoadResult) -> Iterator[ResourceUse]:
    under_way = requests_under_way(load)
    if not status.workers or (status.busy is None and under_way is None):
        return
    at_work = under_way or 0.0
    if status.most_busy is not None:
        at_work = min(at_work, status.most_busy)
    share = max(status.busy or 0.0, at_work) / status.workers
    yield _use("workers", share, role=role, whole=status.workers)


def requests_under_way(load: LoadResult) -> float | None:
    """Return how many requests were sent and not answered yet, on average; None if not known."""
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
    """Describe what of each variant was full, or what was closest to it; alike ones together."""
    alike: dict[str, list[str]] = {}
    for each in saturations:
        if said := _full_words(each):
            alike.setdefault(said, []).append(each.variant)
    yield from (f"{text.listed(variants)}: {said}" for said, variants in alike.items())


def _full_words(each: Saturation) -> str:
    if each.limits:
        used_up = " and ".join(WORDS[use.resource](use) for use in each.limits)
        if not each.is_lower_bound:
            return f"{used_up}."
        limits = {use.resource: use for use in each.limits}  # only the load was used up
        at_once = limits["connections"].whole if "connections" in limits else None
        more = f"; try -c {2 * at_once:.0f}" if at_once else ""
        return f"{used_up}, so its capacity is a lower bound{more}."
    if not each.uses:
        return ""
    nearest = [each.nearest, *(use for use in each.uses if use.resource == "servers-cpus")]
    uses = text.listed(dict.fromkeys(WORDS[use.resource](use) for use in nearest))
    return (
        f"no resource (closest: {uses}). Random arrivals queue, and late responses break the "
        "objective, before a resource is full."
    )


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


def settled_s(load: LoadResult, rate_rps: float, objectives: Sequence[Objective]) -> float | None:
    """Return after how long a constant load met its objectives; None where it didn't at its end."""
    # What is due and not answered is the queue that the next request waits for (Little's law).
    waits_s = [
        objective.whole_within_s for objective in objectives if objective.whole_within_s is not None
    ]
    most_waiting = rate_rps * max(waits_s) if waits_s else float("inf")
    may_fail = max(objective.allowed for objective in objectives)
    done, settled = 0, 0.0
    for window in load.windows:
        end_s = window.at_s + window.length_s
        done += window.completed + window.failed
        fails = window.failed > may_fail * (window.completed + window.failed)
        if rate_rps * end_s - done > most_waiting or (fails and window.failed >= FEWEST_FAILED):
            settled = end_s
    over_s = load.windows[-1].at_s if load.windows else 0.0
    due = max(rate_rps * load.measured_s, 1.0)
    if load.failed_late >= FEWEST_FAILED and load.failed_late > may_fail * due:
        return None
    return settled if settled <= over_s else None


def overloads(data: PointData) -> Iterator[Overload]:
    """Yield what came of each load beyond its capacity, by variant and multiple of it."""
    for variant in data.experiment.variants:
        slots = data.of_variant(variant)
        multiples = {slot.trial.times for slot in slots if slot.trial and slot.trial.times}
        for times in sorted(multiples):
            if overload := _overload(data, variant, times, slots):
                yield overload


def _overload(
    data: PointData, variant: str, times: float, slots: Sequence[SlotRecord]
) -> Overload | None:
    capacities_rps = data.values(variant, METRICS[CAPACITY])
    seen = [
        (slot, slot.trial, capacities_rps[slot.round])
        for slot in slots
        if _is(slot.trial, "overload", times) and slot.round in capacities_rps
        if slot.trial and not slot.trial.client_limited
    ]
    if not seen:
        return None
    rounds = {slot.round for slot, _, _ in seen}
    returns = [slot for slot in slots if _is(slot.trial, "return", times) and slot.round in rounds]
    back_s = [slot.trial.back_s for slot in returns if slot.trial and slot.trial.back_s is not None]
    timeout_s = data.experiment.load_of(variant).timeout_s
    failed_shares = [  # a request that was due at the edge may be too much
        min(_count_failed(slot.load, timeout_s) / max(trial.asked, 1), 1.0)
        for slot, trial, _ in seen
    ]
    return Overload(
        variant=variant,
        times=times,
        rounds=len(seen),
        offered_rps=median(trial.rate_rps for _, trial, _ in seen),
        goodput_rps=OverRounds.of([trial.goodput_rps for _, trial, _ in seen]),
        of_capacity=OverRounds.of([trial.goodput_rps / found_rps for _, trial, found_rps in seen]),
        failed=OverRounds.of(failed_shares),
        p50_us=OverRounds.of([p50 for slot, _, _ in seen if (p50 := slot.load.latency_us.p50)]),
        p99_us=OverRounds.of([p99 for slot, _, _ in seen if (p99 := slot.load.latency_us.p99)]),
        back=len(back_s),
        back_s=OverRounds.of(back_s),
        died=sum(bool(trial.died) for _, trial, _ in seen),
    )


def _count_failed(load: LoadResult, timeout_s: float) -> int:
    """Count the failures of requests that were due in the window.

    What times out does so that much later: after the window, where timeouts are as long as ramp-up
    and window. Those that end in the window were due in the ramp-up then.
    """
    if timeout_s < max(load.ramp_up_s, load.measured_s):
        return load.failures.total
    return load.failures.total - (load.failures.timeout or 0) + load.failed_late


def _is(trial: Trial | None, purpose: str, times: float) -> bool:
    return trial is not None and trial.purpose == purpose and trial.times == times
