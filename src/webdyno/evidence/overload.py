"""What variants do when more is asked of them than they can carry, and when they come back."""

from collections.abc import Iterator, Sequence
from statistics import median

from webdyno.core.capacity import Objective, Trial
from webdyno.core.explain import Overload, OverRounds
from webdyno.core.load_result import LoadResult
from webdyno.core.metrics import CAPACITY, METRICS
from webdyno.core.records import SlotRecord
from webdyno.evidence.point_data import PointData

FEWEST_FAILED = 2
"""In a window: a single request may fail for any reason."""


def settled_s(load: LoadResult, rate_rps: float, objectives: Sequence[Objective]) -> float | None:
    """Give after how long a constant load met its objectives; None where it didn't at its end.

    Of an open loop nothing is lost: what was due and isn't answered yet is the queue, and the next
    request waits for so many (Little's law).
    """
    waits_s = [objective.within_s for objective in objectives if objective.within_s is not None]
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
    """Report for each variant and each multiple of its capacity what came of asking for it."""
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
    return Overload(
        variant=variant,
        times=times,
        rounds=len(seen),
        offered_rps=median(trial.rate_rps for _, trial, _ in seen),
        goodput_rps=OverRounds.of([trial.goodput_rps for _, trial, _ in seen]),
        of_capacity=OverRounds.of([trial.goodput_rps / found_rps for _, trial, found_rps in seen]),
        failed=OverRounds.of(
            [
                _failed_share(slot.load, trial, data.experiment.load_of(variant).timeout_s)
                for slot, trial, _ in seen
            ]
        ),
        p50_us=OverRounds.of([p50 for slot, _, _ in seen if (p50 := slot.load.latency_us.p50)]),
        p99_us=OverRounds.of([p99 for slot, _, _ in seen if (p99 := slot.load.latency_us.p99)]),
        back=len(back_s),
        back_s=OverRounds.of(back_s),
        died=sum(bool(trial.died) for _, trial, _ in seen),
    )


def _failed_share(load: LoadResult, trial: Trial, timeout_s: float) -> float:
    """Give the share of failures among what was requested; one due at the edge may be too much."""
    return min(_failed(load, timeout_s) / max(trial.asked, 1), 1.0)


def _failed(load: LoadResult, timeout_s: float) -> int:
    """Count the failures of requests that were due in the window.

    What times out does so that much later: after the window, where timeouts are as long as ramp-up
    and window. Those that end in the window were due in the ramp-up then.
    """
    if timeout_s < max(load.ramp_up_s, load.measured_s):
        return load.failures.total
    return load.failures.total - (load.failures.timeout or 0) + load.failed_late


def _is(trial: Trial | None, purpose: str, times: float) -> bool:
    return trial is not None and trial.purpose == purpose and trial.times == times
