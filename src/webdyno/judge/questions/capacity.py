"""How much arms can take: arms that a search for the capacity loads, and a single one of them.

Whatever else is asked, an experiment may look for capacities instead of measuring in slots. Trials
ask for too much by intent, so that such a search has rules of its own.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from math import log1p
from statistics import geometric_mean
from typing import ClassVar

import numpy as np

from webdyno.judge.comparison import ALPHA, SEQUENTIAL_FACTOR, arm_value
from webdyno.judge.interval import estimate
from webdyno.judge.long_look import stall_words
from webdyno.judge.point_data import PointData
from webdyno.judge.questions.compare import Loading, Question
from webdyno.judge.stop import Stop, used_up
from webdyno.judge.validity import FIRST_RULES, keepalive, run, valid_for
from webdyno.judge.validity.answers import NON_2XX, WRONG_BODY
from webdyno.judge.validity.client import client_was_the_limit
from webdyno.judge.validity.rule import Rule, RunRule, note
from webdyno.model.base import Interval
from webdyno.model.capacity import CapacitySettings, Level, Objective
from webdyno.model.experiment import Experiment
from webdyno.model.format import count, duration, number, percent, quantity_bounds
from webdyno.model.judgement import ArmValue, Judgement, ValidityWarning, Verdict
from webdyno.model.long_look import LongLook
from webdyno.model.metrics import CAPACITY, capacity_rps, metric_rule
from webdyno.model.records import SlotRecord

REMARKABLE = 0.5
"""Share of the blocks in which something has to be seen, to be a property of the arm."""
CONFIRMED_S = 30.0
"""So long the objectives have to hold just below a capacity that was found."""
CONFIRMED_SHARE = 0.95
"""Of a capacity that was found: intervals of it are some per cent wide."""
SEARCH_TRIALS = 10
"""What a search takes in all, in times of its longest trials, about."""

CLIENT_LATE = ", where the load generator itself was still too late: its threads get a CPU late"
FIX_OF_LATE = (
    "Take a machine that is less busy, or one whose CPUs aren't lent to others, or ask for longer "
    "times (--slo 'p99<50ms'): `webdyno calibrate` shows how late the load generator is here."
)
FIX_OF_NONE = (
    "Ask for what the arm can do when nobody else is there (see its response times in "
    "`webdyno load`), or look for errors with `webdyno up` and curl."
)


def held(slot: SlotRecord) -> bool:
    """Whether all objectives held in a trial."""
    return slot.trial is not None and slot.trial.holds


def _kept_alike(data: PointData) -> Iterable[ValidityWarning]:
    """Connections have to be kept as asked where the load can be carried."""
    passing = _only_held(data)
    return [it for rule in keepalive.RULES for it in rule.warnings(passing)]


def _only_held(data: PointData) -> PointData:
    return data.without((it.block, it.slot) for it in data.slots if not held(it))


def _nothing_holds(data: PointData) -> Iterable[ValidityWarning]:
    """An arm whose answers are beyond the objectives at every rate has no capacity."""
    for arm in data.experiment.arms:
        slots = data.of_arm(arm)
        if not slots or any(map(held, slots)):
            continue
        objectives = " and ".join(it.text for it in data.experiment.objectives)
        lowest = min((it.trial for it in slots if it.trial), key=lambda it: it.rate_rps)
        late = lowest.client_limited
        yield ValidityWarning(
            rule="no-capacity",
            severity="invalid",
            arm=arm,
            what=f"arm {arm}: {objectives} did not hold at any rate that was tried, "
            f"down to {number(lowest.rate_rps)} requests per second{CLIENT_LATE if late else ''}",
            fix=FIX_OF_LATE if late else FIX_OF_NONE,
        )


def _not_confirmed(data: PointData) -> Iterable[ValidityWarning]:
    """An arm whose objectives don't hold for longer has less capacity than found, or none.

    A stall makes all late that come in it, but those that it ends soon enough for: the same share
    at any rate. Where that is more than an objective allows, there is no capacity.
    """
    for look in data.looks:
        trial = look.trial
        if trial is None or trial.holds:
            continue
        timed = [it for it in data.experiment.objectives if it.within_s]
        late = [it for it in timed if _stalls_break(look, it)]
        at = f"{number(round(trial.rate_rps))} requests per second"
        if trial.client_limited:
            yield note(
                "not-confirmed",
                look.arm,
                f"at {at} for {duration(look.looked_s)}, just below what shorter trials found, the "
                "load generator itself was too late: whether the objective holds for longer isn't "
                "known",
                FIX_OF_LATE,
                [CAPACITY],
            )
        elif late:
            yield ValidityWarning(
                rule="no-capacity",
                severity="invalid",
                arm=look.arm,
                what=f"arm {look.arm}: {late[0].text} can't hold at any rate: {stall_words(look)} "
                f"make what comes in them late, seen in {duration(look.looked_s)} at {at}; short "
                "trials lie between them",
                fix="Look in the server's log for what it does then: garbage collection, "
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


def _client_ends_it(data: PointData) -> Iterable[ValidityWarning]:
    for arm in data.experiment.arms:
        if data.of_arm(arm) and client_was_the_limit(data, arm):
            yield note(
                "client-limited",
                arm,
                "the load generator could not offer more in time: the capacity is at least what "
                "was found",
                "Give the client more CPUs, as with --server-cores 1 on a machine of several, or "
                "let requests leave in groups: --set load.send_lag_budget=200us.",
                [CAPACITY],
            )


def _wrong_answers(data: PointData) -> Iterable[ValidityWarning]:
    """Wrong answers that the objectives let pass are told all the same."""
    for arm in data.experiment.arms:
        passing = [slot for slot in data.of_arm(arm) if held(slot)]
        for rule in (NON_2XX, WRONG_BODY):
            if bad := [slot for slot in passing if rule.broken(slot)]:
                yield note(rule.name, arm, f"{rule.what(bad)}, as the objectives allow", rule.fix)


def _collapses(data: PointData) -> Iterable[ValidityWarning]:
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


def _without_end(data: PointData) -> Iterable[ValidityWarning]:
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


OWN_RULES = tuple(
    RunRule(name, look)
    for name, look in (
        ("keep-alive", _kept_alike),
        ("no-capacity", _nothing_holds),
        ("not-confirmed", _not_confirmed),
        ("client-limited", _client_ends_it),
        ("wrong-answers", _wrong_answers),
        ("does-not-come-back", _collapses),
        ("no-capacity-found", _without_end),
    )
)


@dataclass(frozen=True)
class CapacitySearch(Loading):
    """Arms that are loaded in trials, at rates that a search chooses."""

    settings: CapacitySettings

    shows: ClassVar[str] = "capacity"
    has_windows: ClassVar[bool] = False
    look_s: ClassVar[float] = CONFIRMED_S

    def rules(self) -> tuple[Rule, ...]:
        """Give those of trials, which ask for too much by intent."""
        return (*FIRST_RULES, *OWN_RULES, run.FEW_BLOCKS)

    def working_arms(self, data: PointData) -> Collection[str]:
        """Name the arms of which a capacity was found."""
        rule = metric_rule(data.measure.decide_on)
        return {arm for arm in data.experiment.arms if data.values(arm, rule)}

    def block_s(self, arms: int) -> float | None:
        """Give how long a search takes for so many arms."""
        return arms * SEARCH_TRIALS * self.settings.deciding_s

    def look_rate_rps(self, data: PointData, arm: str) -> float | None:
        """Give a rate just below the capacity that the blocks found of an arm, if they found one.

        There the objectives have to hold for longer.
        """
        found = data.values(arm, metric_rule(CAPACITY)).values()
        return CONFIRMED_SHARE * geometric_mean(found) if found else None

    def can_look_at(self, data: PointData, arm: str) -> bool:
        """Whether a capacity was found."""
        return self.look_rate_rps(data, arm) is not None


class AloneQuestion(Question):
    """What one arm can take, with nothing to compare that with."""

    @classmethod
    def is_asked(cls, experiment: Experiment) -> bool:
        """Whether there is one arm only."""
        return len(experiment.arms) == 1

    def stop(self, data: PointData, elapsed_s: float) -> Stop | None:
        """Stop where the capacity is known well enough, or time is used up."""
        if stop := self.nothing_to_show(data):
            return stop
        valid = valid_for(data, data.measure.decide_on)
        if len(valid.blocks) < valid.measure.min_blocks:
            return None
        if known := self._how_well(valid):
            return Stop("precision", known)
        return used_up(valid, valid.measure, elapsed_s + self.reserved_s(data))

    def _how_well(self, data: PointData) -> str | None:
        """Say how well the capacity is known, where that is well enough to stop."""
        (arm,) = data.experiment.arms
        values = list(data.values(arm, metric_rule(CAPACITY)).values())
        measure = data.measure
        if len(values) < max(measure.min_blocks, 2):
            return None
        # Its interval may have been waited for, as those of ratios are.
        found = estimate(np.log(values), 1 - ALPHA).widened(SEQUENTIAL_FACTOR)
        if found.half_width > log1p(measure.precision):
            return None
        return f"the capacity is known to ±{percent(measure.precision)}"

    def judge(self, data: PointData) -> Judgement:
        """Say what the arm can take, or why that isn't known."""
        judged = super().judge(data)
        verdict, said = _answer(data, judged.arms, judged.warnings)
        return judged.replace(verdict=verdict, headline=said)

    def so_far(self, data: PointData) -> str:
        """Give the capacity so far, with its interval from the second block on."""
        (arm,) = data.experiment.arms
        found = arm_value(data, arm, metric_rule(CAPACITY))
        if found.interval is None:
            known = number(found.by_block[0]) if found.by_block else "not known yet"
            return f"capacity {known} (first CI after round 2)"
        return f"capacity {number(found.interval.estimate)} ({quantity_bounds(found.interval)})"


