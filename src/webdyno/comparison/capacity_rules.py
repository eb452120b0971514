"""How much variants can take: a search for the capacity, in place of slots.

Its trials ask for too much by intent, so that a search has rules of validity of its own.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from statistics import geometric_mean
from typing import ClassVar

from webdyno.comparison.question import Loading
from webdyno.core.capacity import Level
from webdyno.core.format import count, duration, number, percent
from webdyno.core.judgement import ValidityWarning
from webdyno.core.looks import LongLook
from webdyno.core.measure import MOST_DECIDING, CapacitySettings
from webdyno.core.metrics import CAPACITY, METRICS, capacity_rps
from webdyno.core.objectives import Objective
from webdyno.core.records import LongLookRecord, SlotRecord
from webdyno.evidence.long_look import stall_words
from webdyno.evidence.point_data import PointData
from webdyno.validity import FIRST_RULES, connections
from webdyno.validity.client import client_was_the_limit
from webdyno.validity.responses import NON_2XX, WRONG_BODY
from webdyno.validity.rule import Rule, RunRule, note, uncomparable
from webdyno.validity.whole_run import FEW_ROUNDS

CONFIRMED_S = 30.0
"""So long the objectives have to hold just below a capacity that was found."""
CONFIRMED_SHARE = 0.95
"""Of a capacity that was found: intervals of it are some per cent wide."""
NARROWING, FIRST_NARROWING, DECIDING_TRIAL = 2.5, 4.0, 1.4
"""What a search takes until its deciding trials begin, where rounds before it say where to begin
and where none do, and what each of these takes, ramp-up and rests included; in their lengths."""
BEYOND_S = 10.0
"""What one overload takes, with its last responses and the load after it."""
MOST_TAKEN = 0.1
"""Share of the servers' CPUs that others may take for a capacity to be the variant's own."""
FEWEST_STALLED = 2
"""Trials of a search that stalls failed, from which on a variant may have no capacity at all."""
REMARKABLE = 0.5
"""Share of the rounds in which something has to be seen, to be a property of the variant."""
CLIENT_LATE = ", where the load generator itself was still too late: its threads get a CPU late"
FIX_OF_LATE = (
    "Set an objective with more time (--slo): `webdyno doctor --calibrate` shows how late the load "
    "generator is here."
)
FIX_OF_NONE = "Ask for what it can do without load: `webdyno load` shows its latency."


@dataclass(frozen=True)
class CapacitySearch(Loading):
    """Variants that are loaded in trials, at rates that a search chooses."""

    settings: CapacitySettings

    shows: ClassVar[str] = "capacity"
    has_windows: ClassVar[bool] = False
    look_s: ClassVar[float] = CONFIRMED_S

    @property
    def aims(self) -> list[str]:
        return [objective.text for objective in self.settings.objectives]

    def rules(self) -> tuple[Rule, ...]:
        return (*FIRST_RULES, *OWN_RULES, FEW_ROUNDS)

    def working_variants(self, data: PointData) -> Collection[str]:
        """Return the variants of which a capacity was found."""
        rule = METRICS[data.measure.decide_on]
        return {variant for variant in data.experiment.variants if data.values(variant, rule)}

    def rounds_s(self, rounds: int, variants: int, left_s: float, *, shortest: bool) -> float:
        """Return how long searches take in so many rounds, which have so much time."""
        deciding = deciding_trials(self.settings, left_s / (rounds * variants))
        narrowing = FIRST_NARROWING + (rounds - 1) * NARROWING
        lengths = narrowing + rounds * deciding * DECIDING_TRIAL
        settings = self.settings
        return variants * lengths * (settings.least_deciding_s if shortest else settings.deciding_s)

    def look_rate_rps(self, data: PointData, variant: str) -> float | None:
        """Return a rate just below the capacity found, at which objectives must hold for longer."""
        found_rps = known_rps(data, variant)
        return CONFIRMED_SHARE * found_rps if found_rps else None

    def can_look_at(self, data: PointData, variant: str) -> bool:
        return known_rps(data, variant) is not None

    def doubtful(self, data: PointData) -> Collection[str]:
        """Return the variants whose last search met with stalls, and which had no long look yet."""
        looked = {record.variant for record in data.records if isinstance(record, LongLookRecord)}
        return [
            variant
            for variant in data.experiment.variants
            if variant not in looked
            and self.can_look_at(data, variant)
            and sum(map(_is_stalled, data.rounds[-1].of(variant))) >= FEWEST_STALLED
        ]

    def refuted_variants(self, data: PointData) -> Collection[str]:
        """Return the variants whose stalls leave no capacity, however few rounds there were."""
        return {look.variant for look in data.looks if broken_by_stalls(data, look)}


def _is_stalled(slot: SlotRecord) -> bool:
    trial = slot.trial
    return trial is not None and trial.stalled_s > 0 and not trial.holds and not trial.times


def known_rps(data: PointData, variant: str) -> float | None:
    """Return the capacity that the rounds so far found of a variant; None before they have."""
    rates = data.values(variant, METRICS[CAPACITY]).values()
    return geometric_mean(rates) if rates else None


def deciding_trials(settings: CapacitySettings, search_s: float) -> int:
    """Return how many trials of full length a search can have that has so much time."""
    fitting = (search_s / settings.deciding_s - NARROWING) / DECIDING_TRIAL
    return min(max(int(fitting), 1), MOST_DECIDING)


def has_time_beyond(settings: CapacitySettings, search_s: float) -> bool:
    """Whether a search that has so much time leaves enough of it to ask for more."""
    whole_s = settings.deciding_s * (NARROWING + MOST_DECIDING * DECIDING_TRIAL)
    return bool(settings.overloads) and search_s >= whole_s + BEYOND_S


def held(slot: SlotRecord) -> bool:
    return slot.trial is not None and slot.trial.holds


def _kept_alike(data: PointData) -> Iterable[ValidityWarning]:
    """Connections have to be kept as asked where the load can be carried."""
    passing = data.without((slot.round, slot.slot) for slot in data.slots if not held(slot))
    return [warning for rule in connections.KEEPING_RULES for warning in rule.warnings(passing)]


def _nothing_holds(data: PointData) -> Iterable[ValidityWarning]:
    """A variant whose responses are beyond the objectives at every rate has no capacity."""
    for variant in data.experiment.variants:
        slots = data.of_variant(variant)
        if not slots or any(map(held, slots)):
            continue
        lowest = min((slot.trial for slot in slots if slot.trial), key=lambda trial: trial.rate_rps)
        late = lowest.client_limited
        yield uncomparable(
            "no-capacity",
            variant,
            f"variant {variant}: {objective_words(data)} did not hold at any arrival rate that "
            f"was tried, down to {number(lowest.rate_rps)} req/s{CLIENT_LATE if late else ''}",
            FIX_OF_LATE if late else FIX_OF_NONE,
        )


def _not_confirmed(data: PointData) -> Iterable[ValidityWarning]:
    """A variant whose objectives don't hold for longer has less capacity than found, or none.

    A stall makes late what comes in it, the same share at any rate. Where that is more than an
    objective allows, there is no capacity.
    """
    for look in data.looks:
        trial = look.trial
        if trial is None or trial.holds:
            continue
        late = broken_by_stalls(data, look)
        rate = f"{number(round(trial.rate_rps))} req/s"
        looked = f"at {rate} for {duration(look.looked_s)}, just below what shorter trials found, "
        if trial.client_limited:
            yield note(
                "not-confirmed",
                look.variant,
                f"{looked}the load generator itself was too late: whether the objective holds for "
                "longer isn't known",
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
                f"{looked}{percent(beyond)} of the requests were beyond the objective: the "
                "capacity is lower",
                "Let trials be longer: --set capacity.longest_trial_s=20.",
                [CAPACITY],
            )


def broken_by_stalls(data: PointData, look: LongLook) -> Objective | None:
    """Return the first objective that the servers' own stalls alone break, if any."""
    trial, stalls = look.trial, look.stalls
    if (
        trial is None
        or trial.holds
        or trial.client_limited
        or stalls is None
        or not stalls.length_s
    ):
        return None
    for objective in data.experiment.objectives:
        if objective.within_s is not None:
            late_s = max(stalls.length_s - objective.within_s, 0.0)
            if stalls.share.low * late_s / stalls.length_s > objective.allowed:
                return objective
    return None


