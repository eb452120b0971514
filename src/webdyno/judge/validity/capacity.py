"""What a search for the capacity has to say for itself: its trials break other rules by intent."""

from collections.abc import Iterable

from webdyno.judge.long_look import stall_words
from webdyno.judge.point_data import PointData
from webdyno.judge.validity import keepalive
from webdyno.judge.validity.answers import NON_2XX, WRONG_BODY
from webdyno.judge.validity.rule import RunRule, note
from webdyno.model.capacity import Level, Objective, is_at_least
from webdyno.model.format import count, duration, number, percent
from webdyno.model.judgement import Finding
from webdyno.model.long_look import LongLook
from webdyno.model.metrics import CAPACITY, capacity_rps
from webdyno.model.records import SlotRecord

REMARKABLE = 0.5
"""Share of the blocks in which something has to be seen, to be a property of the arm."""


CLIENT_LATE = ", where the load generator itself was still too late: its threads get a CPU late"
REMEDY_OF_LATE = (
    "Take a machine that is less busy, or one whose CPUs aren't lent to others, or ask for longer "
    "times (--slo 'p99<50ms'): `webdyno calibrate` shows how late the load generator is here."
)
REMEDY_OF_NONE = (
    "Ask for what the arm can do when nobody else is there (see its response times in "
    "`webdyno load`), or look for errors with `webdyno up` and curl."
)


def held(slot: SlotRecord) -> bool:
    """Whether all objectives held in a trial."""
    return slot.trial is not None and slot.trial.holds


def client_was_the_limit(data: PointData, arm: str) -> bool:
    """Whether in more than half of the blocks the load generator ended an arm's search upwards."""
    blocks = [[it.trial for it in block.of(arm) if it.trial] for block in data.blocks]
    ended = [is_at_least(trials) for trials in blocks if trials]
    return sum(ended) > REMARKABLE * len(ended)


def _kept_alike(data: PointData) -> Iterable[Finding]:
    """Connections have to be kept as asked where the load can be carried."""
    passing = _only_held(data)
    return [it for rule in keepalive.RULES for it in rule.findings(passing)]


def _only_held(data: PointData) -> PointData:
    return data.without((it.block, it.slot) for it in data.slots if not held(it))


def _nothing_holds(data: PointData) -> Iterable[Finding]:
    """An arm whose answers are beyond the objectives at every rate has no capacity."""
    asked = data.experiment.capacity
    for arm in data.experiment.arms:
        slots = data.of_arm(arm)
        if not slots or asked is None or any(map(held, slots)):
            continue
        lowest = min((it.trial for it in slots if it.trial), key=lambda it: it.rate_rps)
        late = lowest.client_limited
        yield Finding(
            rule="no-capacity",
            severity="invalid",
            arm=arm,
            what=f"arm {arm}: {' and '.join(asked.slo)} did not hold at any rate that was tried, "
            f"down to {number(lowest.rate_rps)} requests per second{CLIENT_LATE if late else ''}",
            remedy=REMEDY_OF_LATE if late else REMEDY_OF_NONE,
        )


def _not_confirmed(data: PointData) -> Iterable[Finding]:
    """An arm whose objectives don't hold for longer has less capacity than found, or none.

    A stall makes all late that come in it, but those that it ends soon enough for: the same share
    at any rate. Where that is more than an objective allows, there is no capacity.
    """
    asked = data.experiment.capacity
    for look in data.looks:
        trial = look.trial
        if asked is None or trial is None or trial.holds:
            continue
        late = [it for it in asked.objectives if it.within_s and _stalls_break(look, it)]
        at = f"{number(round(trial.rate_rps))} requests per second"
        if trial.client_limited:
            yield note(
                "not-confirmed",
                look.arm,
                f"at {at} for {duration(look.looked_s)}, just below what shorter trials found, the "
                "load generator itself was too late: whether the objective holds for longer isn't "
                "known",
                REMEDY_OF_LATE,
                [CAPACITY],
            )
        elif late:
            yield Finding(
                rule="no-capacity",
                severity="invalid",
                arm=look.arm,
                what=f"arm {look.arm}: {late[0].text} can't hold at any rate: {stall_words(look)} "
                f"make what comes in them late, seen in {duration(look.looked_s)} at {at}; short "
                "trials lie between them",
                remedy="Look in the server's log for what it does then: garbage collection, "
                "compaction, rotation of logs, a lock.",
                metrics=[CAPACITY],
            )
        else:
            beyond = max(beyond / max(of, 1) for beyond, of, _ in Level(0.0, (trial,)).seen)
            yield note(
                "not-confirmed",
                look.arm,
                f"at {at} for {duration(look.looked_s)}, just below what shorter trials found, "
                f"{percent(beyond)} of the requests were beyond the objective: the capacity is "
                "lower",
                "Let trials be longer: --set capacity.longest_trial_s=20.",
                [CAPACITY],
            )


