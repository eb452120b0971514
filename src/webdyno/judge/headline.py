"""The answer to an experiment's question in one sentence."""

from collections.abc import Sequence

from webdyno.judge.metrics import metric_rule
from webdyno.judge.words import minutes, percent, plural, ratio_range, ratio_text
from webdyno.model.judgement import Comparison, Verdict


def headline(deciding: Sequence[Comparison]) -> str:
    """Say the comparisons on the deciding metric; a reason that several share is said once."""
    return "; ".join(dict.fromkeys(_sentence(comparison) for comparison in deciding))


def _sentence(comparison: Comparison) -> str:
    if comparison.verdict is Verdict.INVALID:
        return _lower_first(comparison.why)
    if comparison.ratio is None:
        return f"{comparison.a} against {comparison.b}: undecided, {_lower_first(comparison.why)}"
    ratio = comparison.ratio
    text = ratio_text(ratio.estimate, (ratio.high - ratio.low) / 2)
    said = metric_rule(comparison.metric).saying.format(a=comparison.a, b=comparison.b, ratio=text)
    evidence = f"{ratio_range(ratio)}, {plural(len(comparison.by_block), 'block')}"
    return f"{said} ({evidence}): {_verdict(comparison)}"


def _verdict(comparison: Comparison) -> str:
    if comparison.verdict is Verdict.EQUIVALENT:
        because = f": {comparison.reason}" if comparison.reason else ""
        return f"equivalent within {percent(comparison.delta)}{because}"
    if comparison.verdict is not Verdict.UNDECIDED:
        return comparison.verdict
    if comparison.more_blocks is None or comparison.more_minutes is None:
        return "undecided, too close to call in reasonable time"
    return (
        f"undecided, about {plural(comparison.more_blocks, 'more block')} "
        f"({minutes(comparison.more_minutes * 60)}) needed"
    )


def _lower_first(sentence: str) -> str:
    return (sentence[:1].lower() + sentence[1:]).rstrip(".")
