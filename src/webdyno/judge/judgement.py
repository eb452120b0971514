"""The whole judgement of a run: comparisons on every metric, findings, one sentence."""

from collections.abc import Sequence

from webdyno.judge import same_arm
from webdyno.judge.comparison import arm_values
from webdyno.judge.evidence import gather
from webdyno.judge.headline import headline
from webdyno.judge.metrics import metric_rule, told_by
from webdyno.judge.validity import findings_of, left_out_slots, link, valid_for
from webdyno.judge.variance import variance_splits
from webdyno.model.judgement import ArmValue, Comparison, Finding, Judgement, Verdict
from webdyno.model.records import Record
from webdyno.model.run import RunHead

WEIGHT = (
    Verdict.INVALID,
    Verdict.UNDECIDED,
    Verdict.FASTER,
    Verdict.SLOWER,
    Verdict.EQUIVALENT,
)
"""With several arms the run's verdict is the first of these that any comparison has."""


def judge(head: RunHead, records: Sequence[Record]) -> Judgement:
    """Judge a run, finished or not."""
    experiment = head.experiment
    evidence = gather(records)
    findings = findings_of(head, evidence)
    left_out = left_out_slots(evidence)
    arms: list[ArmValue] = []
    comparisons: list[Comparison] = []
    metrics = told_by(evidence.slots)
    for rule in metrics:
        valid = valid_for(evidence, left_out, rule.metric.name)
        arms += arm_values(valid, list(experiment.arms), rule)
        compared = same_arm.compare_with_baseline(valid, experiment, rule)
        findings += same_arm.findings(compared)
        judged = [_unless_invalid(comparison, findings) for comparison in compared]
        comparisons += [_with_reason(comparison, findings) for comparison in judged]
    decide_on = experiment.measure.decide_on
    deciding = [comparison for comparison in comparisons if comparison.metric == decide_on]
    asked = [comparison for comparison in deciding if not comparison.same_arm] or deciding
    return Judgement(
        verdict=min((comparison.verdict for comparison in asked), key=WEIGHT.index),
        headline=headline(asked),
        metrics=[rule.metric for rule in metrics],
        arms=arms,
        comparisons=comparisons,
        findings=findings,
        variance=variance_splits(
            valid_for(evidence, left_out, decide_on),
            list(experiment.arms),
            metric_rule(decide_on),
        ),
        left_out=left_out,
        blocks=len(evidence.blocks),
    )


def _unless_invalid(comparison: Comparison, findings: Sequence[Finding]) -> Comparison:
    """Withdraw the verdict when a finding spoils its metric in either arm."""
    for finding in findings:
        if spoils(finding, comparison):
            return comparison.model_copy(
                update={
                    "verdict": Verdict.INVALID,
                    "why": f"No verdict: {finding.what}.",
                    "more_blocks": None,
                    "more_minutes": None,
                }
            )
    return comparison


def _with_reason(comparison: Comparison, findings: Sequence[Finding]) -> Comparison:
    """Say what held both arms back alike, where that is known."""
    reason = link.reason(comparison, findings)
    if reason is None:
        return comparison
    why = f"{comparison.why} {reason[0].upper()}{reason[1:]}."
    return comparison.model_copy(update={"why": why, "reason": reason})


def spoils(finding: Finding, comparison: Comparison) -> bool:
    """Tell whether a finding makes a comparison invalid."""
    return (
        finding.severity == "invalid"
        and (not finding.metrics or comparison.metric in finding.metrics)
        and finding.arm in {None, comparison.a, comparison.b}
    )
