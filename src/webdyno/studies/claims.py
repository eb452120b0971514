"""Whether a claim holds in a run, or how many more rounds would decide it: pure functions.

A claim is that the ratios of some variants to another one lie between bounds at certain levels. At
each point it holds when a ratio's whole interval lies between them, and doesn't when it lies
outside. Further rounds are settled beforehand, and nobody looks again until they are all measured:
nothing stops at a round that happens to decide.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from math import ceil, inf, log, log1p
from statistics import fmean
from typing import NamedTuple

from webdyno.comparison import judge
from webdyno.comparison.comparison import invert
from webdyno.core.base import Interval
from webdyno.core.experiment import OWN_GENERATOR, GeneratorName
from webdyno.core.format import count
from webdyno.core.judgement import Comparison, Verdict
from webdyno.core.measure import Measure
from webdyno.core.metrics import CPU_TIME, THROUGHPUT
from webdyno.core.records import RoundRecord
from webdyno.core.study import Claim, ClaimRow, GeneratorAnswer, Outcome
from webdyno.core.sweep import PointJudgement
from webdyno.evidence.point_data import RunData

JUDGED_BY_CPU = "both were client-limited, so by what the servers' CPU per request allows"
Known = Mapping[tuple[str, str], Comparison]
"""Comparisons by metric and variant."""
FEWEST_ROUNDS = Measure().min_rounds
"""As many as any verdict needs."""

RESERVE = 1.25
"""Times the rounds that would just do: intervals are a little wider once there are more than the
fewest, and the spread so far is an estimate."""
MOST_ROUNDS = 400


def judge_claim(study: str, claim: Claim, run: RunData | None) -> ClaimRow:
    """Judge a claim by the run of its experiment; None where there is no run."""
    if run is None:
        why = f"experiment {claim.experiment} has not been run"
        return ClaimRow(study=study, claim=claim, reported=[], why=why)
    answers = [_answer_of(name, claim, points) for name, points in by_generator(claim, run).items()]
    return ClaimRow(study=study, claim=claim, reported=answers)


def by_generator(claim: Claim, run: RunData) -> Mapping[GeneratorName, list[PointJudgement]]:
    """Judge the measured points that a claim is about, by load generator.

    The one that decides is first.
    """
    measured = {record.point for record in run.records if isinstance(record, RoundRecord)}
    judged: dict[GeneratorName, list[PointJudgement]] = {}
    for data in run.points:
        of_generator = judged.setdefault(data.experiment.generator, [])
        at_its_levels = claim.at.items() <= data.point.levels.items()
        if data.point.number in measured and at_its_levels:
            variants = data.experiment.variants
            if claim.against:  # a claim may compare any two
                data = data.among(sorted(variants, key=lambda name: name != claim.against))
            of_generator.append(PointJudgement(point=data.point, judgement=judge(data)))
    return dict(sorted(judged.items(), key=lambda item: item[0] != OWN_GENERATOR))


def _answer_of(
    generator: GeneratorName, claim: Claim, judged: Sequence[PointJudgement]
) -> GeneratorAnswer:
    if not judged:
        why = "no finished round at its levels; a longer --time or --full measures there"
        return _not_judged(generator, why)
    if claim.is_figure:
        return _figures(generator, claim, judged)
    comparisons = [comparison for point in judged for comparison in comparisons_of(claim, point)]
    if not comparisons:
        return _not_judged(generator, f"{generator} doesn't report {claim.metric}")
    outcomes = [(comparison, outcome_at(claim, comparison)) for comparison in comparisons]
    outcome = _together(outcome for _, outcome in outcomes)
    cause = [comparison for comparison, each in outcomes if each is outcome]
    return GeneratorAnswer(
        generator=generator,
        outcome=outcome,
        found=[comparison.ratio for comparison in comparisons if comparison.ratio],
        why=_why(claim, outcome, cause, len(comparisons)),
    )


def _not_judged(generator: GeneratorName, why: str) -> GeneratorAnswer:
    return GeneratorAnswer(generator=generator, outcome=Outcome.NOT_JUDGED, found=[], why=why)


def _figures(
    generator: GeneratorName, claim: Claim, judged: Sequence[PointJudgement]
) -> GeneratorAnswer:
    intervals, invalidated, limited = [], [], list[str]()
    for judgement in (point.judgement for point in judged):
        compared = [
            comparison for comparison in judgement.comparisons if comparison.metric == claim.metric
        ]
        limited += [variant for variant in _limited_in(compared) if variant in claim.variants]
        for value in judgement.variants:
            if value.metric != claim.metric or value.variant not in claim.variants:
                continue
            whys = [
                warning.what
                for warning in judgement.warnings
                if warning.invalidates(value.metric, [value.variant])
            ]
            invalidated += whys
            if value.interval is not None and not whys:
                intervals.append(value.interval)
    if intervals:
        why = "a figure of another machine; no ratio on one machine can answer it"
        why += _limits(limited)
        return GeneratorAnswer(generator=generator, outcome=Outcome.SHOWN, found=intervals, why=why)
    unknown = f"{generator} doesn't report {claim.metric}"
    return _not_judged(generator, next(iter(invalidated), unknown))


def comparisons_of(claim: Claim, point: PointJudgement) -> list[Comparison]:
    """Return the comparisons that a claim is about at one point.

    Where both variants were client-limited, neither could show its throughput: the one that needs
    less of the servers' CPU time for a request could have a higher one, by as much.
    """
    known = {(each.metric, each.a): each for each in point.judgement.comparisons}
    claimed = (known.get((claim.metric, variant)) for variant in claim.variants)
    return [_by_cpu_time(comparison, known) for comparison in claimed if comparison]


def _by_cpu_time(comparison: Comparison, known: Known) -> Comparison:
    by_cpu = known.get((CPU_TIME, comparison.a))
    both = list(comparison.limited_by.values()) == ["client", "client"]
    if comparison.metric != THROUGHPUT or not both or by_cpu is None or by_cpu.ratio is None:
        return comparison
    return invert(by_cpu).replace(reason=JUDGED_BY_CPU)


def outcome_at(claim: Claim, comparison: Comparison) -> Outcome:
    """Compare one point's ratio with the claim's bounds."""
    if comparison.verdict is Verdict.INVALID:
        return Outcome.NOT_JUDGED
    decisive = comparison.decisive
    if decisive is None or len(comparison.by_round) < FEWEST_ROUNDS:
        return Outcome.INCONCLUSIVE
    if _inside(decisive, claim):
        return Outcome.HOLDS
    if _outside(decisive, claim) or _no_difference(claim, comparison):
        return Outcome.FAILS
    return Outcome.INCONCLUSIVE


def asks_for_difference(claim: Claim) -> bool:
    """Whether equal variants refute the claim: one of its bounds is 1."""
    return 1.0 in (claim.above, claim.below)


def _no_difference(claim: Claim, comparison: Comparison) -> bool:
    """Whether a claimed difference, of whatever size, is too small to matter."""
    return asks_for_difference(claim) and comparison.verdict is Verdict.EQUIVALENT


def _inside(ratio: Interval, claim: Claim) -> bool:
    above, below = claim.above, claim.below
    return (above is None or ratio.low > above) and (below is None or ratio.high < below)


def _outside(ratio: Interval, claim: Claim) -> bool:
    above, below = claim.above, claim.below
    return (above is not None and ratio.high < above) or (below is not None and ratio.low > below)


def _together(outcomes: Iterable[Outcome]) -> Outcome:
    """A claim must hold wherever that can be known; one point where it doesn't refutes it."""
    seen = set(outcomes)
    order = (Outcome.FAILS, Outcome.INCONCLUSIVE, Outcome.HOLDS, Outcome.NOT_JUDGED)
    return next(outcome for outcome in order if outcome in seen)


