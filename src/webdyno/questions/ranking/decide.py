"""Races, which variants leave while they go on: rankings.

A ranking holds every variant against every other, and gives the ranks that are sure.
A variant's rank lies between one after all variants that are better with 95% confidence and one
before all that are worse with 95% confidence: a confidence set for its rank (Mogstad, Romano,
Shaikh, Wilhelm, "Inference for ranks with applications to mobility across neighbourhoods and
academic achievement across countries", Review of Economic Studies 2024). Since the differences of
all pairs hold together at 95% (Holm), so do all ranks.

Variants whose rank more rounds can't change leave it, so that the time goes where ranks
are open (Maron & Moore, "Hoeffding races", NIPS 1993). Each look at the ranks is a chance to be
wrong. So there are few, each after twice as many rounds as the one before, and the i-th spends
1/2^i of the 5%: all of them together spend no more than that.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import log
from statistics import fmean
from typing import ClassVar

from webdyno.comparison.comparison import ALPHA, DELTA, compare_family, fewest_rounds
from webdyno.comparison.judgement import judge_comparisons
from webdyno.comparison.question import RaceQuestion
from webdyno.comparison.ranks import Order, Pair
from webdyno.comparison.sentences import ranking_headline
from webdyno.comparison.stop import Stop, used_up
from webdyno.core.experiment import Experiment
from webdyno.core.judgement import (
    DECIDED,
    DIFFERENT,
    Comparison,
    Judgement,
    Ranking,
    ValidityWarning,
    Verdict,
)
from webdyno.core.metrics import METRICS, MetricRule
from webdyno.evidence.point_data import PointData, compute_once
from webdyno.questions.ranking.settings import RankingSettings
from webdyno.validity import valid_for

NOTHING_COUNTS = "no slot of it counts"
MOST_FURTHER = 3
"""Rounds by which the first look waits for those that don't count."""


@dataclass(frozen=True)
class Standings(Order):
    """What is known of each two of a ranking's variants, as of the look that distinguished them.

    Or else of the last one.
    """

    out: dict[str, str]
    """Those that can't have a rank, and why."""
    looks: int

    @property
    def racing(self) -> list[str]:
        """The variants that more rounds can say something of."""
        if not self.looks:
            return self.variants
        still_open = {
            variant
            for pair, comparison in self.pairs.items()
            if comparison.verdict not in DECIDED
            for variant in pair
        }
        return [variant for variant in self.variants if variant in still_open]


def risk_of(experiment: Experiment) -> float:
    """Return the chance of a false statement: all that are to hold together share 5%."""
    return ALPHA / experiment.asks_as(RankingSettings).together


def rounds_to_a_look(experiment: Experiment) -> int:
    """Return how many rounds it takes until the exact test can distinguish each two variants."""
    variants = len(experiment.variants)
    return fewest_rounds(
        experiment.measure, variants * (variants - 1) // 2, risk_of(experiment) / 2
    )


@compute_once
def first_look(data: PointData) -> int:
    """Return after how many rounds the ranks are looked at first.

    Then each variant has as many that count as the exact test needs: a look before that is spent
    in vain. It waits for a few at most, as slots may go on not to count.
    """
    fewest, rule = rounds_to_a_look(data.experiment), METRICS[data.measure.decide_on]
    failed = {incident.variant for incident in data.incidents}
    racing = [variant for variant in data.experiment.variants if variant not in failed]
    for rounds in range(fewest, min(fewest + MOST_FURTHER, len(data.rounds) + 1)):
        valid = _valid(data, rounds, rule)
        known = [len(valid.values(variant, rule)) for variant in racing]
        if all(many >= fewest for many in known if many):
            return rounds
    return min(fewest + MOST_FURTHER, max(fewest, len(data.rounds) + 1))


def is_look(data: PointData) -> bool:
    """Whether the ranks are looked at after the last round; between looks nobody leaves."""
    rounds = len(data.rounds)
    return rounds in _looks(rounds, first_look(data), to_the_end=False)


def standings(
    data: PointData, invalidated: Mapping[str, str] | None = None, *, to_the_end: bool = False
) -> Standings:
    """Compare each two variants at each look up to now; `to_the_end` also at what there is."""
    rule = METRICS[data.measure.decide_on]
    out = {each.variant: each.what for each in data.incidents if each.variant is not None} | dict(
        invalidated or {}
    )
    looks = _looks(len(data.rounds), first_look(data), to_the_end=to_the_end)
    if looks and data.rounds:
        last = _valid(data, looks[-1], rule)
        silent = [variant for variant in data.experiment.variants if not last.values(variant, rule)]
        out = dict.fromkeys(silent, NOTHING_COUNTS) | out
    variants = [variant for variant in data.experiment.variants if variant not in out]
    left = list(combinations(variants, 2))
    known: dict[Pair, Comparison] = {}
    risk = risk_of(data.experiment)
    for number, rounds in enumerate(looks, start=1):
        valid = _valid(data, rounds, rule)
        questions = [(variant, other, rule) for variant, other in left]
        compared = compare_family(valid, questions, data.measure, alpha=risk / 2**number)
        for pair, comparison in zip(left, compared, strict=True):
            # Those found to be equal may have left since, but are asked about as often as others.
            was_even = pair in known and known[pair].verdict is Verdict.EQUIVALENT
            if not was_even or comparison.verdict in DIFFERENT:
                known[pair] = comparison
        left = [pair for pair in left if known[pair].verdict not in DIFFERENT]
    return Standings(variants, known, out, len(looks))


