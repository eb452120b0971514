"""A long look in the course of time: its figures by the part, and what changes by how much.

Intervals of a part's figures rest on the scatter within it, those of slopes on that of whole parts,
so what follows from one second to the next doesn't make them seem better known.

Drifts are throughput or CPU per request at another level at the end, without stalls and what others
took part in; only beyond 5% and beyond five standard errors, by how far and how long parts stay off
their level.

Growth is sought by the least that was held in each part: collected heaps and connections rise and
fall; what they fall back to is what leaks. The first half is excluded, where buffers, caches and
just-in-time compilers take what they need once. Its second quarter shows whether the rise slows
down, as that of what fills does: then no slope goes on.
"""

from collections.abc import Callable, Sequence
from math import exp, log, log1p
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from webdyno.core.base import PAGE_BYTES, Interval
from webdyno.core.histogram import merge_encoded
from webdyno.core.looks import (
    Drift,
    Growth,
    Held,
    LookPart,
    MoreOpen,
    ServerSample,
    Slope,
    SlopeMetric,
    Stall,
)
from webdyno.core.records import LongLookRecord
from webdyno.evidence.look_records import (
    LookReadings,
    Windows,
    jump_bytes,
    length_s,
    windows_of,
    with_begins,
)
from webdyno.statistics.interval import (
    TINY,
    Logs,
    fitted_line,
    quantile_interval,
    t_half_width,
    t_quantile,
)
from webdyno.statistics.steady import MAD_TO_SD, SMALLEST_NOISE, change_points

CONFIDENCE, SURE = 0.95, 0.99
BATCHES = 10
"""Of a part: their scatter says how well its means are known."""
HOUR_S = 3_600.0
FEWEST_PARTS = 6
"""So many show how fast something changes; the first of them is excluded: there caches fill."""
LEAST_SHARE = 1 / 4
"""Of the length that was requested: no look ends before."""
MOST_CHANGE = 0.05
"""Share of its level by which nothing may change in the length that was requested."""
DRIFT_PARTS = 20
SMALLEST_DRIFT = log1p(0.05)
DRIFT_SDS = 5.0
DRIFT_PENALTY = 8.0
"""Of a change point, in units of variance · ln n: twice the penalty of pilots."""
INTERFERENCE_SHARE = 0.05
"""Of a window, which steal and other programs may take before it is excluded from drifts."""
HIDDEN_MEMORY, MOST_ALIKE = 0.5, 0.9
"""Of how alike neighbouring parts are, so much is taken out with a step; and what counts at most
(tests/simulations/later.py)."""
GROWTH_PARTS, GROWTH_PARTS_BEFORE = 6, 3
"""Of the second half of the stretch, and of the quarter before it."""
FEWEST_READINGS = 4 * GROWTH_PARTS
SMALLEST_BYTES = 512 * 1024
"""Over the second half: allocators and page tables take as much by chance."""
SMALLEST_DESCRIPTORS = 16
SMALLEST_SHARE = 0.01
SLOWING = 0.9
"""Of the slope of the first of these parts, that of the last: a leak goes on as before."""
GROWTH_ALPHA = 0.01


def course_of(parts: Sequence[LongLookRecord], stalls: Sequence[Stall]) -> list[LookPart]:
    """Return the figures of each part with its stalls; none where the servers died as it began."""
    course, jumps_bytes = list[LookPart](), 0
    for before, (begin_s, part) in zip([None, *parts], with_begins(parts), strict=False):
        end_s = begin_s + length_s(part)
        mine = [stall for stall in stalls if begin_s <= stall.at_s < end_s]
        if before is not None:
            jumps_bytes += jump_bytes(before.samples, part.samples)
        if len(part.responses) >= BATCHES:
            figures = _figures(part, begin_s, mine)
            course.append(figures.replace(jumps_bytes=jumps_bytes))
    return course


