"""Words and signs for verdicts, metrics and figures, and for how far these can be off."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from statistics import median

from webdyno.comparison.sentences import (
    bound_of,
    verdict_word,
    what_may_be,
)
from webdyno.core import format as text
from webdyno.core.base import ENDLESS, Interval
from webdyno.core.judgement import (
    DIFFERENT,
    Bias,
    Comparison,
    Metric,
    VariantValue,
    Verdict,
)
from webdyno.core.metrics import METRICS, MetricRule
from webdyno.core.sweep import Change
from webdyno.media.document import Cell, Counts, Headline

SIGNS = {
    Verdict.FASTER: "▲",
    Verdict.SLOWER: "▼",
    Verdict.EQUIVALENT: "=",
    Verdict.INCONCLUSIVE: "?",
    Verdict.INVALID: "✕",
    Verdict.INCOMPLETE: "–",
    Verdict.MEASURED: "●",
}
"""A verdict is never known by colour alone."""
LEAST_WORTH_TIMES = 1.25
"""From here on a difference is reported as a number of CPUs or servers, below it in per cent."""
WHOLE = 0.05
"""A number of them that is as near to a whole one is reported as that."""
NUMBERS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
MICROSECONDS = "µs"
"""The unit of metrics whose values are written as latency is, each with a unit of its own."""
SMALLEST_REPORTED = 1.0005
MOST_REPORTED = 6
ANYTHING = "any"
"""Of a ratio without bounds, in a table."""
WIDE, WIDE_DIGITS = 1e6, 1
"""How many times its lower end an interval's upper one may be to be written, in how many digits."""


def number_word(times: float) -> str:
    """Return how many CPUs or servers do the work of one: in a word, where it is about whole."""
    whole = round(times)
    if 2 <= whole < len(NUMBERS) + 2 and abs(times - whole) <= WHOLE * times:
        return NUMBERS[whole - 2]
    return text.significant(times, 2)


def metric_label(metric: Metric) -> str:
    return text.upper_first(metric.label)


def metric_title(metric: Metric) -> str:
    """Return the label with the metric's unit, unless each value names its own."""
    return metric_label(metric) if metric.unit == MICROSECONDS else metric_axis(metric)


def metric_axis(metric: Metric) -> str:
    """Return the label with the metric's unit, where it has one."""
    return ", ".join(filter(None, (metric_label(metric), metric.unit)))


def value_and_interval(value: VariantValue | None) -> tuple[str, str]:
    """Return a variant's value and the interval around it; of a single round only a value."""
    if value is None:
        return text.MISSING, ""
    if value.interval is None:
        if len(value.by_round) != 1:
            return text.MISSING, ""
        (only,) = value.by_round
        return (text.latency(only) if _is_time(value.metric) else text.significant(only)), ""
    return quantity_and_interval(value.metric, value.interval)


def quantity_and_interval(metric: str, interval: Interval) -> tuple[str, str]:
    """Return a value of a metric and the interval around it, for people."""
    if _is_time(metric):
        shown, around = text.latency_and_bounds(interval)
    else:
        shown, around = text.quantity(interval), text.quantity_bounds(interval)
    return shown, "" if text.is_constant(interval) else around


def _is_time(metric: str) -> bool:
    return METRICS[metric].metric.unit == MICROSECONDS


def ratio_and_interval(comparison: Comparison) -> tuple[str, str]:
    """Return a ratio and the interval around it, where there is one."""
    ratio = comparison.ratio
    if ratio is None:
        return text.MISSING, ""
    return bound_sign(comparison) + text.times(ratio), text.ratio_bounds(ratio)


def sure_ratio(comparison: Comparison) -> str:
    """Return a ratio with the digits that the interval bears on which its verdict rests."""
    sure = comparison.decisive
    return bound_sign(comparison) + text.times(sure) if sure else text.MISSING


def within_a_round(value: VariantValue | None) -> str:
    """Return where a percentile lies by one typical round's responses; nothing for others."""
    ranges = value.within_rounds if value else []
    if not ranges:
        return ""
    low = _middle([extent.low for extent in ranges])
    high = _middle([extent.high for extent in ranges])
    if high is None:
        return "too few responses in a round" if low is None else f"above {text.latency(low)}"
    if low is None:
        return f"below {text.latency(high)}"
    each_us, unit = text.latency_unit(high)
    ends = (text.significant(end / each_us, text.LATENCY_DIGITS) for end in (low, high))
    return f"{text.DASH.join(ends)} {unit}"


def _middle(ends: Sequence[float | None]) -> float | None:
    """Return the median; None where most rounds can't say that end."""
    known = [end for end in ends if end is not None]
    return median(known) if 2 * len(known) > len(ends) else None


def kind_words(rules: Iterable[MetricRule], apart: Collection[str] = ()) -> list[str]:
    """Return what metrics are about, each once: `throughput`, `CPU per request`, `latency`.

    Of the kinds `apart` each metric by its own name: `latency p99`.
    """
    return list(
        dict.fromkeys(
            rule.metric.label if rule.kind in {"work", *apart} else rule.kind for rule in rules
        )
    )


