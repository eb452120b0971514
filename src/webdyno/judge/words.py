"""Figures and sentences for people."""

from math import ceil, floor, log10

from webdyno.model.judgement import Interval


def number(count: float) -> str:
    """Write a count with its thousands set apart."""
    return f"{count:,.0f}"


def percent(share: float) -> str:
    """Write a share with as many digits as matter."""
    return f"{share * 100:.2g} %" if abs(share) < 0.1 else f"{share * 100:.0f} %"


def ratio_text(value: float, spread: float) -> str:
    """Write a ratio with the digits that its interval, `spread` wide on each side, allows."""
    places = 2 if spread <= 0 else min(max(-floor(log10(spread)), 2), 4)
    return f"{value:.{places}f}"


def ratio_range(ratio: Interval) -> str:
    """Write an interval: `95 % interval 1.87 to 1.97`."""
    spread = (ratio.high - ratio.low) / 2
    ends = f"{ratio_text(ratio.low, spread)} to {ratio_text(ratio.high, spread)}"
    return f"{ratio.confidence * 100:.3g} % interval {ends}"


def minutes(seconds: float) -> str:
    """Write a time that is only an estimate: rounded up to minutes."""
    whole = ceil(seconds / 60)
    return "1 minute" if whole == 1 else f"{whole} minutes"


def plural(count: int, noun: str) -> str:
    """Write a count with its noun."""
    return f"{number(count)} {noun}" if count == 1 else f"{number(count)} {noun}s"