def _figures(part: LongLookRecord, begin_s: float, stalls: Sequence[Stall]) -> LookPart:
    edges = np.linspace(0, len(part.responses), BATCHES + 1).astype(int)
    answered = np.add.reduceat(np.array([*part.responses, 0]), edges[:-1]).astype(float)
    lasted_s = np.diff(edges) * part.window_s
    held = [sample.memory_bytes for sample in part.samples if sample.memory_bytes is not None]
    return LookPart(
        stretch=part.stretch,
        at_s=begin_s,
        length_s=length_s(part),
        throughput_rps=_mean_of(answered / lasted_s),
        p50_us=_percentile(part, 0.5),
        p99_us=_percentile(part, 0.99),
        server_cpu_us=_cpu_us(part, answered, edges * part.window_s),
        memory=Held(least=min(held), median=int(np.median(held)), most=max(held)) if held else None,
        stalls=len(stalls),
        stalled_s=sum(stall.length_s for stall in stalls),
    )


def _mean_of(values: Logs) -> Interval:
    centre = float(values.mean())
    half = t_half_width(len(values), float(values.std(ddof=1)), CONFIDENCE)
    return Interval(low=max(centre - half, 0.0), estimate=centre, high=centre + half)


def _percentile(part: LongLookRecord, quantile: float) -> Interval | None:
    """Return a percentile, as exactly as so many independent responses report it."""
    times = merge_encoded([part.load.latency_us.histogram])
    interval = quantile_interval(times, quantile)
    if interval is None or interval.low is None or interval.high is None:
        return None
    return Interval(low=interval.low, estimate=interval.estimate, high=interval.high)


def _cpu_us(part: LongLookRecord, answered: Logs, edges_s: Logs) -> Interval | None:
    if len(part.samples) < 2 * BATCHES or not answered.all():
        return None
    read = LookReadings.of(part.samples)
    return _mean_of(read.grown(read.cpu_s, edges_s) / answered * 1e6)


def slopes_of(course: Sequence[LookPart], confidence: float = CONFIDENCE) -> list[Slope]:
    """Return changes in an hour, as shares of means, in the longest stretch of enough parts."""
    by_stretch: dict[int, list[LookPart]] = {}
    for part in course:
        by_stretch.setdefault(part.stretch, []).append(part)
    longest = max(by_stretch.values(), key=len, default=[])
    if len(longest) < FEWEST_PARTS:
        return []
    middles = np.array([part.at_s + part.length_s / 2 for part in longest[1:]]) / HOUR_S
    slopes = []
    for metric, value_of in SLOPES.items():
        values = [value_of(part) for part in longest[1:]]
        if None not in values:
            level = np.array(values, dtype=float)
            line = fitted_line(middles, level / (level.mean() or 1.0))
            slopes.append(Slope(metric=metric, per_hour=line.interval(confidence)))
    return slopes


SLOPES: dict[SlopeMetric, Callable[[LookPart], float | None]] = {
    "throughput_rps": lambda part: part.throughput_rps.estimate,
    "server_cpu_us": lambda part: part.server_cpu_us.estimate if part.server_cpu_us else None,
    "memory_bytes": lambda part: part.memory.least - part.jumps_bytes if part.memory else None,
}
"""What may change slowly: of memory the least that was held, as collected heaps rise and fall."""


def changes_no_more(parts: Sequence[LongLookRecord], look_s: float) -> bool:
    """Whether it is sure by now that nothing changes by much in the length requested."""
    last = [part for part in parts if part.stretch == parts[-1].stretch]
    if sum(map(length_s, last)) < LEAST_SHARE * look_s:
        return False
    slopes = slopes_of(course_of(last, []), SURE)
    if parts[-1].load.loop == "open":
        slopes = [slope for slope in slopes if slope.metric != "throughput_rps"]
    hours = look_s / HOUR_S
    for slope in slopes:
        falls = 0.0 if slope.metric == "memory_bytes" else -slope.per_hour.low  # is no trouble
        if not max(slope.per_hour.high, falls) * hours < MOST_CHANGE:
            return False
    return bool(slopes)