def _looks(rounds: int, first: int, *, to_the_end: bool) -> list[int]:
    looks, due = [], first
    while due <= rounds:
        looks.append(due)
        due *= 2
    if to_the_end and (not looks or rounds > looks[-1]):
        looks.append(rounds)
    return looks


def _valid(data: PointData, rounds: int, rule: MetricRule) -> PointData:
    first_rounds = data.first(rounds)
    return valid_for(first_rounds, rule.name)


def judge_ranking(
    data: PointData, warnings: Sequence[ValidityWarning]
) -> tuple[Ranking, list[Comparison]]:
    """Return the ranks, and the comparison of each variant with the one that is shown first."""
    metric = data.measure.decide_on
    invalidated = {
        variant: warning.what
        for variant in data.experiment.variants
        for warning in reversed(warnings)
        if warning.invalidates(metric, [variant])
    }
    final = standings(data, invalidated, to_the_end=True)
    ranks = final.ranks(_typical_gains(data))
    pairs = [*final.both_ways()]
    ranking = Ranking(ranks=ranks, out=final.out, pairs=pairs, looks=final.looks)
    if not ranks:
        first, *others = data.experiment.variants
        return ranking, [
            _without_rank(metric, variant, first, final.out[variant]) for variant in others
        ]
    first, *others = (rank.variant for rank in ranks)
    compared = [final.against(variant, first) for variant in others]
    without = [_without_rank(metric, variant, first, why) for variant, why in final.out.items()]
    return ranking, compared + without


def verdict_on(ranking: Ranking, compared: Sequence[Comparison]) -> Verdict:
    """Return whether there is one that comes first; equal ones may do so together."""
    if len(ranking.ranks) < 2:
        return Verdict.INVALID
    if ranking.is_unmeasured:
        return Verdict.INCOMPLETE
    first = [rank.variant for rank in ranking.ranks if rank.best == 1]
    if len(first) == 1:
        return Verdict.FASTER
    further = [comparison for comparison in compared if comparison.a in first]
    alike = all(comparison.verdict is Verdict.EQUIVALENT for comparison in further)
    return Verdict.EQUIVALENT if alike else Verdict.INCONCLUSIVE


def _typical_gains(data: PointData) -> dict[str, float]:
    """Return ln of each variant's value, the mean of its rounds, so that more is better."""
    rule = METRICS[data.measure.decide_on]
    valid = _valid(data, len(data.rounds), rule)
    sign = 1 if rule.metric.better == "higher" else -1
    return {
        variant: sign * fmean(map(log, values))
        for variant in data.experiment.variants
        if (values := [value for value in valid.values(variant, rule).values() if value > 0])
    }


def _without_rank(metric: str, variant: str, first: str, why: str) -> Comparison:
    return Comparison(
        metric=metric,
        a=variant,
        b=first,
        ratio=None,
        by_round=[],
        sign_flip_p=None,
        delta=DELTA,
        verdict=Verdict.INVALID,
        because="no-rank",
        why=f"{variant} has no rank: {why.removeprefix(f'variant {variant}: ')}.",
    )


@compute_once
def _still_open(data: PointData) -> list[str]:
    return standings(data).racing


class RankingQuestion(RaceQuestion):
    """Who comes first of all, and who after that."""

    has_baseline: ClassVar[bool] = False

    def next_variants(self, data: PointData) -> list[str]:
        return _still_open(data)

    def goes_on_without(self, failed: Collection[str]) -> bool:
        """Whether somebody failed: no variant is needed more than others."""
        return bool(failed)

    @cached_property
    def fewest_rounds(self) -> int:
        return rounds_to_a_look(self.experiment)

    @property
    def stops_at(self) -> tuple[str, int]:
        """What is enough, and before how many rounds it never stops."""
        return "every rank settled", self.fewest_rounds

    def stop(self, data: PointData, elapsed_s: float) -> Stop | None:
        """Stop as any race does; a first look that waits for a round may take longer."""
        stopped = super().stop(data, elapsed_s)
        if stopped and len(data.rounds) < first_look(data):
            return used_up(data, data.measure, elapsed_s, data.measure.patience)
        return stopped

    def _over(self, data: PointData) -> str:
        # Comparing each two variants takes a while: only where it can have changed.
        settled = is_look(data) and len(self.next_variants(data)) < 2
        return "every rank is settled" if settled else ""

    def judge(self, data: PointData) -> Judgement:
        """Judge ranks; next to them, each variant is compared with the first one of these."""
        warnings = self.warnings(data)
        ranking, compared = judge_ranking(data, warnings)
        first = compared[0].b
        others = (variant for variant in self.experiment.variants if variant != first)
        judged = judge_comparisons(data.among([first, *others]), warnings)
        decide_on = data.measure.decide_on
        further = [
            comparison for comparison in judged.comparisons if comparison.metric != decide_on
        ]
        return judged.replace(
            verdict=verdict_on(ranking, compared),
            headline=ranking_headline(ranking, decide_on, judged.costs),
            comparisons=[*compared, *further],
            ranking=ranking,
        )
