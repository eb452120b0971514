"""Which of some variants is better: what an experiment asks unless it says otherwise.

Every other question, races among them, overrides what is its own.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Self

from webdyno.comparison.comparison import fewest_rounds
from webdyno.comparison.judgement import (
    judge_comparisons,
    judge_deciding_metric,
    ratios_so_far,
    together,
)
from webdyno.comparison.sentences import ratio_words
from webdyno.comparison.stop import (
    SPARE_ROUNDS,
    Foresight,
    Stop,
    deciding_pairs,
    foresight,
    known_well,
    reported_promptly,
    used_up,
    worth_patience,
)
from webdyno.core.experiment import OWN_GENERATOR, Experiment
from webdyno.core.format import count, percent
from webdyno.core.judgement import Comparison, Judgement, ValidityWarning
from webdyno.core.limits import GateJudgement
from webdyno.core.metrics import METRICS
from webdyno.core.records import PreflightRecord, RoundRecord
from webdyno.evidence.log_ratios import LogRatios
from webdyno.evidence.point_data import PointData, RunData
from webdyno.validity import (
    all_rules,
    excluded_slots,
    rule_of_most,
    valid_for,
    warnings_of,
    without_slots,
)
from webdyno.validity.rule import Rule

HOPELESS_AFTER = 2
"""Rounds after which a variant without one valid slot isn't expected to have any."""
LOOK_S, LEAST_LOOK_S, LOOK_SHARE = 10.0, 5.0, 1 / 4
"""A long look takes so long at each variant, or this share of the budget, all of them together; not
where that is too short to say more than slots do."""


class Loading:
    """How variants are loaded in a round: in slots, with the load that the experiment says."""

    shows: ClassVar[str] = "valid slot"
    """What a variant has to have in some round."""
    has_windows: ClassVar[bool] = True
    """Whether what counts is a window of a length that pilots find, and that adjustments change."""
    look_s: ClassVar[float] = LOOK_S
    """How long the long look at a variant is, where the budget is long enough."""

    @property
    def aims(self) -> list[str]:
        """What has to hold of a load, in words."""
        return []

    def rules(self) -> tuple[Rule, ...]:
        return all_rules()

    def working_variants(self, data: PointData) -> Collection[str]:
        """Return the variants that have something to show, but for interference that passes."""
        lasting = excluded_slots(data, lasting=True)
        return {slot.variant for slot in without_slots(data, lasting, data.measure.decide_on).slots}

    def rounds_s(
        self, rounds: int, variants: int, left_s: float, *, shortest: bool
    ) -> float | None:
        """Return how long rounds take, or as a limit makes them; None where slots show that."""
        return None

    def look_rate_rps(self, data: PointData, variant: str) -> float | None:
        """Return a long look's arrival rate; None for the experiment's own load."""
        return None

    def can_look_at(self, data: PointData, variant: str) -> bool:
        """Whether it is known with which load to look at a variant for long."""
        return True

    def doubtful(self, data: PointData) -> Collection[str]:
        """Return the variants to look at for long before another round, as that may be in vain."""
        return ()

    def refuted_variants(self, data: PointData) -> Collection[str]:
        """Return the variants that are sure to have nothing to show."""
        return ()


