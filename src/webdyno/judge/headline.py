"""The answer to an experiment's question in one sentence."""

from collections.abc import Sequence

from webdyno.judge.metrics import metric_rule
from webdyno.model.format import count, minutes, percent, ratio, ratio_range
from webdyno.model.judgement import Comparison, Verdict


def headline(deciding: Sequence[Comparison]) -> str:
    """Say the comparisons on the deciding metric; a reason that several share is said once."""
    return "; ".join(dict.fromkeys(_with_verdict(comparison) for comparison in deciding))


def sentence(comparison: Comparison) -> str:
    """Say what was found and how sure it is, where the verdict's name stands beside it."""
    if comparison.verdict is Verdict.INVALID:
        return comparison.why
    outlook = _outlook(comparison)
    if comparison.verdict is Verdict.EQUIVALENT:
        outlook = f"the same {outlook}"
    return f"{_found(comparison)}: {outlook}" if outlook else f"{_found(comparison)}."


def _with_verdict(comparison: Comparison) -> str:
    if comparison.verdict is Verdict.INVALID:
        return _lower_first(comparison.why)
    parting = ", " if comparison.verdict is Verdict.UNDECIDED else " "
    said = f"{comparison.verdict}{parting}{_outlook(comparison)}".rstrip(" ")
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
