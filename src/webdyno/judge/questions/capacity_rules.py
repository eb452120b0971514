"""What is wrong with a search for capacities, or worth to be told of one.

Trials ask for too much by intent, so that such a search has rules of its own.
"""

from collections.abc import Iterable

from webdyno.judge.long_look import stall_words
from webdyno.judge.point_data import PointData
from webdyno.judge.validity import keepalive
from webdyno.judge.validity.client import client_was_the_limit
from webdyno.judge.validity.responses import NON_2XX, WRONG_BODY
from webdyno.judge.validity.rule import RunRule, note
from webdyno.model.capacity import Level, Objective
from webdyno.model.format import count, duration, number, percent
from webdyno.model.judgement import ValidityWarning
from webdyno.model.long_look import LongLook
from webdyno.model.metrics import CAPACITY, capacity_rps
from webdyno.model.records import SlotRecord

REMARKABLE = 0.5
"""Share of the rounds in which something has to be seen, to be a property of the variant."""
CLIENT_LATE = ", where the load generator itself was still too late: its threads get a CPU late"
FIX_OF_LATE = (
    "Ask for longer times (--slo 'p99<50ms'): `webdyno doctor --calibrate` shows how late the load "
    "generator is here."
)
FIX_OF_NONE = "Ask for what it can do without load: `webdyno load` shows its latency."


def held(slot: SlotRecord) -> bool:
    """Whether all objectives held in a trial."""
    return slot.trial is not None and slot.trial.holds


def _kept_alike(data: PointData) -> Iterable[ValidityWarning]:
    """Connections have to be kept as asked where the load can be carried."""
    passing = _only_held(data)
    return [warning for rule in keepalive.RULES for warning in rule.warnings(passing)]


def _only_held(data: PointData) -> PointData:
    return data.without((slot.round, slot.slot) for slot in data.slots if not held(slot))


def _nothing_holds(data: PointData) -> Iterable[ValidityWarning]:
    """A variant whose responses are beyond the objectives at every rate has no capacity."""
    for variant in data.experiment.variants:
        slots = data.of_variant(variant)
        if not slots or any(map(held, slots)):
            continue
        objectives = objective_words(data)
        lowest = min((slot.trial for slot in slots if slot.trial), key=lambda trial: trial.rate_rps)
        late = lowest.client_limited
        yield ValidityWarning(
            rule="no-capacity",
            severity="invalid",
            variant=variant,
            what=f"variant {variant}: {objectives} did not hold at any arrival rate that was "
            f"tried, down to {number(lowest.rate_rps)} req/s{CLIENT_LATE if late else ''}",
            fix=FIX_OF_LATE if late else FIX_OF_NONE,
        )


def _not_confirmed(data: PointData) -> Iterable[ValidityWarning]:
    """A variant whose objectives don't hold for longer has less capacity than found, or none.

    A stall makes all late that come in it, but those that it ends soon enough for: the same share
    at any rate. Where that is more than an objective allows, there is no capacity.
    """
    for look in data.looks:
        trial = look.trial
        if trial is None or trial.holds:
            continue
        late = None if trial.client_limited else broken_by_stalls(data, look)
        rate = f"{number(round(trial.rate_rps))} req/s"
        if trial.client_limited:
            yield note(
                "not-confirmed",
                look.variant,
                f"at {rate} for {duration(look.looked_s)}, just below what shorter trials found, "
                "the load generator itself was too late: whether the objective holds for longer "
                "isn't known",
                FIX_OF_LATE,
                [CAPACITY],
            )
        elif late:
            yield ValidityWarning(
                rule="no-capacity",
                severity="invalid",
                variant=look.variant,
                what=f"variant {look.variant}: {late.text} can't hold at any arrival rate: "
                f"{stall_words(look)} make what comes in them late, seen in "
                f"{duration(look.looked_s)} at {rate}; short trials lie between them",
                fix="Look in the server's log for what it does then: garbage collection, "
                "compaction, rotation of logs, a lock.",
                metrics=[CAPACITY],
            )
        else:
            beyond = max(beyond / max(of, 1) for beyond, of, _ in Level(0.0, (trial,)).seen)
            yield note(
                "not-confirmed",
                look.variant,
                f"at {rate} for {duration(look.looked_s)}, just below what shorter trials found, "
                f"{percent(beyond)} of the requests were beyond the objective: the capacity is "
                "lower",
                "Let trials be longer: --set capacity.longest_trial_s=20.",
                [CAPACITY],
            )


