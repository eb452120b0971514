"""How many more rounds would decide a claim: foreseen from what is there, settled beforehand.

Nobody looks again until they are all measured: nothing stops at a round that happens to decide.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from math import ceil, inf, log, log1p
from statistics import fmean
from typing import NamedTuple

from webdyno.core.base import Interval
from webdyno.core.judgement import Comparison
from webdyno.core.records import RoundRecord
from webdyno.core.study import Claim, Outcome
from webdyno.core.sweep import PointJudgement
from webdyno.evidence.point_data import RunData
from webdyno.studies.claims import (
    FEWEST_ROUNDS,
    asks_for_difference,
    by_generator,
    comparisons_of,
    outcome_at,
)

RESERVE = 1.25
"""Times the rounds that would just do: intervals are a little wider once there are more than the
fewest, and the spread so far is an estimate."""
MOST_ROUNDS = 400


class Further(NamedTuple):
    """Rounds of a point that may decide a claim."""

    claim: Claim
    point: int
    have: int
    """Finished rounds there."""
    more: int
    round_s: float
    """What one took so far."""


class Batch(NamedTuple):
    """Rounds to be measured at a point of an experiment, for a claim."""

    experiment: str
    claim: Claim
    point: int
    rounds: int
    """How many there are to be in all."""
    more: int
    """How many of them are new."""


def next_batch(foreseen: Iterable[Further], left_s: float, done: Collection[Batch]) -> Batch | None:
    """Choose where to measure further: what decides an inconclusive claim in the least time.

    A batch at most doubles a point's rounds, and fits into what is left of the time; then all is
    foreseen again. None when nothing helps, or nothing but what was done already.
    """
    cheapest_first = sorted(foreseen, key=lambda further: further.more * further.round_s)
    batches = (_batch(further, left_s) for further in cheapest_first)
    return next((batch for batch in batches if batch.more > 0 and batch not in done), None)


def _batch(further: Further, left_s: float) -> Batch:
    more = min(further.more, further.have, int(max(left_s, 0) / further.round_s))
    experiment = further.claim.experiment
    return Batch(experiment, further.claim, further.point, further.have + more, more)


def further_rounds(claim: Claim, run: RunData) -> list[Further]:
    """Give what would decide a claim that isn't decided; empty where more rounds are in vain.

    Every load generator needs the fewest rounds of a verdict; only the first one has to decide.
    """
    if claim.is_figure:
        return []
    rounds = []
    for number, judged in enumerate(by_generator(claim, run).values()):
        rounds += [
            Further(claim, point, len(took_s), more, fmean(took_s))
            for point, more in _by_point(claim, judged, decides=number == 0)
            if (took_s := _took_s(point, run))
        ]
    return rounds


def _took_s(point: int, run: RunData) -> list[float]:
    return [
        record.took_s
        for record in run.records
        if isinstance(record, RoundRecord) and record.point == point
    ]


def _by_point(
    claim: Claim, judged: Sequence[PointJudgement], *, decides: bool
) -> Iterator[tuple[int, int]]:
    """Give points with the rounds that they lack.

    A claim holds when all comparisons say so, and doesn't when one says no: where one seems to, the
    cheapest of those is enough.
    """
    lacking = {
        judged_point.point.number: [
            comparison
            for comparison in comparisons_of(claim, judged_point)
            if outcome_at(claim, comparison) is Outcome.INCONCLUSIVE
        ]
        for judged_point in judged
    }
    outcomes = {
        outcome_at(claim, comparison)
        for judged_point in judged
        for comparison in comparisons_of(claim, judged_point)
    }
    if Outcome.FAILS in outcomes:
        return
    refuting = [
        (more, point)
        for point, comparisons in lacking.items()
        for comparison in comparisons
        if len(comparison.by_round) >= FEWEST_ROUNDS and seems_to_fail(claim, comparison)
        if (more := rounds_to_decide(claim, comparison))
    ]
    finished = {judged_point.point.number: judged_point.judgement.rounds for judged_point in judged}
    for point, comparisons in lacking.items():
        valid = min((len(comparison.by_round) for comparison in comparisons), default=FEWEST_ROUNDS)
        if valid < FEWEST_ROUNDS:
            if valid or finished[point] < FEWEST_ROUNDS:
                yield point, _lacking(valid, finished[point])
        elif decides and refuting:
            if point == min(refuting)[1]:
                yield point, min(refuting)[0]
        elif decides and comparisons:
            needed = [rounds_to_decide(claim, comparison) or 0 for comparison in comparisons]
            if min(needed):
                yield point, max(needed)


def _lacking(valid: int, finished: int) -> int:
    """Give the rounds without which there are fewer valid ones than a verdict needs.

    As many of them are invalidated as were so far. Where none of enough rounds was valid, none will
    be, as where a load generator doesn't report the metric.
    """
    missing = FEWEST_ROUNDS - valid
    return ceil(missing * finished / valid) if valid else missing


def seems_to_fail(claim: Claim, comparison: Comparison) -> bool:
    """Whether the estimate lies outside the claim's bounds."""
    if comparison.ratio is None:
        return False
    estimate = comparison.ratio.estimate
    too_low = claim.above is not None and estimate < claim.above
    return too_low or (claim.below is not None and estimate > claim.below)


def rounds_to_decide(claim: Claim, comparison: Comparison) -> int | None:
    """Foresee how many more rounds decide a comparison if estimate and spread stay as they are.

    The interval's half-width goes with the square root of their number; what may have biased it
    stays. None where no number in reason would do.
    """
    ratio, decisive, rounds = comparison.ratio, comparison.decisive, len(comparison.by_round)
    if ratio is None or decisive is None:
        return FEWEST_ROUNDS
    room = max(_rooms(claim, comparison, ratio, decisive))
    half_width = log(ratio.high / ratio.low) / 2
    if room <= 0:
        return None
    more = ceil(rounds * (half_width / room) ** 2 * RESERVE) - rounds
    return max(more, 2) if more <= MOST_ROUNDS else None


def _rooms(
    claim: Claim, comparison: Comparison, ratio: Interval, decisive: Interval
) -> Iterator[float]:
    """Give how wide (ln) the interval may be to each side, for each way to decide the claim."""
    centre = log(ratio.estimate)
    down, up = log(ratio.low / decisive.low), log(decisive.high / ratio.high)
    low = -inf if claim.above is None else log(claim.above)
    high = inf if claim.below is None else log(claim.below)
    yield min(centre - down - low, high - centre - up)
    yield low - centre - up
    yield centre - down - high
    if asks_for_difference(claim):
        limit = log1p(comparison.delta)
        yield min(limit - centre - up, limit + centre - down)
