"""A long look in the course of time: its figures by the part, and how fast they change.

The figures of a part say how well they are known by the scatter within it; the slopes by that of
whole parts, so what follows from one second to the next doesn't make them seem better known.
"""

from collections.abc import Callable, Sequence

import numpy as np
from scipy.special import stdtrit

from webdyno.judge.interval import Logs, fitted_line
from webdyno.judge.look_parts import jump_bytes, length_s, with_begins
from webdyno.judge.look_readings import LookReadings
from webdyno.judge.order_statistics import quantile_interval
from webdyno.model.histogram import merge_encoded
from webdyno.model.interval import Interval
from webdyno.model.long_look import Held, LookPart, Slope, SlopeMetric, Stall
from webdyno.model.records import LongLookRecord

CONFIDENCE, SURE = 0.95, 0.99
BATCHES = 10
"""Of a part: their scatter says how well its means are known."""
HOUR_S = 3_600.0
FEWEST_PARTS = 6
"""So many show how fast something changes; the first of them is left out: there caches fill."""
LEAST_SHARE = 1 / 4
"""Of the length that was asked for: no look ends before."""
MOST_CHANGE = 0.05
"""Share of its level by which nothing may change in the length that was asked for."""


def course_of(parts: Sequence[LongLookRecord], stalls: Sequence[Stall]) -> list[LookPart]:
    """Give the figures of each part, with the servers' own stalls in it.

    A part that ended as it began, as the servers died, has none.
    """
    found, jumps_bytes = list[LookPart](), 0
    for before, (begin_s, part) in zip([None, *parts], with_begins(parts), strict=False):
        end_s = begin_s + length_s(part)
        mine = [stall for stall in stalls if begin_s <= stall.at_s < end_s]
        if before is not None:
            jumps_bytes += jump_bytes(before.samples, part.samples)
        if len(part.responses) >= BATCHES:
            figures = _figures(part, begin_s, mine)
            found.append(figures.replace(jumps_bytes=jumps_bytes))
    return found


def _figures(part: LongLookRecord, begin_s: float, stalls: Sequence[Stall]) -> LookPart:
    edges = np.linspace(0, len(part.responses), BATCHES + 1).astype(int)
    answered = np.add.reduceat(np.array([*part.responses, 0]), edges[:-1]).astype(float)
    lasted_s = np.diff(edges) * part.window_s
    held = [it.memory_bytes for it in part.samples if it.memory_bytes is not None]
    return LookPart(
        stretch=part.stretch,
        at_s=begin_s,
        length_s=length_s(part),
        rate_rps=_mean_of(answered / lasted_s),
        p50_us=_percentile(part, 0.5),
        p99_us=_percentile(part, 0.99),
        server_cpu_us=_cpu_us(part, answered, edges * part.window_s),
        memory=Held(least=min(held), median=int(np.median(held)), most=max(held)) if held else None,
        stalls=len(stalls),
        stalled_s=sum(stall.length_s for stall in stalls),
    )


def _mean_of(values: Logs) -> Interval:
    """Give the mean of batches, with Student's t of their scatter."""
    centre = float(values.mean())
    error = float(values.std(ddof=1)) / len(values) ** 0.5
    half = float(stdtrit(len(values) - 1, (1 + CONFIDENCE) / 2)) * error
    return Interval(low=max(centre - half, 0.0), estimate=centre, high=centre + half)


def _percentile(part: LongLookRecord, quantile: float) -> Interval | None:
    """Give a percentile, as exactly as so many independent answers tell it."""
    times = merge_encoded([part.load.response_time_us.histogram])
    found = quantile_interval(times, quantile)
    if found is None or found.low is None or found.high is None:
        return None
    return Interval(low=found.low, estimate=found.estimate, high=found.high)


def _cpu_us(part: LongLookRecord, answered: Logs, edges_s: Logs) -> Interval | None:
    if len(part.samples) < 2 * BATCHES or not answered.all():
        return None
    read = LookReadings.of(part.samples)
    return _mean_of(read.grown(read.cpu_s, edges_s) / answered * 1e6)


def slopes_of(course: Sequence[LookPart], confidence: float = CONFIDENCE) -> list[Slope]:
    """Say how fast things change in the longest stretch; nothing where it has too few parts."""
    by_stretch: dict[int, list[LookPart]] = {}
    for part in course:
        by_stretch.setdefault(part.stretch, []).append(part)
    longest = max(by_stretch.values(), key=len, default=[])
    if len(longest) < FEWEST_PARTS:
        return []
    return [
        Slope(metric=metric, per_hour=_slope(longest[1:], values, confidence))
        for metric, value_of in SLOPES.items()
        if None not in (values := [value_of(part) for part in longest[1:]])
    ]


SLOPES: dict[SlopeMetric, Callable[[LookPart], float | None]] = {
    "rate_rps": lambda part: part.rate_rps.estimate,
    "server_cpu_us": lambda part: part.server_cpu_us.estimate if part.server_cpu_us else None,
    "memory_bytes": lambda part: part.memory.least - part.jumps_bytes if part.memory else None,
}
"""What may change slowly: of memory the least that was held, as collected heaps rise and fall."""


def _slope(
    parts: Sequence[LookPart], values: Sequence[float | None], confidence: float
) -> Interval:
    """Fit a straight line; give its slope as a share of the mean in an hour."""
    middles = np.array([part.at_s + part.length_s / 2 for part in parts]) / HOUR_S
    level = np.array(values, dtype=float)
    return fitted_line(middles, level / (level.mean() or 1.0)).interval(confidence)


def changes_no_more(parts: Sequence[LongLookRecord], look_s: float) -> bool:
    """Whether it is sure by now that nothing changes by much in the length asked for."""
    last = [part for part in parts if part.stretch == parts[-1].stretch]
    if sum(map(length_s, last)) < LEAST_SHARE * look_s:
        return False
    slopes = slopes_of(course_of(last, []), SURE)
    if parts[-1].load.loop == "open":
        slopes = [it for it in slopes if it.metric != "rate_rps"]
    hours = look_s / HOUR_S
    return bool(slopes) and all(_is_small(it, hours) for it in slopes)


def _is_small(slope: Slope, hours: float) -> bool:
    """Whether a change is surely small; memory that falls is no trouble."""
    falls = 0.0 if slope.metric == "memory_bytes" else -slope.per_hour.low
    return max(slope.per_hour.high, falls) * hours < MOST_CHANGE
