"""How far what was measured can be off, in words: bounds of the bias, and lower bounds of rates."""

from collections.abc import Iterator

from webdyno.model import format as text
from webdyno.model.base import ENDLESS
from webdyno.model.judgement import Bias, Comparison

SMALLEST_TOLD = 1.0005
MOST_TOLD = 6
"""Causes that are told, those that can have done most."""


def told(found: Comparison) -> Iterator[str]:
    """Say what a comparison withstands beside its verdict: in sentences, none without bounds."""
    if found.ratio and found.bounded:
        yield (
            f"As measured the ratio is {text.between(found.ratio)}, with all bounds counted "
            f"against the verdict {text.between(found.bounded)}."
        )
    causes = sorted(filter(_matters, found.biases), key=_worst, reverse=True)
    if causes:
        more = len(causes) - MOST_TOLD
        said = "; ".join(map(_cause, causes[:MOST_TOLD]))
        yield f"Bounds: {said}{f'; and {more} more' if more > 0 else ''}."
    for arm, limit in found.limited_by.items():
        yield f"The {limit} was the limit for {arm}, which may be faster than measured."


def sign(found: Comparison) -> str:
    """Mark a ratio that is only a bound: `≥ ` where the arm itself was held back."""
    if set(found.limited_by) == {found.a}:
        return "≥ "
    return "≤ " if set(found.limited_by) == {found.b} else ""


def beside(found: Comparison) -> str:
    """Give the interval with all bounds for a table: `1.80–2.01`, `≥ 3.05`; none as measured."""
    wide = found.bounded
    if wide is None:
        return ""
    if wide.low < 1 / ENDLESS:
        return "any" if wide.high > ENDLESS else f"≤ {_end(wide.high)}"
    return f"≥ {_end(wide.low)}" if wide.high > ENDLESS else text.ratio_bounds(wide)


def _end(ratio: float) -> str:
    return text.significant(ratio, 3)


def _matters(bias: Bias) -> bool:
    return _worst(bias) >= SMALLEST_TOLD


def _worst(bias: Bias) -> float:
    return max(ENDLESS if it is None else it for it in (bias.too_low, bias.too_high))


def _cause(bias: Bias) -> str:
    sides = {"low": bias.too_low, "high": bias.too_high}
    said = [
        f"{_factor(factor)} too {side}"
        for side, factor in sides.items()
        if factor is None or factor >= SMALLEST_TOLD
    ]
    return f"{bias.arm} {' or '.join(said)} ({bias.cause})"


def _factor(factor: float | None) -> str:
    return "by an unknown share" if factor is None else f"at most {text.percent(factor - 1)}"