def _answer(
    data: PointData, arms: Sequence[ArmValue], warnings: Sequence[ValidityWarning]
) -> tuple[Verdict, str]:
    """Say what the only arm can take, or why that isn't known."""
    (arm,) = data.experiment.arms
    for warning in warnings:
        if warning.invalidates(CAPACITY, (arm, arm)):
            return Verdict.INVALID, f"{warning.what[:1].upper()}{warning.what[1:]}."
    value = next(it for it in arms if it.metric == CAPACITY)
    if not value.by_block:
        return Verdict.INCOMPLETE, f"no block found a capacity of {arm}"
    blocks, least = count(len(value.by_block), "block"), data.measure.min_blocks
    known = _found(value.interval, value.by_block)
    if len(value.by_block) < least or value.interval is None:
        why = f"{blocks} so far, {least} are needed"
        return Verdict.INCONCLUSIVE, f"{arm} can take {known}: {why}"
    at_least = "at least " if client_was_the_limit(data, arm) else ""
    limit = ", where it was client-limited" if at_least else ""
    return Verdict.MEASURED, f"{arm} can take {at_least}{known}, {blocks}{limit}"


def _found(interval: Interval | None, by_block: Sequence[float]) -> str:
    if interval is None:
        return f"{number(by_block[0])} requests per second"
    around = quantity_bounds(interval)
    return f"{number(interval.estimate)} requests per second (95% interval {around})"
