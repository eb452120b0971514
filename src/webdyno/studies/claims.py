"""Whether a claim holds in a run: pure functions from records to an outcome.

A claim is that the ratios of some variants to another one lie between bounds at certain levels. At
each point it holds when a ratio's whole interval lies between them, and doesn't when it lies
outside.
"""

from collections.abc import Iterable, Mapping, Sequence

from webdyno.comparison import judge
from webdyno.comparison.comparison import inverted
from webdyno.core.base import Interval
from webdyno.core.experiment import OWN_GENERATOR, GeneratorName
from webdyno.core.format import count
from webdyno.core.judgement import Comparison, Verdict
from webdyno.core.measure import Measure
from webdyno.core.metrics import CPU_TIME, THROUGHPUT
from webdyno.core.records import RoundRecord
from webdyno.core.study import Claim, ClaimRow, GeneratorAnswer, Outcome
from webdyno.core.sweep import Point, PointJudgement
from webdyno.evidence.point_data import PointData, RunData

JUDGED_BY_CPU = "both were client-limited, so by what the servers' CPU per request allows"
Known = Mapping[tuple[str, str], Comparison]
"""Comparisons by metric and variant."""
FEWEST_ROUNDS = Measure().min_rounds
"""As many as any verdict needs."""


def judge_claim(study: str, claim: Claim, run: RunData | None) -> ClaimRow:
    """Judge a claim by the run of its experiment; None where there is no run."""
    if run is None:
        why = f"experiment {claim.experiment} has not been run"
        return ClaimRow(study=study, claim=claim, reported=[], why=why)
    answers = [_judged(name, claim, points) for name, points in by_generator(claim, run).items()]
    return ClaimRow(study=study, claim=claim, reported=answers)


def by_generator(claim: Claim, run: RunData) -> Mapping[GeneratorName, list[PointJudgement]]:
    """Judge the measured points that a claim is about, by load generator.

    The one that decides is first.
    """
    measured = {record.point for record in run.records if isinstance(record, RoundRecord)}
    judged: dict[GeneratorName, list[PointJudgement]] = {}
    for data in run.points:
        of_generator = judged.setdefault(data.experiment.generator, [])
        if data.point.number in measured and _matches(claim, data.point):
            judgement = judge(_held_against(claim.against, data) if claim.against else data)
            of_generator.append(PointJudgement(point=data.point, judgement=judgement))
    return dict(sorted(judged.items(), key=lambda item: item[0] != OWN_GENERATOR))


def _held_against(variant: str, data: PointData) -> PointData:
    """Give the point with this variant as the baseline: a claim may compare any two."""
    return data.among(sorted(data.experiment.variants, key=lambda name: name != variant))


def _matches(claim: Claim, point: Point) -> bool:
    return all(point.levels.get(factor) == level for factor, level in claim.at.items())


def _judged(
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
    """Give the variants' own values, but for those that a validity rule invalidates."""
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
    return _not_judged(
        generator, invalidated[0] if invalidated else f"{generator} doesn't report {claim.metric}"
    )


def comparisons_of(claim: Claim, point: PointJudgement) -> list[Comparison]:
    """Give the comparisons that a claim is about at one point.

    Where both variants were client-limited, neither could show its throughput: then who needs
    less of the servers' CPU time for a request could have the higher one, by as much.
    """
    known = {
        (comparison.metric, comparison.a): comparison for comparison in point.judgement.comparisons
    }
    asked = [
        known[claim.metric, variant]
        for variant in claim.variants
        if (claim.metric, variant) in known
    ]
    return [_by_cpu_time(claim, known) for claim in asked]


def _by_cpu_time(comparison: Comparison, known: Known) -> Comparison:
    by_cpu = known.get((CPU_TIME, comparison.a))
    both = list(comparison.limited_by.values()) == ["client", "client"]
    if comparison.metric != THROUGHPUT or not both or by_cpu is None or by_cpu.ratio is None:
        return comparison
    return inverted(by_cpu).replace(reason=JUDGED_BY_CPU)


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
    """Say how large a difference there can't be, where one comparison decides."""
    return f"; {cause[0].rules_out}" if len(cause) == 1 and cause[0].rules_out else ""


def _limited_in(comparisons: Iterable[Comparison]) -> list[str]:
    """Name the variants whose values are known to be at least what was measured."""
    return list(
        dict.fromkeys(variant for comparison in comparisons for variant in comparison.limited_by)
    )


def _limits(limited: Sequence[str]) -> str:
    """Say where a value, and a ratio with it, is only known from one side."""
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
