"""What one long stretch of load on a variant shows that short slots can't, and in words.

Stalls, slow stretches, drifts of throughput or CPU per request, memory and open files that go on
growing, and requests that fail. Nothing here sees a difference between variants.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from math import exp
from typing import NamedTuple, Self

import numpy as np
from scipy.special import chdtri

from webdyno.core.base import Interval, memory_words
from webdyno.core.format import count, duration, listed, number, percent
from webdyno.core.looks import Drift, Failing, LongLook, Slow, Stall, StallCause, Stalls, Unseen
from webdyno.core.metrics import METRICS
from webdyno.core.records import LongLookRecord
from webdyno.evidence.look_course import (
    FEWEST_READINGS,
    MOST_CHANGE,
    course_of,
    drifts_in,
    memory_growth,
    more_open,
    slopes_of,
)
from webdyno.evidence.look_records import (
    all_times,
    breaks,
    length_s,
    stretches,
    trial_of_all,
    windows_of,
    with_begins,
)
from webdyno.evidence.stalls import (
    FEWEST_WINDOWS,
    SlowStretch,
    failing_in,
    own,
    slow_in,
    stalls_in,
    while_it_served,
    with_causes,
)
from webdyno.statistics.interval import LARGEST_LOG, Logs, t_quantile

CONFIDENCE = 0.95
REGULAR_GAPS = 2
"""So many gaps between stalls show how regular they are."""
EDGE_ERROR = 0.2
"""Of a window: how well the beginning and end of a stall are known, about."""
CAUSES: dict[StallCause, str] = {
    "client": "the load generator paused or had no CPU",
    "hypervisor": "the hypervisor took the servers' CPUs",
    "stopped": "a signal stopped the servers",
    "other-programs": "other programs had the servers' CPUs",
}
MORE_OPEN = "open files and connections"


def look_at(*parts: LongLookRecord) -> LongLook:
    """Analyse the look at a variant by its parts in their order; the result is cached.

    Drifts and growth are sought in the longest stretch: each has a fresh start of its own.
    """
    return _look_at(_Parts(parts))


class _Parts(tuple[LongLookRecord, ...]):
    """Records that are compared by identity: comparing all that they hold takes long."""

    __slots__ = ()

    def __hash__(self) -> int:
        return hash(tuple(map(id, self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Parts) and list(map(id, self)) == list(map(id, other))


@lru_cache(maxsize=64)
def _look_at(parts: _Parts) -> LongLook:
    whole = stretches(parts)
    served = _LookStretches.of(whole)
    stalls, slow = served.stalls(), served.slow()
    theirs = own(stalls)
    excused = [stall for stall in stalls if stall.cause is not None]
    window_s = max(windows_of(record).length_s for record in served.records)
    looked_s = sum(map(length_s, served.records)) - sum(stall.length_s for stall in excused)
    longest, without = served.longest()
    times, drifts = all_times(parts), drifts_in(longest, without)
    course = course_of(parts, theirs) if len(parts) > 1 else []
    return LongLook(
        variant=parts[0].variant,
        looked_s=max(looked_s, 0.0),
        shortest_s=2 * window_s,
        ended_by=parts[-1].ended_by,
        breaks=breaks(parts),
        parts=course,
        slopes=slopes_of(course),
        stalls=sum_up(theirs, looked_s, window_s) if theirs else None,
        excused=excused,
        slow=_slow(slow, looked_s, window_s),
        unseen=list(_what_is_unseen(longest, drifts)),
        drifts=drifts or [],
        growth=memory_growth(longest),
        more_open=more_open(longest),
        failing=[
            failure.replace(at_s=failure.at_s + begin_s)
            for begin_s, record in with_begins(whole)
            for failure in failing_in(record)
        ],
        died=parts[-1].died,
        longest_latency_s=times.max / 1e6 if times.max is not None else None,
        trial=trial_of_all(parts),
        times=times.histogram,
    )


def seen_in(*parts: LongLookRecord) -> list[Stall]:
    """Return stalls, or else slow stretches: a look goes on to see how often they come."""
    served = _LookStretches.of(stretches(parts))
    return own(served.stalls()) or [stretch.as_stall() for stretch in served.slow()]


def happened_in(part: LongLookRecord) -> list[Stall]:
    """Return when the load wasn't as usual in a part: all stalls, and slow stretches."""
    served = _LookStretches.of([part])
    return [*served.stalls(), *(stretch.as_stall() for stretch in served.slow())]