def _stalls_break(look: LongLook, objective: Objective) -> bool:
    """Whether the servers' own stalls alone make more late than an objective allows."""
    stalls, within_s = look.stalls, objective.within_s
    if stalls is None or within_s is None or not stalls.length_s:
        return False
    late_share = stalls.share.low * max(stalls.length_s - within_s, 0.0) / stalls.length_s
    return late_share > objective.allowed


def _client_ends_it(data: PointData) -> Iterable[Finding]:
    for arm in data.experiment.arms:
        if data.of_arm(arm) and client_was_the_limit(data, arm):
            yield note(
                "client-bound",
                arm,
                "the load generator could not offer more in time: the capacity is at least what "
                "was found",
                "Give the client more CPUs, as with --server-cores 1 on a machine of several, or "
                "let requests leave in groups: --set load.send_lag_budget=200us.",
                [CAPACITY],
            )


def _wrong_answers(data: PointData) -> Iterable[Finding]:
    """Wrong answers that the objectives let pass are told all the same."""
    for arm in data.experiment.arms:
        passing = [slot for slot in data.of_arm(arm) if held(slot)]
        for rule in (NON_2XX, WRONG_BODY):
            if bad := [slot for slot in passing if rule.broken(slot)]:
                yield note(
                    rule.name, arm, f"{rule.what(bad)}, as the objectives allow", rule.remedy
                )


def _collapses(data: PointData) -> Iterable[Finding]:
    """Tell servers that fail after an overload at a rate that they had carried before."""
    for arm in data.experiment.arms:
        tried = [slot for slot in data.of_arm(arm) if _is_recovery(slot)]
        down = [slot for slot in tried if not held(slot)]
        if len(down) <= REMARKABLE * len(tried):
            continue
        yield note(
            "does-not-come-back",
            arm,
            f"after an overload it failed at a rate that it had carried before, in "
            f"{count(len(down), 'block')} of {len(tried)}; it was started anew after each overload",
            "Its queue, its workers or its memory don't recover by themselves: limit what it "
            "accepts at once, or shed load in front of it.",
            [CAPACITY],
        )


def _is_recovery(slot: SlotRecord) -> bool:
    return slot.trial is not None and slot.trial.purpose == "recovery"


def _without_end(data: PointData) -> Iterable[Finding]:
    """Blocks whose search came to no end have no value; say how many."""
    for arm in data.experiment.arms:
        without = [
            block
            for block in data.blocks
            if (slots := block.of(arm)) and any(map(held, slots)) and capacity_rps(slots) is None
        ]
        if without:
            yield note(
                "no-capacity-found",
                arm,
                f"the search came to no end in {count(len(without), 'block')}",
                "What the arm carries changes all the time: look for what else runs here.",
            )


RULES = tuple(
    RunRule(name, look)
    for name, look in (
        ("keep-alive", _kept_alike),
        ("no-capacity", _nothing_holds),
        ("not-confirmed", _not_confirmed),
        ("client-bound", _client_ends_it),
        ("wrong-answers", _wrong_answers),
        ("does-not-come-back", _collapses),
        ("no-capacity-found", _without_end),
    )
)