def _why(claim: Claim, outcome: Outcome, cause: Sequence[Comparison], comparisons: int) -> str:
    if outcome is Outcome.NOT_JUDGED:
        return cause[0].why
    share = f"in {len(cause)} of {count(comparisons, 'comparison')} " if comparisons > 1 else ""
    if outcome is Outcome.INCONCLUSIVE:
        return share + _missing(claim, cause)
    if outcome is Outcome.FAILS and all(_no_difference(claim, each) for each in cause):
        return f"{share}there is no difference that matters{_ruled_out(cause)}"
    where = "inside" if outcome is Outcome.HOLDS else "outside"
    if all(each.reason == JUDGED_BY_CPU for each in cause):
        share += f"{JUDGED_BY_CPU}: "
    sides = _limits(_limited_in(cause))
    return f"{share}the interval lies {where} {claimed_range(claim)}{sides}{_ruled_out(cause)}"


def _ruled_out(cause: Sequence[Comparison]) -> str:
    return f"; {cause[0].rules_out}" if len(cause) == 1 and cause[0].rules_out else ""


def _limited_in(comparisons: Iterable[Comparison]) -> list[str]:
    return list(
        dict.fromkeys(variant for comparison in comparisons for variant in comparison.limited_by)
    )


def _limits(limited: Sequence[str]) -> str:
    """Describe where a value, and a ratio with it, is only known from one side."""
    names = ", ".join(dict.fromkeys(limited))
    return f"; {names}: limited by client or link" if names else ""