class _LookStretches(NamedTuple):
    """The stretches of a look, each as long as the servers served, and what was found in each."""

    records: list[LongLookRecord]
    stalls_in: list[list[Stall]]
    slow_in: list[list[SlowStretch]]

    @classmethod
    def of(cls, whole: Sequence[LongLookRecord]) -> Self:
        """Look for stalls, and for slow stretches between them."""
        records = [while_it_served(record) for record in whole]
        stalls = [stalls_in(record) for record in records]
        return cls(records, stalls, list(map(slow_in, records, stalls)))

    def stalls(self) -> list[Stall]:
        """All stalls with their time in the whole and their cause."""
        return with_causes(self.records, self.stalls_in)

    def slow(self) -> list[SlowStretch]:
        """All slow stretches with their time in the whole."""
        return [
            stretch._replace(at_s=stretch.at_s + begin_s)
            for (begin_s, _), slow in zip(with_begins(self.records), self.slow_in, strict=True)
            for stretch in slow
        ]

    def longest(self) -> tuple[LongLookRecord, list[Stall]]:
        """Return the longest stretch, and where the load was not as usual in it."""
        index = max(range(len(self.records)), key=lambda n: length_s(self.records[n]))
        return self.records[index], [
            *self.stalls_in[index],
            *(stretch.as_stall() for stretch in self.slow_in[index]),
        ]


def _slow(slow: Sequence[SlowStretch], looked_s: float, window_s: float) -> Slow | None:
    if not slow:
        return None
    return Slow(
        level=sum(stretch.level for stretch in slow) / len(slow),
        stretches=sum_up([stretch.as_stall() for stretch in slow], looked_s, window_s),
    )


def _what_is_unseen(record: LongLookRecord, drifts: list[Drift] | None) -> Iterator[Unseen]:
    """Yield what a stretch can't show, as it is too short or too little was answered in it."""
    if len(windows_of(record).counts) < FEWEST_WINDOWS:
        yield "stalls"
    if drifts is None:
        yield "drift"
    if sum(sample.memory_bytes is not None for sample in record.samples) < FEWEST_READINGS:
        yield "leak"


def sum_up(own: Sequence[Stall], looked_s: float, window_s: float) -> Stalls:
    """Estimate how long the servers' stalls are, how often they come, and their share of the time.

    Few stalls are a Poisson count (Garwood, "Fiducial limits for the Poisson distribution",
    Biometrika 1936). From three on the gaps between them say more: their mean, with Student's t
    of its logarithm; where they scatter as much as chance, both say the same.
    """
    n, length_s = len(own), sum(stall.length_s for stall in own) / len(own)
    looked_s = max(looked_s, n * length_s)
    tail = (1 - CONFIDENCE) / 2
    low, high = float(chdtri(2 * n, 1 - tail)) / 2, float(chdtri(2 * n + 2, tail)) / 2
    share = Interval(
        low=low * length_s / looked_s,
        estimate=n * length_s / looked_s,
        high=min(high * length_s / looked_s, 1.0),
        confidence=CONFIDENCE,
    )
    gaps = np.diff([stall.at_s for stall in own])
    if len(gaps) < REGULAR_GAPS:
        return Stalls(count=n, length_s=length_s, every_s=None, share=share)
    every, lengths = np.array(gaps), np.array([stall.length_s for stall in own])
    of_gaps, of_lengths = (
        _relative_error(length, window_s * EDGE_ERROR) for length in (every, lengths)
    )
    regular = _around(length_s / float(every.mean()), (of_gaps**2 + of_lengths**2) ** 0.5, n - 1)
    shows_more = regular.high / regular.low < share.high / share.low
    return Stalls(
        count=n,
        length_s=length_s,
        every_s=_around(float(every.mean()), of_gaps, n - 1),
        share=regular.replace(high=min(regular.high, 1.0)) if shows_more else share,
    )


def _relative_error(values: Logs, least: float) -> float:
    """Return the standard error of a mean as a share of it; single values are off by `least`."""
    spread = max(float(values.std(ddof=1)), least)
    return float(spread / len(values) ** 0.5 / float(values.mean()))


def _around(centre: float, relative_error: float, n: int) -> Interval:
    half = t_quantile(n, CONFIDENCE) * relative_error
    factor = exp(min(half, LARGEST_LOG))
    return Interval(low=centre / factor, estimate=centre, high=centre * factor)


def warnings_words(look: LongLook) -> str:
    """Describe what a long look found, how far it looked, and how it went."""
    words = _found(look)
    seen = f"{', '.join(words)} (seen in {duration(look.looked_s)})" if words else _none_words(look)
    return "; ".join([seen, *_how_it_went(look)])


