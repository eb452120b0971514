"""The whole judgement of a run: comparisons on every metric, findings, one sentence."""

from collections.abc import Sequence
from math import ceil, floor
from statistics import median

from webdyno.judge.comparison import arm_value, compare_with_baseline, same_arm_findings
from webdyno.judge.measured import Measured
from webdyno.judge.validity import (
    findings_of,
    left_out_slots,
    only_disturbed,
    valid_for,
)
from webdyno.judge.validity.network import both_filled_link
from webdyno.judge.variance import variance_splits
from webdyno.model.experiment import Experiment
from webdyno.model.format import TIMES, count, minutes, number, percent, ratio, ratio_range
from webdyno.model.judgement import (
    ArmFacts,
    ArmValue,
    Comparison,
    Finding,
    Judgement,
    LeftOutSlot,
    Verdict,
)
from webdyno.model.metrics import MetricRule, metric_rule, metrics_told_by
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
        findings += _flips(compared, _with_all_slots(measured, left_out, experiment, rule))
        judged = [_unless_invalid(comparison, findings) for comparison in compared]
        comparisons += [_with_reason(comparison, findings) for comparison in judged]
    deciding = [comparison for comparison in comparisons if comparison.metric == decide_on]
    asked = [comparison for comparison in deciding if not comparison.same_arm] or deciding
    asked = [_by_cpu_time(comparison, comparisons) for comparison in asked]
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


def _with_all_slots(
    measured: Measured, left_out: Sequence[LeftOutSlot], experiment: Experiment, rule: MetricRule
) -> list[Comparison]:
    """Compare with the slots that were only disturbed kept in; empty where there are none."""
    broken = [slot for slot in left_out if not only_disturbed(slot)]
    counting, all_of_them = (valid_for(measured, out, rule.name) for out in (left_out, broken))
    if len(counting.slots) == len(all_of_them.slots):
        return []
    return compare_with_baseline(all_of_them, experiment, rule)


def _flips(compared: Sequence[Comparison], kept: Sequence[Comparison]) -> list[Finding]:
    """Tell verdicts that hang on the slots that were left out: that choice may mislead."""
    whole = {comparison.a: comparison for comparison in kept}
    return [
        Finding(
            rule="left-out-matters",
            severity="note",
            arm=it.a,
            what=f"with the disturbed slots kept in, {it.a} against {it.b} would be "
            f"{whole[it.a].as_measured} instead of {it.as_measured}: the verdict on "
            f"{metric_rule(it.metric).metric.label} hangs on what was left out",
            remedy="Run again at a quieter time; both verdicts can't be right.",
            metrics=[it.metric],
        )
        for it in compared
        if it.a in whole and whole[it.a].as_measured is not it.as_measured
    ]


def _by_cpu_time(comparison: Comparison, all_of_them: Sequence[Comparison]) -> Comparison:
    """Where the client was the limit of both arms, give the comparison by CPU time instead.

    It is what the client's speed doesn't enter. Its reason says so.
    """
    if list(comparison.limited_by.values()) != ["client", "client"]:
        return comparison
    reason = (
        f"the load generator was the limit of both {comparison.a} and {comparison.b}, so that "
        "neither could show its rate; judged by server CPU time per request"
    )
    return next(
        (
            it.model_copy(update={"reason": reason})
            for it in all_of_them
            if (it.metric, it.a, it.b) == ("server_cpu_us", comparison.a, comparison.b)
        ),
        comparison,
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
    """Say what the verdict's name leaves open: how equal, at least how much, what is needed."""
    parts = [_certainty(comparison), _asked(comparison), comparison.reason]
    return ", ".join(part for part in parts if part)


def _certainty(comparison: Comparison) -> str | None:
    if comparison.negligible:
        return "the difference being too small to matter"
    if comparison.verdict is Verdict.EQUIVALENT:
        more = f", {comparison.excludes}" if comparison.excludes else ""
        return f"within {percent(comparison.delta)}{more}"
    if comparison.verdict is not Verdict.UNDECIDED:
        return _at_least(comparison)
    if comparison.ratio is None:
        return _lower_first(comparison.why)
    needed = _needed(comparison)
    return f"but {comparison.excludes} ({needed})" if comparison.excludes else needed


def _at_least(comparison: Comparison) -> str | None:
    """Say what is sure of a ratio whose better arm could have been faster still."""
    better = comparison.a if comparison.verdict is Verdict.FASTER else comparison.b
    sure = comparison.bounded or comparison.ratio
    if better not in comparison.limited_by or sure is None:
        return None
    limit = "load generator" if comparison.limited_by[better] == "client" else "link"
    if comparison.verdict is Verdict.FASTER:
        said = f"at least {number(floor(sure.low * 100) / 100, 2)}{TIMES}"
    else:
        said = f"at most {number(ceil(sure.high * 100) / 100, 2)}{TIMES}"
    return f"{said}: the {limit} was the limit of {better}"


def _asked(comparison: Comparison) -> str | None:
    """Give the answer to a question in one direction."""
    asked = comparison.one_sided
    return f"{asked.question}? {asked.answer}: {asked.why}" if asked else None


def _needed(comparison: Comparison) -> str:
    if comparison.bounded and comparison.as_measured is not Verdict.UNDECIDED:
        return f"{comparison.as_measured} as measured, but what disturbed it may have made it so"
    if comparison.more_blocks is None or comparison.more_minutes is None:
        return "too close to call in reasonable time"
    needed_s = comparison.more_minutes * 60
    return f"about {count(comparison.more_blocks, 'more block')} ({minutes(needed_s)}) needed"


def _lower_first(sentence: str) -> str:
    return (sentence[:1].lower() + sentence[1:]).rstrip(".")