def _missing(claim: Claim, cause: Sequence[Comparison]) -> str:
    fewest = min(len(comparison.by_round) for comparison in cause)
    if fewest < FEWEST_ROUNDS:
        return f"only {count(fewest, 'valid round')}, {FEWEST_ROUNDS} are the fewest"
    ratios = [each.ratio for each in cause]
    if all(ratio and (_inside(ratio, claim) or _outside(ratio, claim)) for ratio in ratios):
        causes = dict.fromkeys(bias.cause for each in cause for bias in each.biases)
        return f"it looks clear, but {', '.join(causes)} may explain it"
    return (
        f"the interval contains a bound of the claim ({claimed_range(claim)}){_ruled_out(cause)}; "
        "a longer --time narrows it"
    )


def claimed_range(claim: Claim) -> str:
    """Write the claimed ratio: `above 2`, `0.9 to 1.1`."""
    if claim.above is not None and claim.below is not None:
        return f"{claim.above:g} to {claim.below:g}"
    return f"above {claim.above:g}" if claim.above is not None else f"below {claim.below:g}"


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

    A batch at most doubles a point's rounds, and fits into the time that is left; then all is
    foreseen again. None when nothing helps that wasn't done already.
    """
    for further in sorted(foreseen, key=lambda further: further.more * further.round_s):
        claim, have = further.claim, further.have
        more = min(further.more, have, int(max(left_s, 0) / further.round_s))
        batch = Batch(claim.experiment, claim, further.point, have + more, more)
        if more > 0 and batch not in done:
            return batch
    return None


def further_rounds(claim: Claim, run: RunData) -> list[Further]:
    """Return what would decide a claim that isn't decided; empty where more rounds are in vain.

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
    """Yield points with the rounds that they lack.

    A claim holds when all comparisons do, and fails when one does: where some seem to fail, the
    cheapest of those is enough.
    """
    lacking = dict[int, list[Comparison]]()
    for judged_point in judged:
        at_point = lacking.setdefault(judged_point.point.number, [])
        for comparison in comparisons_of(claim, judged_point):
            outcome = outcome_at(claim, comparison)
            if outcome is Outcome.FAILS:
                return
            if outcome is Outcome.INCONCLUSIVE:
                at_point.append(comparison)
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
    """Return the rounds that a verdict needs, if as many are invalidated as were so far."""
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

    The half-width goes with the square root of their number; possible bias stays. None where no
    reasonable number would do.
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
    """Return how wide (ln) the interval may be to each side, for each way to decide the claim."""
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
