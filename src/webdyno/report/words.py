"""Words and signs for verdicts, metrics and figures, the same wherever people see them."""

from collections.abc import Sequence
from statistics import median

from webdyno.model import format as text
from webdyno.model.judgement import ArmValue, Comparison, Metric, Verdict
from webdyno.model.several_runs import Change
from webdyno.report import bias

SIGNS = {
    Verdict.FASTER: "▲",
    Verdict.SLOWER: "▼",
    Verdict.EQUIVALENT: "=",
    Verdict.UNDECIDED: "?",
    Verdict.INVALID: "✕",
    Verdict.INCOMPLETE: "–",
    Verdict.MEASURED: "●",
}
"""A verdict is never told by colour alone."""
ABOUT_PLACES = (
    "A place is a range where more than one is possible: it begins after all that are surely "
    "better, and ends before all that are surely worse. With 95 % confidence all places hold "
    "together. Ratios are to the arm that is shown first, with intervals that hold together, too."
)


def metric_label(metric: Metric) -> str:
    """Give a metric's words for people, as a heading."""
    return metric.label[:1].upper() + metric.label[1:]


def metric_title(metric: Metric) -> str:
    """Give the label with the metric's unit, where it has one that the words don't imply."""
    implied = metric.unit in {"requests/s", ""}
    return metric_label(metric) if implied else f"{metric_label(metric)}, {metric.unit}"


def value_and_interval(value: ArmValue | None) -> tuple[str, str]:
    """Give an arm's value and the interval around it; of a single block there is only a value."""
    if value is not None and value.interval is not None:
        around = "" if text.is_constant(value.interval) else text.quantity_bounds(value.interval)
        return text.quantity(value.interval), around
    known = value is not None and len(value.by_block) == 1
    return (text.significant(value.by_block[0]) if value and known else text.MISSING), ""


def ratio_and_interval(comparison: Comparison) -> tuple[str, str]:
    """Give a ratio and the interval around it, where there is one."""
    found = comparison.ratio
    if found is None:
        return text.MISSING, ""
    return bias.sign(comparison) + text.times(found), text.ratio_bounds(found)


def sure_interval(comparison: Comparison) -> str:
    """Give the interval on which a verdict rests: with all bounds, where there are any."""
    return bias.beside(comparison) or ratio_and_interval(comparison)[1]


def within_a_block(value: ArmValue | None) -> str:
    """Give where a percentile lies by the answers of a typical block alone; nothing for others."""
    ranges = value.within_blocks if value else []
    if not ranges:
        return ""
    low, high = (_middle(ends) for ends in zip(*((it.low, it.high) for it in ranges), strict=True))
    if low is None or high is None:
        known = low if high is None else high
        side = "above" if high is None else "below"
        return "too few answers in a block" if known is None else f"{side} {text.number(known)}"
    return f"{text.number(low)}{text.DASH}{text.number(high)}"


def _middle(ends: Sequence[float | None]) -> float | None:
    """Give the median; None where most blocks can't tell that end."""
    known = [end for end in ends if end is not None]
    return median(known) if 2 * len(known) > len(ends) else None


def side_word(comparison: Comparison | Change) -> str:
    """Say a verdict on a metric that nobody asked about: less CPU time is better, not faster."""
    if isinstance(comparison, Comparison):
        if comparison.ratio is None:
            return ""
        if comparison.negligible:
            return "too little to matter"
    words = {Verdict.FASTER: "better", Verdict.SLOWER: "worse"}
    return words.get(comparison.verdict, str(comparison.verdict))
