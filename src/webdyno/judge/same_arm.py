"""A/A: an arm that is defined like the baseline shows how far apart equals come out here."""

from collections.abc import Sequence
from math import expm1, log

from webdyno.judge.comparison import DELTA, compare_arms
from webdyno.judge.evidence import Evidence
from webdyno.judge.metrics import MetricRule
from webdyno.judge.words import ratio_range
from webdyno.model.experiment import Experiment
from webdyno.model.judgement import Comparison, Finding, Verdict

DIFFERENT = {Verdict.FASTER, Verdict.SLOWER}


def compare_with_baseline(
    evidence: Evidence, experiment: Experiment, rule: MetricRule
) -> list[Comparison]:
    """Compare all arms with the first one, in their order.

    Where some are the baseline's doubles and some aren't, the doubles set delta for the others:
    delta = max(2 %, half-width of the A/A interval); where that interval excludes 1, its farther
    end. Doubles aren't counted among the comparisons that Holm's correction is for.
    """
    baseline, *others = experiment.arms
    doubles = [arm for arm in others if experiment.arms[arm] == experiment.arms[baseline]]
    asked = [arm for arm in others if arm not in doubles]
    if not doubles or not asked:
        compared = compare_arms(evidence, [baseline, *others], rule, experiment.measure)
        return [_marked(comparison, same_arm=bool(doubles)) for comparison in compared]
    same = compare_arms(evidence, [baseline, *doubles], rule, experiment.measure)
    delta = max(DELTA, *(_noise(comparison) for comparison in same))
    found = compare_arms(evidence, [baseline, *asked], rule, experiment.measure, delta=delta) + [
        _marked(comparison, same_arm=True) for comparison in same
    ]
    return sorted(found, key=lambda comparison: others.index(comparison.a))


def findings(compared: Sequence[Comparison]) -> list[Finding]:
    """Note doubles that came out different although other arms were asked about."""
    if all(comparison.same_arm for comparison in compared):
        return []
    return [
        Finding(
            rule="same-arm",
            severity="note",
            arm=comparison.a,
            what=f"arm {comparison.a} is defined like {comparison.b}, but their ratio came out as "
            f"{comparison.ratio.estimate:.3f} ({ratio_range(comparison.ratio)})",
            remedy="Smaller differences than that mean nothing in this run, and count as "
            "equivalent. Look for what changes from start to start, and run again.",
            metrics=[comparison.metric],
        )
        for comparison in compared
        if comparison.same_arm and comparison.ratio and comparison.verdict in DIFFERENT
    ]


def _marked(comparison: Comparison, *, same_arm: bool) -> Comparison:
    return comparison.model_copy(update={"same_arm": same_arm})


def _noise(comparison: Comparison) -> float:
    """How far from 1 equals may come out, as a share; 0 while that isn't known."""
    ratio = comparison.ratio
    if ratio is None:
        return 0.0
    if ratio.low > 1 or ratio.high < 1:
        return max(ratio.high, 1 / ratio.low) - 1
    half_width = max(log(ratio.high / ratio.estimate), log(ratio.estimate / ratio.low))
    return expm1(half_width)