def drifts_in(record: LongLookRecord, without: Sequence[Stall]) -> list[Drift] | None:
    """Return what has another level at the end of a stretch; None where it is too short to know."""
    windows, read = windows_of(record), LookReadings.of(record.samples)
    size = len(windows.counts) // DRIFT_PARTS
    if size < 2:
        return None
    kept = _without_interference(record, windows, read)
    for stall in without:
        first = max(int(stall.at_s / windows.length_s) - 1, 0)
        last = int((stall.at_s + stall.length_s) / windows.length_s) + 2
        kept[first:last] = False
    parts_s: Logs = np.arange(DRIFT_PARTS + 1.0) * size * windows.length_s
    cpu_s = read.grown(read.cpu_s, parts_s) if read.suffice else np.zeros(DRIFT_PARTS)
    at_s, throughputs, work = list[float](), list[float](), list[float]()
    for part in range(DRIFT_PARTS):
        window = slice(part * size, (part + 1) * size)
        looked_at = int(kept[window].sum())
        responses = float(windows.counts[window][kept[window]].sum())
        if looked_at < size / 2 or not responses:
            continue
        at_s.append(part * size * windows.length_s)
        throughputs.append(log(responses / looked_at))
        if cpu_s[part] > 0:
            work.append(log(cpu_s[part] / float(windows.counts[window].sum())))
    if len(at_s) < DRIFT_PARTS / 2:
        return None
    of_throughput = (
        _change("throughput_rps", throughputs, at_s) if record.load.loop == "closed" else None
    )
    of_work = _change("server_cpu_us", work, at_s) if len(work) == len(at_s) else None
    return [drift for drift in (of_throughput, of_work) if drift]


def _without_interference(
    record: LongLookRecord, windows: Windows, read: LookReadings
) -> NDArray[np.bool_]:
    """Report in which windows the servers had their CPUs: what others take is no drift."""
    if not read.suffice:
        return np.ones(len(windows.counts), dtype=bool)
    edges_s: Logs = np.arange(len(windows.counts) + 1.0) * windows.length_s
    others_s = np.minimum(read.grown(read.others_s, edges_s), read.grown(read.waited_s, edges_s))
    most_s = INTERFERENCE_SHARE * windows.length_s * max(record.server_cpus, 1)
    return np.asarray(read.grown(read.stolen_s, edges_s) + others_s <= most_s)


def _change(
    metric: Literal["throughput_rps", "server_cpu_us"],
    values: Sequence[float],
    begins_s: Sequence[float],
) -> Drift | None:
    """Compare the last level with the first one, if they differ by more than noise."""
    levels = np.array(values)
    apart = np.abs(np.diff(levels))
    noise = max(MAD_TO_SD * float(np.median(apart)) / 2**0.5, SMALLEST_NOISE)
    begins = change_points(levels, DRIFT_PENALTY * noise**2 * log(len(levels)))
    if not begins:
        return None
    first, last = levels[: begins[0]], levels[begins[-1] :]
    if min(len(first), len(last)) < 2:
        return None
    change = float(last.mean() - first.mean())
    spread = max(noise, float(first.std(ddof=1)), float(last.std(ddof=1)))
    memory = _memory(levels)
    error = spread * (memory / len(first) + memory / len(last)) ** 0.5
    if abs(change) < max(SMALLEST_DRIFT, DRIFT_SDS * error):
        return None
    half = t_quantile(len(first) + len(last) - 1, CONFIDENCE) * error
    return Drift(
        metric=metric,
        change=Interval(low=exp(change - half), estimate=exp(change), high=exp(change + half)),
        at_s=begins_s[begins[0]] if len(begins) == 1 else None,
    )


