"""The whole judgement of a run: comparisons on every metric, findings, one sentence."""

from collections.abc import Sequence
from statistics import median

from webdyno.judge.comparison import arm_value, compare_with_baseline, same_arm_findings
from webdyno.judge.measured import Measured
from webdyno.judge.validity import findings_of, left_out_slots, valid_for
from webdyno.judge.validity.network import both_filled_link
from webdyno.judge.variance import variance_splits
from webdyno.model.experiment import Experiment
from webdyno.model.format import count, minutes, percent, ratio, ratio_range
from webdyno.model.judgement import (
    ArmFacts,
    ArmValue,
    Comparison,
    Finding,
    Judgement,
    Verdict,
)
from webdyno.model.metrics import metric_rule, metrics_told_by
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
    experiment, measured = head.experiment, Measured.of(records)
    decide_on = experiment.measure.decide_on
    findings = findings_of(head, measured)
    left_out = left_out_slots(measured)
    arms: list[ArmValue] = []
    comparisons: list[Comparison] = []
    metrics = metrics_told_by(measured.slots, decide_on)
    for rule in metrics:
        valid = valid_for(measured, left_out, rule.name)
        arms += [arm_value(valid, arm, rule) for arm in experiment.arms]
        compared = compare_with_baseline(valid, experiment, rule)
        findings += same_arm_findings(compared)
        judged = [_unless_invalid(comparison, findings) for comparison in compared]
        comparisons += [_with_reason(comparison, findings) for comparison in judged]
    deciding = [comparison for comparison in comparisons if comparison.metric == decide_on]
    asked = [comparison for comparison in deciding if not comparison.same_arm] or deciding
    return Judgement(
        verdict=min((it.verdict for it in asked), key=WEIGHT.index),
        headline=headline(asked),
        metrics=[rule.metric for rule in metrics],
        arms=arms,
        comparisons=comparisons,
        findings=findings,
        variance=variance_splits(
            valid_for(measured, left_out, decide_on), list(experiment.arms), metric_rule(decide_on)
        ),
        left_out=left_out,
        facts=[_facts(measured, arm) for arm in experiment.arms] if measured.blocks else [],
        stopped_because=measured.stop.why if measured.stop else None,
        blocks=len(measured.blocks),
    )


def ratios_so_far(experiment: Experiment, records: Sequence[Record]) -> list[Comparison]:
    """Compare on the deciding metric alone: what to show while a run goes on, at little cost.

    Broken slots are left out as in the judgement; whether there are too many of them isn't asked.
    """
    measured = Measured.of(records)
    rule = metric_rule(experiment.measure.decide_on)
    valid = valid_for(measured, left_out_slots(measured), rule.name)
    return compare_with_baseline(valid, experiment, rule)


def spoils(finding: Finding, metric: str, arms: Sequence[str]) -> bool:
    """Tell whether a finding makes figures of some arms on a metric invalid."""
    return (
        finding.severity == "invalid"
        and (not finding.metrics or metric in finding.metrics)
        and finding.arm in {None, *arms}
    )


def _unless_invalid(comparison: Comparison, findings: Sequence[Finding]) -> Comparison:
    """Withdraw the verdict when a finding spoils its metric in either arm."""
    for finding in findings:
        if spoils(finding, comparison.metric, (comparison.a, comparison.b)):
            return comparison.model_copy(
                update={
                    "verdict": Verdict.INVALID,
                    "negligible": False,
                    "why": f"No verdict: {finding.what}.",
                    "more_blocks": None,
                    "more_minutes": None,
                }
            )
    return comparison


def _with_reason(comparison: Comparison, findings: Sequence[Finding]) -> Comparison:
    """Say what held both arms back alike, where that is known."""
    reason = both_filled_link(comparison, findings)
    if reason is None:
        return comparison
    why = f"{comparison.why} {reason[0].upper()}{reason[1:]}."
    return comparison.model_copy(update={"why": why, "reason": reason})


def _facts(measured: Measured, arm: str) -> ArmFacts:
    ready_s = [
        block.record.ready_s[arm] for block in measured.blocks if arm in block.record.ready_s
    ]
    hits: dict[str, int] = {}
    asked: dict[str, int] = {}
    for slot in measured.of_arm(arm):
        for role, status in (slot.readings.status if slot.readings else {}).items():
            if status.hits is not None and status.misses is not None:
                hits[role] = hits.get(role, 0) + status.hits
                asked[role] = asked.get(role, 0) + status.hits + status.misses
    return ArmFacts(
        arm=arm,
        ready_s=median(ready_s) if ready_s else None,
        hit_share={role: hits[role] / total for role, total in asked.items() if total},
    )


def headline(deciding: Sequence[Comparison]) -> str:
    """Say the comparisons on the deciding metric; a reason that several share is said once."""
    return "; ".join(dict.fromkeys(_with_verdict(comparison) for comparison in deciding))


def sentence(comparison: Comparison) -> str:
    """Say what was found and how sure it is, where the verdict's name stands beside it."""
    if comparison.verdict is Verdict.INVALID:
        return comparison.why
    outlook = _outlook(comparison)
    if comparison.verdict is Verdict.EQUIVALENT and not comparison.negligible:
        outlook = f"the same {outlook}"
    return f"{_found(comparison)}: {outlook}" if outlook else f"{_found(comparison)}."


def _with_verdict(comparison: Comparison) -> str:
    if comparison.verdict is Verdict.INVALID:
        return _lower_first(comparison.why)
    within = comparison.verdict is Verdict.EQUIVALENT and not comparison.negligible
    parting = " " if within else ", "
    said = f"{comparison.verdict}{parting}{_outlook(comparison)}".rstrip(", ")
    return f"{_found(comparison)}: {said}"


def _found(comparison: Comparison) -> str:
    """Say the ratio and its evidence; only who was compared where there is no ratio yet."""
    if comparison.ratio is None:
        return f"{comparison.a} against {comparison.b}"
    said = metric_rule(comparison.metric).saying.format(
        a=comparison.a, b=comparison.b, ratio=ratio(comparison.ratio)
    )
    return f"{said} ({ratio_range(comparison.ratio)}, {count(len(comparison.by_block), 'block')})"


def _outlook(comparison: Comparison) -> str:
    """Say what the verdict's name leaves open: how equal, or what is still needed."""
    if comparison.negligible:
        return "the difference being too small to matter"
    if comparison.verdict is Verdict.EQUIVALENT:
        because = f": {comparison.reason}" if comparison.reason else ""
        return f"within {percent(comparison.delta)}{because}"
    if comparison.verdict is not Verdict.UNDECIDED:
        return ""
    if comparison.ratio is None:
        return _lower_first(comparison.why)
    if comparison.more_blocks is None or comparison.more_minutes is None:
        return "too close to call in reasonable time"
    needed_s = comparison.more_minutes * 60
    return f"about {count(comparison.more_blocks, 'more block')} ({minutes(needed_s)}) needed"


def _lower_first(sentence: str) -> str:
    return (sentence[:1].lower() + sentence[1:]).rstrip(".")