def side_word(comparison: Comparison | Change) -> str:
    """Return a verdict on a metric that doesn't decide: less CPU time is better, not faster."""
    if isinstance(comparison, Comparison) and comparison.ratio is None:
        return ""
    if _is_negligible(comparison):
        return "below the practical threshold"
    words = {Verdict.FASTER: "better", Verdict.SLOWER: "worse"}
    return words.get(comparison.verdict, str(comparison.verdict))


def _is_negligible(comparison: Comparison | Change) -> bool:
    """Whether a difference, whatever its ratio, is below the metric's floor."""
    if isinstance(comparison, Comparison):
        return comparison.negligible
    change = comparison.change
    if change is None or comparison.verdict is not Verdict.EQUIVALENT:
        return False
    most = 1 + comparison.delta
    return change.low < 1 / most or change.high > most


def verdict_cell(verdict: Verdict, word: str = "") -> Cell:
    """Return a verdict for a table: its sign and its word, or another one."""
    return Cell(f"{SIGNS[verdict]} {word or verdict}", tone=verdict)


def ratio_cells(ratio: Interval | None) -> list[Cell]:
    """Return a ratio and the interval around it for a table."""
    if ratio is None:
        return [Cell(text.MISSING), Cell()]
    return [Cell(text.times(ratio)), Cell(text.ratio_bounds(ratio), soft=True)]


def verdict_counts(counts: Mapping[Verdict, int], sentences: Sequence[str], metric: str) -> Counts:
    """Return how often there is each verdict on a metric, and what they say together."""
    badges = [
        (verdict, f"{SIGNS[verdict]} {count} {verdict_word(verdict, metric)}")
        for verdict, count in counts.items()
    ]
    return Counts(badges, sentences)


def as_headline(verdict: Verdict, sentence: str) -> Headline:
    return Headline(verdict, f"{SIGNS[verdict]} {str(verdict).upper()}", sentence)


def change_headline(change: Change) -> Headline:
    """Return what became of a variant from one run to another."""
    word = verdict_word(change.verdict, change.metric).upper()
    decided = change.verdict in DIFFERENT
    title = f"{SIGNS[change.verdict]} {f'{change.subject} is ' * decided}{word}"
    if change.change is None or change.verdict is Verdict.INVALID:
        return Headline(change.verdict, title, f"{change.subject}: {text.lower_first(change.why)}")
    subject = "" if decided else f"{change.subject} has "
    of_before = f"the {METRICS[change.metric].short} of before"
    said = f"{subject}{text.times(change.change)} {of_before} ({text.ratio_range(change.change)})"
    return Headline(change.verdict, title, said)


def bias_sentences(comparison: Comparison) -> Iterator[str]:
    """Yield what a comparison withstands next to its verdict: in sentences, none without bounds."""
    if comparison.ratio and comparison.worst_case:
        yield (
            f"Sampling CI {text.between(comparison.ratio)}; worst case "
            f"{text.between(comparison.worst_case)}, with all interference "
            "counted against the verdict."
        )
    biases = (bias for bias in comparison.biases if _worst(bias) >= SMALLEST_REPORTED)
    if causes := sorted(biases, key=_worst, reverse=True):
        more = len(causes) - MOST_REPORTED
        said = "; ".join(map(_cause, causes[:MOST_REPORTED]))
        yield f"Bias bounds: {said}{f'; and {more} more' if more > 0 else ''}."
    for variant, limit in comparison.limited_by.items():
        yield f"{variant} was {limit}-limited, and may {what_may_be(comparison)}."


def bound_sign(comparison: Comparison) -> str:
    """Return what marks a ratio that is only a bound: `≥ ` where the variant was limited."""
    return {"at least": "≥ ", "at most": "≤ ", "": ""}[bound_of(comparison)]


def sure_bounds(comparison: Comparison) -> str:
    """Return the interval that the verdict rests on, for a table, however little it says."""
    wide = comparison.decisive
    if comparison.verdict is Verdict.INCONCLUSIVE and wide and not text.is_useful(wide):
        ends = (text.significant(end, WIDE_DIGITS) for end in (wide.low, wide.high))
        return ANYTHING if wide.high > WIDE * wide.low else text.DASH.join(ends)
    return worst_case_words(comparison) or ratio_and_interval(comparison)[1]


def worst_case_words(comparison: Comparison) -> str:
    """Return the worst-case CI for a table: `1.80–2.01`, `≥ 3.05`; empty where there is none."""
    wide = comparison.worst_case
    if wide is None:
        return ""
    low, high = (text.significant(end, 3) for end in (wide.low, wide.high))
    endless = not text.is_useful(wide)
    if wide.low < 1 / ENDLESS or (endless and wide.high < 1):
        return ANYTHING if wide.high > ENDLESS else f"≤ {high}"
    return (
        f"≥ {low}" if wide.high > ENDLESS or (endless and wide.low > 1) else text.ratio_bounds(wide)
    )


def _worst(bias: Bias) -> float:
    return max(ENDLESS if factor is None else factor for factor in (bias.too_low, bias.too_high))


def _cause(bias: Bias) -> str:
    said = []
    for side, factor in (("low", bias.too_low), ("high", bias.too_high)):
        if factor is None:
            said.append(f"by an unknown share too {side}")
        elif factor >= SMALLEST_REPORTED:
            said.append(f"at most {text.percent(factor - 1)} too {side}")
    return f"{bias.variant} {' or '.join(said)} ({bias.cause})"
