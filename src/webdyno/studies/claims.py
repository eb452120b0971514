"""Whether a claim holds in a run: pure functions from records to an outcome.

A claim is that the ratios of some arms to another one lie between bounds at certain levels. At each
point it holds when a ratio's whole interval lies between them, and doesn't when it lies outside.
"""

from collections.abc import Iterable, Sequence

from webdyno.judge.sweep import judge_sweep
from webdyno.model.experiment import GeneratorName, Measure
from webdyno.model.format import count
from webdyno.model.judgement import Comparison, Interval, Verdict
from webdyno.model.point import Point, PointJudgement, plan_points
from webdyno.model.records import BlockRecord, Record
from webdyno.model.run import RunHead
from webdyno.model.study import Claim, ClaimRow, Outcome, Told


def judge_claim(
    study: str, claim: Claim, head: RunHead | None, records: Sequence[Record]
) -> ClaimRow:
    """Judge a claim by the run of its experiment; None where there is no run."""
    if claim.missing is not None:
        return ClaimRow(study=study, claim=claim, told=[], why=claim.missing)
    if head is None:
        why = f"experiment {claim.experiment} has not been run"
        return ClaimRow(study=study, claim=claim, told=[], why=why)
    head = _held_against(claim.against, head)
    measured = {record.point for record in records if isinstance(record, BlockRecord)}
    judged = [at for at in judge_sweep(head, records).points if _matches(claim, at.point)]
    by_generator: dict[GeneratorName, list[PointJudgement]] = {}
    for plan in plan_points(head.experiment):
        at = [each for each in judged if each.point == plan.point]
        by_generator.setdefault(plan.experiment.generator, []).extend(at)
    told = [_told(name, claim, points, measured) for name, points in by_generator.items()]
    told.sort(key=lambda each: each.generator != "loadgen")
    return ClaimRow(study=study, claim=claim, told=told)


def _held_against(arm: str, head: RunHead) -> RunHead:
    """Give the run with this arm as the baseline: a claim may compare any two."""
    arms = dict(sorted(head.experiment.arms.items(), key=lambda item: item[0] != arm))
    experiment = head.experiment.model_copy(update={"arms": arms})
    return head.model_copy(update={"experiment": experiment})


def _matches(claim: Claim, point: Point) -> bool:
    return all(point.levels.get(factor) == level for factor, level in claim.at.items())


def _told(
    generator: GeneratorName, claim: Claim, judged: Sequence[PointJudgement], measured: set[int]
) -> Told:
    there = [at for at in judged if at.point.number in measured]
    if not there:
        why = "no finished block at its levels; a longer --budget or --full measures there"
        return Told(generator=generator, outcome=Outcome.UNTOLD, ratios=[], why=why)
    found = [comparison for at in there for comparison in _comparisons(claim, at)]
    if not found:
        why = f"{generator} doesn't tell {claim.metric}"
        return Told(generator=generator, outcome=Outcome.UNTOLD, ratios=[], why=why)
    outcomes = [(comparison, outcome_at(claim, comparison)) for comparison in found]
    outcome = _together(outcome for _, outcome in outcomes)
    cause = [comparison for comparison, each in outcomes if each is outcome]
    return Told(
        generator=generator,
        outcome=outcome,
        ratios=[comparison.ratio for comparison in found if comparison.ratio],
        why=_why(claim, outcome, cause, len(found)),
    )


def _comparisons(claim: Claim, at: PointJudgement) -> list[Comparison]:
    return [
        comparison
        for comparison in at.judgement.comparisons
        if comparison.metric == claim.metric and comparison.a in claim.arms
    ]


def outcome_at(claim: Claim, comparison: Comparison) -> Outcome:
    """Compare one point's ratio with the claim's bounds."""
    if comparison.verdict is Verdict.INVALID:
        return Outcome.UNTOLD
    ratio = comparison.ratio
    if ratio is None or not _enough(comparison):
        return Outcome.UNDECIDED
    if _inside(ratio, claim):
        return Outcome.HOLDS
    return Outcome.FAILS if _outside(ratio, claim) else Outcome.UNDECIDED


def _enough(comparison: Comparison) -> bool:
    """Whether there are as many blocks as any verdict needs."""
    return len(comparison.by_block) >= Measure().min_blocks


def _inside(ratio: Interval, claim: Claim) -> bool:
    above, below = claim.above, claim.below
    return (above is None or ratio.low > above) and (below is None or ratio.high < below)


def _outside(ratio: Interval, claim: Claim) -> bool:
    above, below = claim.above, claim.below
    return (above is not None and ratio.high < above) or (below is not None and ratio.low > below)


def _together(outcomes: Iterable[Outcome]) -> Outcome:
    """A claim must hold wherever that can be told; one point where it doesn't refutes it."""
    found = set(outcomes)
    order = (Outcome.FAILS, Outcome.UNDECIDED, Outcome.HOLDS, Outcome.UNTOLD)
    return next(outcome for outcome in order if outcome in found)


def _why(claim: Claim, outcome: Outcome, cause: Sequence[Comparison], comparisons: int) -> str:
    if outcome is Outcome.UNTOLD:
        return cause[0].why
    share = f"in {len(cause)} of {count(comparisons, 'comparison')} " if comparisons > 1 else ""
    if outcome is Outcome.UNDECIDED:
        return share + _missing(claim, cause)
    where = "inside" if outcome is Outcome.HOLDS else "outside"
    return f"{share}the interval lies {where} {bounds(claim)}"


def _missing(claim: Claim, cause: Sequence[Comparison]) -> str:
    """Say what a decision lacks."""
    fewest = min(len(comparison.by_block) for comparison in cause)
    if fewest < Measure().min_blocks:
        return f"only {count(fewest, 'valid block')}, {Measure().min_blocks} are the fewest"
    return (
        f"the interval contains a bound of the claim ({bounds(claim)}); "
        "a longer --budget narrows it"
    )


def bounds(claim: Claim) -> str:
    """Write the claimed ratio: `above 2`, `0.9 to 1.1`."""
    if claim.above is not None and claim.below is not None:
        return f"{claim.above:g} to {claim.below:g}"
    return f"above {claim.above:g}" if claim.above is not None else f"below {claim.below:g}"