def broken_by_stalls(data: PointData, look: LongLook) -> Objective | None:
    """Give the first objective that the servers' own stalls alone break; None where none is."""
    if look.trial is None or look.trial.holds or look.trial.client_limited:
        return None
    broken = (
        objective for objective in data.experiment.objectives if _stalls_break(look, objective)
    )
    return next(broken, None)


def _stalls_break(look: LongLook, objective: Objective) -> bool:
    """Whether the servers' own stalls alone make more late than an objective allows."""
    stalls, within_s = look.stalls, objective.within_s
    if stalls is None or within_s is None or not stalls.length_s:
        return False
    late_share = stalls.share.low * max(stalls.length_s - within_s, 0.0) / stalls.length_s
    return late_share > objective.allowed


def _client_ends_it(data: PointData) -> Iterable[ValidityWarning]:
    for variant in data.experiment.variants:
        if data.of_variant(variant) and client_was_the_limit(data, variant):
            yield note(
                "client-limited",
                variant,
                "the load generator could not offer more in time: the capacity is at least what "
                "was found",
                "Give the client more CPUs (--server-cores 1), or let requests leave in groups: "
                "--set load.send_lag_budget=200us.",
                [CAPACITY],
            )


def _wrong_responses(data: PointData) -> Iterable[ValidityWarning]:
    """Wrong responses that the objectives let pass are told all the same."""
    for variant in data.experiment.variants:
        passing = [slot for slot in data.of_variant(variant) if held(slot)]
        for rule in (NON_2XX, WRONG_BODY):
            if bad := [slot for slot in passing if rule.broken(slot)]:
                yield note(
                    rule.name, variant, f"{rule.what(bad)}, as the objectives allow", rule.fix
                )


def _collapses(data: PointData) -> Iterable[ValidityWarning]:
    """Tell servers that fail after an overload at a rate that they had carried before."""
    for variant in data.experiment.variants:
        tried = [slot for slot in data.of_variant(variant) if _is_recovery(slot)]
        down = [slot for slot in tried if not held(slot)]
        if len(down) <= REMARKABLE * len(tried):
            continue
        yield note(
            "does-not-come-back",
            variant,
            f"after an overload it failed at a rate that it had carried before, in "
            f"{count(len(down), 'round')} of {len(tried)}; it was started again after each "
            "overload",
            "Limit what it accepts at once, or shed load in front of it.",
            [CAPACITY],
        )


def _dies(data: PointData) -> Iterable[ValidityWarning]:
    """Tell servers that end under a load, however little or much."""
    for variant in data.experiment.variants:
        trials = [slot.trial for slot in data.of_variant(variant) if slot.trial]
        deadly = [trial for trial in trials if trial.died]
        if not deadly:
            continue
        least = min(deadly, key=lambda trial: trial.rate_rps)
        yield note(
            "dies",
            variant,
            f"{least.died}, in {count(len(deadly), 'trial')}, the lowest one at "
            f"{number(round(least.rate_rps))} req/s; it was started again each time",
            "Its log in the run's folder says why; limit what it accepts at once.",
            [CAPACITY],
        )


def _is_recovery(slot: SlotRecord) -> bool:
    return slot.trial is not None and slot.trial.purpose == "recovery"


def _without_end(data: PointData) -> Iterable[ValidityWarning]:
    """Rounds whose search came to no end have no value; say how many."""
    for variant in data.experiment.variants:
        without = [
            this_round
            for this_round in data.rounds
            if (slots := this_round.of(variant))
            and any(map(held, slots))
            and capacity_rps(slots) is None
        ]
        if without:
            yield note(
                "no-capacity-found",
                variant,
                f"the search came to no end in {count(len(without), 'round')}",
                "Look for what else runs on this machine.",
            )


OWN_RULES = tuple(
    RunRule(name, look)
    for name, look in (
        ("keep-alive", _kept_alike),
        ("no-capacity", _nothing_holds),
        ("not-confirmed", _not_confirmed),
        ("client-limited", _client_ends_it),
        ("wrong-responses", _wrong_responses),
        ("does-not-come-back", _collapses),
        ("dies", _dies),
        ("no-capacity-found", _without_end),
    )
)


def objective_words(data: PointData) -> str:
    return " and ".join(objective.text for objective in data.experiment.objectives)