def _memory(levels: Logs) -> float:
    """Return for how many parts noise remembers, by the rest when the best step is taken out.

    More steps would take out the memory itself: slow noise looks like many of them.
    """
    rests = [
        np.concatenate([levels[:cut] - levels[:cut].mean(), levels[cut:] - levels[cut:].mean()])
        for cut in range(2, len(levels) - 1)
    ]
    rest = min(rests, key=lambda rest: float(rest @ rest))
    left = float(rest[1:] @ rest[:-1]) / max(float(rest @ rest), TINY)
    alike = min(max(left + HIDDEN_MEMORY * (1 - left), 0.0), MOST_ALIKE)
    return (1 + alike) / (1 - alike)


def memory_growth(record: LongLookRecord) -> Growth | None:
    """Return whether memory goes on growing, and how fast."""
    rise = _rise(record, lambda sample: sample.memory_bytes, PAGE_BYTES, SMALLEST_BYTES)
    return rise and Growth(bytes_per_s=rise[0], bytes_per_request=rise[1])


def more_open(record: LongLookRecord) -> MoreOpen | None:
    """Return whether open files and connections go on becoming more, and how fast."""
    rise = _rise(record, lambda sample: sample.descriptors, 1, SMALLEST_DESCRIPTORS)
    return rise and MoreOpen(per_s=rise[0], per_request=rise[1])


def _rise(
    record: LongLookRecord, of: Callable[[ServerSample], int | None], unit: float, smallest: float
) -> tuple[Interval, Interval] | None:
    """Return how fast something rises for good: by second, and by request."""
    read = [(sample.at_s, value) for sample in record.samples if (value := of(sample)) is not None]
    responses = record.responses[len(record.responses) // 2 :]
    if len(read) < FEWEST_READINGS or not any(responses):
        return None
    at_s = np.array([begin_s for begin_s, _ in read])
    held = np.array([held for _, held in read], dtype=float)
    lowest = _lowest(at_s, held, at_s[-1] / 2, at_s[-1], GROWTH_PARTS)
    if len(lowest) < GROWTH_PARTS:
        return None
    least = held[lowest]
    line = fitted_line(at_s[lowest], least)
    grown = line.slope * (at_s[-1] - at_s[0]) / 2
    if line.slope - line.half_width(1 - GROWTH_ALPHA) <= 0 or np.any(np.diff(least) < 0):
        return None
    if grown < max(smallest, SMALLEST_SHARE * float(least[0])):
        return None
    earlier = _lowest(at_s, held, at_s[-1] / 4, at_s[-1] / 2, GROWTH_PARTS_BEFORE)
    course = [*earlier, *lowest]
    if _slows_down(record, at_s[course], held[course]):
        return None
    throughput = sum(responses) / (len(responses) * record.window_s)
    away = at_s[lowest] - at_s[lowest].mean()
    # Values are read in whole units, so the slope can be off by so much.
    off = unit / 2 * float(np.abs(away).sum() / (away @ away))
    sure = line.interval(CONFIDENCE)
    per_s = sure.replace(low=sure.low - off, high=sure.high + off)
    return per_s, per_s.map(lambda grown: grown / throughput)


def _lowest(at_s: Logs, held: Logs, begin_s: float, end_s: float, parts: int) -> list[int]:
    within = np.flatnonzero((at_s >= begin_s) & ((at_s < end_s) | (end_s == at_s[-1])))
    return [
        int(piece[held[piece].argmin()]) for piece in np.array_split(within, parts) if len(piece)
    ]


def _slows_down(record: LongLookRecord, at_s: Logs, least: Logs) -> bool:
    """Return whether it rises less and less, as what fills does: by time, and by responses."""
    windows_s = np.arange(len(record.responses) + 1) * record.window_s
    answered = np.interp(at_s, windows_s, np.cumsum([0, *record.responses]))
    middle = len(least) // 2
    for axis in (at_s, answered):
        earlier = fitted_line(axis[: middle + 1], least[: middle + 1]).slope
        if not fitted_line(axis[middle:], least[middle:]).slope < SLOWING * earlier:
            return False
    return True