@dataclass(frozen=True)
class Question:
    """What an experiment asks, and all that hangs on it: whom to measure, how long, the answer."""

    experiment: Experiment
    loading: Loading

    spares_variants: ClassVar[bool] = False
    """Whether it goes on without variants that fail."""
    asks_what_blocks: ClassVar[bool] = False
    """Whether it is looked at what threads of servers wait for."""
    has_baseline: ClassVar[bool] = True
    """Whether the others are compared with a baseline."""
    stops_by_width: ClassVar[bool] = True
    """Whether it stops when intervals are narrow enough, so that their width says when."""
    looks_long: ClassVar[bool] = True
    """Whether each variant is looked at for long after the rounds."""
    shows_shorter_windows: ClassVar[bool] = True
    """Whether it is reported where windows are shorter than pilots found, for a prompt answer."""
    one_answer: ClassVar[bool] = False
    """Whether there is one for all points together."""

    def of(self, experiment: Experiment) -> Self:
        return replace(self, experiment=experiment)

    # Whom to measure.

    def next_variants(self, data: PointData) -> list[str]:
        return list(self.experiment.variants)

    def goes_on_without(self, failed: Collection[str]) -> bool:
        """Whether a run that spares variants goes on when these have failed."""
        return bool(failed) and next(iter(self.experiment.variants)) not in failed

    @property
    def piloted_variants(self) -> list[str]:
        """Return the variants that have pilots: all, unless others speak for them."""
        return list(self.experiment.variants)

    def measured_alike(self, variant: str) -> list[str]:
        """Return the variants that are measured with equal settings, this one first."""
        return self.experiment.alike(variant)

    def hopeless(self, data: PointData) -> list[str]:
        """Return the variants that have nothing to show after some rounds, or surely never will."""
        refuted, variants = self.loading.refuted_variants(data), self.experiment.variants
        if len(data.rounds) < HOPELESS_AFTER:
            return [variant for variant in variants if variant in refuted]
        working = set(self.loading.working_variants(data)).difference(refuted)
        return [variant for variant in variants if variant not in working]

    # How long.

    @cached_property
    def fewest_rounds(self) -> int:
        """How many rounds an answer takes at least; what samples say is no verdict."""
        if self.experiment.profile:
            return self.experiment.measure.min_rounds
        return fewest_rounds(self.experiment.measure, together(self.experiment))

    def most_rounds(self, data: PointData) -> int:
        return self.experiment.measure.max_rounds

    @property
    def stops_at(self) -> tuple[str, int]:
        """Describe what is enough, and before how many rounds it never stops."""
        measure = self.experiment.measure
        return f"interval within ±{percent(measure.precision)}", measure.min_rounds

    def window_s(self, window_s: float, data: PointData) -> float | None:
        """Return another length of short windows; None where they and their number stay."""
        return None

    @property
    def long_look_s(self) -> float:
        """Length of each variant's long look; 0 for none."""
        experiment = self.experiment
        counted = any(experiment.load_of(variant).count for variant in experiment.variants)
        own = experiment.generator == OWN_GENERATOR
        if not self.looks_long or experiment.profile or counted or not own:
            return 0.0
        soak_s = experiment.measure.soak_s
        return self._usual_look_s if soak_s is None else soak_s

    @property
    def _usual_look_s(self) -> float:
        share_s = LOOK_SHARE * self.experiment.measure.budget_s / len(self.experiment.variants)
        return min(self.loading.look_s, share_s) if share_s >= LEAST_LOOK_S else 0.0

    def reserved_s(self, data: PointData) -> float:
        """Return how much of the budget looks will take; none where their length is given."""
        if self.experiment.measure.soak_s is not None:
            return 0.0
        left = set(self.experiment.variants).difference(look.variant for look in data.looks)
        return self.long_look_s * len(left)

    def stop(self, data: PointData, elapsed_s: float) -> Stop | None:
        """Return why to stop after a round; None means go on.

        It stops when the intervals of all ratios on the deciding metric are as narrow as
        `precision` and their verdicts hold in the worst case, or can't come to do so; at
        `max_rounds`; or when another round wouldn't fit into the budget (`patience` times as many
        and as much while a ratio is too noisy). But never before a verdict is possible, unless a
        variant has nothing valid to show or more rounds were invalidated than can be replaced.
        """
        if stop := self.nothing_to_show(data):
            return stop
        staying = self.next_variants(data)
        if len(staying) < 2:
            return Stop("nothing-valid", f"nothing works that {staying[0]} could be compared with")
        among = data.among(staying)
        with_looks_s = elapsed_s + self.reserved_s(data)
        return self.of(among.experiment)._stop_comparing(among, elapsed_s, with_looks_s)

    def nothing_to_show(self, data: PointData) -> Stop | None:
        """Stop where a variant that can't be spared has nothing to show."""
        staying = self.next_variants(data)
        for variant in self.hopeless(data):
            if variant in staying:
                rounds = count(len(data.rounds), "round")
                why = f"variant {variant} has no {self.loading.shows} in {rounds}"
                return Stop("nothing-valid", why)
        return None

    def _stop_comparing(
        self, data: PointData, elapsed_s: float, with_looks_s: float
    ) -> Stop | None:
        """Return why to stop comparing variants all of which work."""
        measure, fewest = data.measure, self.fewest_rounds
        valid = valid_for(data, measure.decide_on)
        pairs = deciding_pairs(valid)
        judgeable = min(len(pair.d) for pair in pairs)
        if judgeable < fewest and len(data.rounds) < fewest + SPARE_ROUNDS:
            return None
        if judgeable >= fewest and (answered := self._stop_if_answered(data, valid, elapsed_s)):
            return answered
        measure = measure.replace(max_rounds=self.most_rounds(data))
        ended = used_up(data, measure, with_looks_s)
        if ended is None or judgeable < fewest or not self._is_patient(pairs):
            return ended
        return used_up(data, measure, with_looks_s, measure.patience)

    def _stop_if_answered(self, data: PointData, valid: PointData, elapsed_s: float) -> Stop | None:
        """Stop where the answer is known, or more rounds can't bring it."""
        return known_well(valid, self.fewest_rounds) or reported_promptly(valid, elapsed_s)

    def _is_patient(self, pairs: Sequence[LogRatios]) -> bool:
        return worth_patience(pairs)

    def stops_elsewhere(self, ended: Iterable[PointData]) -> Stop | None:
        """Stop other points of a run for what came out at those that have ended."""
        return None

    def outlook(self, points: Sequence[PointData], elapsed_s: float) -> str | None:
        """Describe after the first rounds what can't be known in time; None if it is too early."""
        return ""

    def foresee(self, data: PointData) -> Foresight | None:
        """Foresee when it stops by itself; None where nothing says."""
        if not self.stops_by_width:
            return None
        return foresight(data, valid_for(data, data.measure.decide_on), self.fewest_rounds)

    def reported_by(self, data: PointData, preflight: PreflightRecord) -> list[str]:
        """Describe what the responses before any load show already."""
        return []

    # The answer.

    def warnings(self, data: PointData) -> list[ValidityWarning]:
        return warnings_of(data, self.loading.rules())

    def judge(self, data: PointData) -> Judgement:
        return judge_comparisons(data, self.warnings(data))

    def judge_all_points(self, run: RunData) -> GateJudgement | None:
        """Return the one answer for all points of a run; None where each has its own."""
        return None

    def shows_when_interrupted(self, data: PointData) -> bool:
        """Whether an interrupted run has an answer that is worth to be shown."""
        return sum(record.kind == "round" for record in data.records) >= self.fewest_rounds

    def compare(self, data: PointData) -> list[Comparison]:
        """Compare on the deciding metric alone, with the verdicts of the whole judgement."""
        return judge_deciding_metric(data, self.warnings(data))

    def ratios_so_far(self, data: PointData) -> list[Comparison]:
        """Compare on the deciding metric while a run goes on; empty where that isn't the point."""
        return ratios_so_far(data)

    def so_far(self, data: PointData) -> str:
        """Describe in one short line what is known while a run goes on, or why nothing is."""
        compared = ratios_so_far(data)
        if words := ratio_words(compared):
            return f"{METRICS[data.measure.decide_on].short}: {', '.join(words)}"
        valid = min(len(comparison.by_round) for comparison in compared)
        if valid == len(data.rounds):
            return "(first CI after round 2)"
        rule = rule_of_most(excluded_slots(data))
        cause = f": most slots broke the rule {rule}" if rule else ""
        return f"no ratio yet, {count(valid, 'valid round')} of {len(data.rounds)}{cause}"


class RaceQuestion(Question, ABC):
    """What all races have in common: variants leave while they go on."""

    spares_variants: ClassVar[bool] = True
    stops_by_width: ClassVar[bool] = False
    looks_long: ClassVar[bool] = False
    shows_shorter_windows: ClassVar[bool] = False

    def ratios_so_far(self, data: PointData) -> list[Comparison]:
        """None: they don't decide."""
        return []

    def so_far(self, data: PointData) -> str:
        """Describe how many variants were in the last round, and when the first may leave."""
        rounds = [record for record in data.records if isinstance(record, RoundRecord)]
        if len(rounds) < self.fewest_rounds:
            return f"who leaves the race is seen after round {self.fewest_rounds}"
        return f"{len(set(rounds[-1].order))} of {len(self.experiment.variants)} were in the race"

    def stop(self, data: PointData, elapsed_s: float) -> Stop | None:
        """Stop where nobody is left to race, or, not before the first look, time is used up."""
        if over := self._over(data):
            return Stop("precision", over)
        if len(data.rounds) < self.fewest_rounds:
            return None
        return used_up(data, data.measure, elapsed_s)

    @abstractmethod
    def _over(self, data: PointData) -> str:
        """Explain why nobody is left to race; nothing while somebody is."""