def _client_ends_it(data: PointData) -> Iterable[ValidityWarning]:
    for variant in data.experiment.variants:
        if data.of_variant(variant) and client_was_the_limit(data, variant):
            yield note(
                "client-limited",
                variant,
                "the load generator could not offer more in time: the capacity is at least what "
                "was found",
                "Give the client more CPUs (--server-cores 1), or let requests leave in groups: "
                "--set load.send_delay_budget_s=200us.",
                [CAPACITY],
            )


def _wrong_responses(data: PointData) -> Iterable[ValidityWarning]:
    """Wrong responses that the objectives let pass are reported all the same."""
    for variant in data.experiment.variants:
        passing = [slot for slot in data.of_variant(variant) if held(slot)]
        for rule in (NON_2XX, WRONG_BODY):
            if bad := [slot for slot in passing if rule.broken(slot)]:
                yield note(
                    rule.name, variant, f"{rule.what(bad)}, as the objectives allow", rule.fix
                )


def _collapses(data: PointData) -> Iterable[ValidityWarning]:
    """Report servers that fail after an overload at a rate that they had carried before."""
    for variant in data.experiment.variants:
        trials = [slot.trial for slot in data.of_variant(variant) if slot.trial]
        tried = [trial for trial in trials if trial.purpose == "recovery"]
        down = [trial for trial in tried if not trial.holds]
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


def _without_end(data: PointData) -> Iterable[ValidityWarning]:
    """Count rounds whose search came to no end, which have no value."""
    for variant in data.experiment.variants:
        searches = [this_round.of(variant) for this_round in data.rounds]
        without = [
            slots for slots in searches if any(map(held, slots)) and capacity_rps(slots) is None
        ]
        if without:
            yield note(
                "no-capacity-found",
                variant,
                f"the search came to no end in {count(len(without), 'round')}",
                "Look for what else runs on this machine.",
            )


OWN_RULES = (
    RunRule("keep-alive", _kept_alike),
    RunRule("no-capacity", _nothing_holds),
    RunRule("not-confirmed", _not_confirmed),
    RunRule("client-limited", _client_ends_it),
    RunRule("wrong-responses", _wrong_responses),
    RunRule("does-not-come-back", _collapses),
    RunRule("dies", _dies),
    RunRule("no-capacity-found", _without_end),
)


def objective_words(data: PointData) -> str:
    return " and ".join(objective.text for objective in data.experiment.objectives)
