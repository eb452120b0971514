"""A long look in the course of time, in words: how fast things change, and one part by itself."""

from collections.abc import Iterator, Sequence

from webdyno.model import format as text
from webdyno.model.base import Interval
from webdyno.model.files import MIB
from webdyno.model.long_look import LongLook, LookPart, Slope

WHAT = {
    "rate_rps": "requests per second",
    "server_cpu_us": "server CPU time per request",
    "memory_bytes": "memory",
}
SHARE_DIGITS = 5
"""Less than 0.001 % is told as none."""


def sentences(looks: Sequence[LongLook]) -> list[str]:
    """Say for each variant how fast things change; nothing of looks that were short."""
    return [
        f"{look.arm}, in an hour: {', '.join(map(_slope_words, look.slopes))}"
        for look in looks
        if look.slopes
    ]


def _slope_words(slope: Slope) -> str:
    low, centre, high = slope.per_hour.low, slope.per_hour.estimate, slope.per_hour.high
    return f"{WHAT[slope.metric]} {_signed(centre)} ({_signed(low)} to {_signed(high)})"


def _signed(share: float) -> str:
    shown = text.percent(round(abs(share), SHARE_DIGITS))
    return shown if shown == "0 %" else f"{'−' if share < 0 else '+'}{shown}"


def part_words(part: LookPart) -> str:
    """Tell of a part in one line."""
    return ", ".join(_part_words(part))


def _part_words(part: LookPart) -> Iterator[str]:
    yield f"{text.number(part.rate_rps.estimate)} requests/s ({_ends(part.rate_rps)})"
    for name, time_us in (("p50", part.p50_us), ("p99", part.p99_us)):
        if time_us:
            yield f"{name} {text.significant(time_us.estimate / 1000)} ms"
    if part.server_cpu_us:
        yield f"{text.significant(part.server_cpu_us.estimate)} µs of the servers' CPU time each"
    if part.memory:
        yield f"{text.significant(part.memory.median / MIB)} MiB"
    if part.stalls:
        yield f"{text.count(part.stalls, 'stall')}, {text.duration(part.stalled_s)} in all"


def _ends(interval: Interval) -> str:
    return f"{text.number(interval.low)} to {text.number(interval.high)}"
