"""Two runs of the same experiment, such as before and after an upgrade."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import log1p
from typing import Literal, NamedTuple

import numpy as np

from webdyno.comparison import judge
from webdyno.comparison.comparison import ALPHA, DELTA, floor_share, floor_text
from webdyno.core.experiment import Level
from webdyno.core.format import lower_first, percent, ratio_range, times, upper_first
from webdyno.core.judgement import DIFFERENT, Comparison, Judgement, Metric, Ranking, Verdict
from webdyno.core.metrics import METRICS
from webdyno.core.sweep import (
    Change,
    ChangeBecause,
    Difference,
    PointComparison,
    RankChange,
    RankChanges,
    RunComparison,
    Swap,
    SweepComparison,
)
from webdyno.evidence.differences import differences, mismatches
from webdyno.evidence.noise import LEAST_TAKEN, apart_alone, between_runs, taken_share
from webdyno.evidence.point_data import PointData, RunData
from webdyno.statistics.bounds import UNBIASED, Bound, with_bound
from webdyno.statistics.interval import Logs, welch
from webdyno.statistics.verdict import by_interval

ABSENT = "not there"
TAKEN_BY_OTHERS = "servers.taken_by_others"
"""The CPU time that others took of the servers', as a dotted name like those of settings."""

WORST_FIRST = (
    Verdict.INVALID,
    Verdict.INCOMPLETE,
    Verdict.SLOWER,
    Verdict.INCONCLUSIVE,
    Verdict.FASTER,
    Verdict.EQUIVALENT,
)


@dataclass(frozen=True)
class Subject:
    """What may have changed: a variant's value, or the ratio of two variants."""

    variants: tuple[str, ...]

    @property
    def name(self) -> str:
        return " / ".join(self.variants)

    @property
    def of(self) -> Literal["variant", "ratio"]:
        return "variant" if len(self.variants) == 1 else "ratio"


def compare_sweeps(before: RunData, after: RunData) -> SweepComparison:
    """Compare two runs point by point; experiments without factors have a single point."""
    first, second = before.points, after.points
    shared = [(a, b) for a in first for b in second if a.point.levels == b.point.levels]
    compared = [
        PointComparison(levels=b.point.levels, comparison=compare_runs(a, b)) for a, b in shared
    ]
    verdicts = [point.comparison.verdict for point in compared]
    return SweepComparison(
        verdict=min(verdicts, key=WORST_FIRST.index, default=Verdict.INVALID),
        points=compared,
        excluded=_only_in(first, second) + _only_in(second, first),
    )


def _only_in(mine: Sequence[PointData], theirs: Sequence[PointData]) -> list[dict[str, Level]]:
    known = [run.point.levels for run in theirs]
    return [run.point.levels for run in mine if run.point.levels not in known]


def compare_runs(before: PointData, after: PointData) -> RunComparison:
    """Judge the second run against the first, variant by variant and ratio by ratio.

    Rounds of different runs aren't pairs: the intervals are Welch's, at 95% for all variants
    together (Bonferroni), widened by what others took more of in one of the runs. Experiments that
    differ where it matters have no verdict.
    """
    first, second = judge(before), judge(after)
    variants = [
        variant for variant in before.experiment.variants if variant in after.experiment.variants
    ]
    unlike = mismatches(before.experiment, after.experiment, variants)
    enough = max(experiment.measure.min_rounds for experiment in (before, after))
    confidence = 1 - ALPHA / max(len(variants), 1)
    runs = JudgedRuns(before, after, first, second)
    subjects = [Subject((variant,)) for variant in variants]
    subjects += [Subject((variant, variants[0])) for variant in variants[1:]]
    changes = [
        _change(metric, subject, runs, confidence, enough)
        for metric in second.metrics
        for subject in subjects
    ]
    decide_on = after.measure.decide_on
    deciding = [c for c in changes if c.metric == decide_on and c.of == "variant"]
    verdict = min((c.verdict for c in deciding), key=WORST_FIRST.index, default=Verdict.INVALID)
    return RunComparison(
        verdict=Verdict.INVALID if unlike else verdict,
        headline=_headline(deciding, unlike),
        changes=changes,
        differences=[*_taken_by_others(before, after), *differences(before.head, after.head)],
        mismatches=unlike,
        rank_changes=rank_changes(first.ranking, second.ranking)
        if first.ranking and second.ranking and not unlike
        else None,
    )


class JudgedRuns(NamedTuple):
    """Two runs, and what they are judged to be."""

    before: PointData
    after: PointData
    first: Judgement
    second: Judgement

    def noise(self, metric: Metric, subject: Subject) -> Bound:
        """By how much others can have moved a change."""
        variants, kind = subject.variants, METRICS[metric.name].kind
        if subject.of == "variant":
            return between_runs(self.before, self.after, variants[0], kind)
        apart = max(apart_alone(run, *variants) for run in (self.before, self.after))
        return UNBIASED if kind in {"memory", "size"} else Bound("others", apart, apart)