def look_in_short(look: LongLook) -> str:
    """Describe in one line what a long look found, if anything, and how far it looked."""
    looked = duration(float(f"{look.looked_s:.2g}"))
    interrupted = "" if look.ended_by else " so far"
    nothing = _nothing(look, {"stalls": "stall", "drift": "drift", "leak": "leak"})
    seen = (", ".join(_found(look)) or nothing).removesuffix(f" in {looked}")
    return f"{seen} in {looked} of load{interrupted}"


def has_found(look: LongLook) -> bool:
    return bool(_found(look))


def _nothing(look: LongLook, words: Mapping[Unseen, str]) -> str:
    *others, last = [words[what] for what in words if what not in look.unseen] or ["warning"]
    return f"no {', '.join(others)} or {last}" if others else f"no {last}"


def _how_it_went(look: LongLook) -> Iterator[str]:
    if look.excused:
        lasted_s = sum(stall.length_s for stall in look.excused)
        causes = sorted({CAUSES[stall.cause] for stall in look.excused if stall.cause})
        yield (
            f"excluded: {count(len(look.excused), 'stall')}, {duration(lasted_s)} in all, as "
            f"{listed(causes)}"
        )
    for change in look.breaks:
        yield (
            f"interrupted after {duration(change.at_s)}, and begun again "
            f"{duration(change.pause_s)} later with a fresh start"
        )
    if look.ended_by == "precision":
        yield (
            f"ended early: in all of the time requested nothing changes by {percent(MOST_CHANGE)}"
        )
    if look.ended_by is None:
        yield "not over: `webdyno resume` continues"


def _found(look: LongLook) -> list[str]:
    words = [failing_words(failure) for failure in look.failing[:1]]
    words += [look.died] if look.died else []
    words += [stall_words(look)] if look.stalls else []
    words += [slow_words(look.slow, look)] if look.slow else []
    words += [drift_words(drift) for drift in look.drifts]
    if look.growth:
        words.append(
            f"memory grows by {memory_words(round(look.growth.bytes_per_s.estimate))} a second"
        )
    if look.more_open:
        words.append(f"{MORE_OPEN} become more by {number(look.more_open.per_s.estimate)} a second")
    return words


def _none_words(look: LongLook) -> str:
    """Describe what there was nothing of, as far as the look could have shown it."""
    stalls, looked = f"stalls of {duration(look.shortest_s)} or more", duration(look.looked_s)
    nothing = _nothing(look, {"stalls": stalls, "drift": "drift", "leak": "leak"})
    sentence = f"{nothing} in {looked}"
    if look.unseen:
        sentence += f", too little to judge {listed(look.unseen)}"
    return f"{sentence}; what happens less often than every {looked} would not have been seen"


def look_words(look: LongLook, until_s: float | None = None) -> str:
    """Describe for how long there was load, and how often the servers were restarted in it."""
    looked_s = look.looked_s if until_s is None else until_s
    breaks = [change for change in look.breaks if change.at_s < looked_s]
    restarts = f"with {count(len(breaks), 'restart')}" if breaks else "without a restart"
    return f"{duration(looked_s)} of load {restarts}"


def failing_words(failing: Failing) -> str:
    """Describe when requests failed, how many, and why: `after 14 s (70,000 responses) 100% …`."""
    when = f"after {duration(failing.at_s)} ({count(failing.answered_before, 'response')})"
    until = "to the end" if failing.to_the_end else f"for {duration(failing.length_s)}"
    why = f": {failing.said:.200}" if failing.said else ""
    return f"{when} {percent(failing.share)} of the requests fail, {until}{why}"


def drift_words(drift: Drift) -> str:
    """Describe what changed, by how much and when."""
    what = METRICS[drift.metric].metric.label
    change = drift.change.estimate
    direction = "rises" if change > 1 else "falls"
    when = f" after {duration(drift.at_s)}" if drift.at_s is not None else ""
    return f"{what} {direction} by {percent(abs(change - 1))}{when}"


def stall_words(look: LongLook) -> str:
    """Describe how long stalls are, and how often they come: `stalls of 1 s every 6 s`."""
    return _stretches(look.stalls, "stall", look) if look.stalls else "no stalls"


def slow_words(slow: Slow, look: LongLook) -> str:
    """Describe how slow it gets, for how long and how often."""
    seen = _stretches(slow.stretches, "slow time", look)
    return f"{seen} at {percent(slow.level)} of the usual throughput"


def _stretches(stalls: Stalls, noun: str, look: LongLook) -> str:
    length = duration(stalls.length_s)
    if stalls.every_s is not None:
        return f"{noun}s of {length} every {duration(stalls.every_s.estimate)}"
    return f"{count(stalls.count, noun)} of {length} in {duration(look.looked_s)}"