def _taken_by_others(before: PointData, after: PointData) -> list[Difference]:
    was, now = taken_share(before.slots), taken_share(after.slots)
    if abs(was - now) < LEAST_TAKEN:
        return []
    return [Difference(what=TAKEN_BY_OTHERS, before=percent(was), after=percent(now))]


def _change(
    metric: Metric, subject: Subject, runs: JudgedRuns, confidence: float, enough: int
) -> Change:
    first, second = runs.first, runs.second
    before, after = (_logs(judgement, metric.name, subject) for judgement in (first, second))
    fewest = min(len(before), len(after))
    by_rounds = welch(after, before, confidence) if fewest > 1 else None
    difference = by_rounds and with_bound(by_rounds, runs.noise(metric, subject))
    floor = 0.0
    if subject.of == "variant":
        values = (_values(run, metric.name, subject.variants[0]) for run in (first, second))
        floor = floor_share(metric, *values)
    because: ChangeBecause
    invalidating = [
        warning
        for warning in (*first.warnings, *second.warnings)
        if warning.invalidates(metric.name, subject.variants)
    ]
    if invalidating:
        verdict, because = Verdict.INVALID, "invalidated"
        why = f"{upper_first(invalidating[0].what)}."
    elif difference is None or fewest < enough:
        verdict, because = Verdict.INCONCLUSIVE, "few-rounds"
        why = f"Both runs need {enough} rounds; one has {fewest}."
    else:
        limit = log1p(max(DELTA, floor))
        verdict = by_interval(difference, limit, metric.better)
        because, within = "interval", floor_text(metric) if floor > DELTA else percent(DELTA)
        why = f"By the interval of the change and ±{within}."
        by_rounds_alone = by_interval(by_rounds or difference, limit, metric.better)
        if verdict is Verdict.INCONCLUSIVE and by_rounds_alone is not Verdict.INCONCLUSIVE:
            was, now = (percent(taken_share(run.slots)) for run in (runs.before, runs.after))
            because = "taken-by-others"
            why = f"Others took {was} of the servers' CPUs before and {now} now."
    return Change(
        metric=metric.name,
        subject=subject.name,
        of=subject.of,
        change=difference.ratio(confidence) if difference else None,
        delta=DELTA,
        verdict=verdict,
        because=because,
        why=why,
    )


def _logs(judgement: Judgement, metric: str, subject: Subject) -> Logs:
    """Return ln of the subject's value by round; for ratios in rounds that have both values."""
    mine = _values(judgement, metric, subject.variants[0])
    if subject.of == "variant":
        return np.log(list(mine.values()))
    baseline = _values(judgement, metric, subject.variants[1])
    both = [n for n in mine if n in baseline]
    return np.log([mine[n] for n in both]) - np.log([baseline[n] for n in both])


def _values(judgement: Judgement, metric: str, variant: str) -> dict[int, float]:
    return {
        round_number: value
        for measured in judgement.variants
        if (measured.metric, measured.variant) == (metric, variant)
        for round_number, value in zip(measured.rounds, measured.by_round, strict=True)
    }


def _headline(deciding: Sequence[Change], unlike: Sequence[Difference]) -> str:
    if unlike:
        differences_text = "; ".join(
            f"{difference.what} was {difference.before}, now {difference.after}"
            for difference in unlike
        )
        return f"no verdict: these are different experiments ({differences_text})"
    if not deciding:
        return "no verdict: the runs have no variant in common"
    return "; ".join(map(_sentence, deciding))


def _sentence(change: Change) -> str:
    if change.change is None or change.verdict is Verdict.INVALID:
        return f"{change.subject}: {change.verdict}, {lower_first(change.why[:-1])}"
    noise = f", {lower_first(change.why[:-1])}" if change.because == "taken-by-others" else ""
    return (
        f"{change.subject}: {times(change.change)} the {METRICS[change.metric].short} of before "
        f"({ratio_range(change.change)}): {change.verdict}{noise}"
    )


def rank_changes(before: Ranking, after: Ranking) -> RankChanges:
    """Compare the order of each two variants that have a rank in both.

    A pair has swapped where both runs are sure of its order and don't agree: in at most one of ten
    pairs of runs of unchanged systems, as all pairs of a run hold jointly at 95%.
    """
    ranks = [
        RankChange(variant=was.variant, before=was, after=now)
        for was in before.ranks
        for now in after.ranks
        if was.variant == now.variant
    ]
    first, second = _by_pair(before), _by_pair(after)
    pairs = [(a.variant, b.variant) for a, b in combinations(ranks, 2)]
    sure = [pair for pair in pairs if {first[pair].verdict, second[pair].verdict} <= DIFFERENT]
    swaps = [
        Swap(ahead=a, behind=b, before=first[a, b].decisive, after=second[a, b].decisive)
        for a, b in sure
        if first[a, b].verdict is not second[a, b].verdict
    ]
    return RankChanges(
        ranks=ranks, same=len(sure) - len(swaps), open=len(pairs) - len(sure), swaps=swaps
    )


def _by_pair(ranking: Ranking) -> dict[tuple[str, str], Comparison]:
    return {(pair.a, pair.b): pair for pair in ranking.pairs}
