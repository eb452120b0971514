"""What a long look has on record: its parts put together, windows of responses, and readings.

The parts of a stretch are as one that was never recorded in parts. Time is counted under load: what
lies between two parts, or between two stretches, is excluded.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby, pairwise
from typing import NamedTuple, Self

import numpy as np

from webdyno.core.capacity import Trial
from webdyno.core.histogram import add_encoded, merge_encoded
from webdyno.core.load_result import Times
from webdyno.core.looks import Break, ServerSample, Stall
from webdyno.core.records import LongLookRecord
from webdyno.statistics.interval import TINY, Logs
from webdyno.statistics.steady import windows_to_join

SUMS = ("cpu_s", "busy_s", "stolen_s", "waited_s", "client_waited_s")
"""Of a sample: what is added up since its part began."""
MOST_SAMPLES = 240
"""Of a part that are kept where nothing happened."""
NEAR_WINDOWS = 6
"""So close to a stall all samples are kept: they say who caused it."""
QUIET_RESPONSES = 5
"""Responses may come in bursts that many latencies apart, which isn't a stall."""


def length_s(part: LongLookRecord) -> float:
    return len(part.responses) * part.window_s


def with_begins(parts: Sequence[LongLookRecord]) -> Iterator[tuple[float, LongLookRecord]]:
    """Return parts, or stretches, each with when it begins in the whole, in seconds."""
    return zip(accumulate(map(length_s, parts), initial=0.0), parts, strict=False)


def stretches(parts: Sequence[LongLookRecord]) -> list[LongLookRecord]:
    """Join the parts of each stretch, in which the servers were never restarted."""
    by_stretch = groupby(parts, lambda part: part.stretch)
    return [_join(list(of_stretch)) for _, of_stretch in by_stretch]


def breaks(parts: Sequence[LongLookRecord]) -> list[Break]:
    """Return where the look was interrupted, and for how long."""
    interruptions, at_s = list[Break](), 0.0
    for before, after in pairwise(parts):
        at_s += length_s(before)
        if before.stretch != after.stretch:
            pause_s = (after.started_at - before.started_at).total_seconds() - before.took_s
            interruptions.append(Break(at_s=at_s, pause_s=max(pause_s, 0.0)))
    return interruptions


def trial_of_all(parts: Sequence[LongLookRecord]) -> Trial | None:
    """Return how all parts together met the objectives of a capacity, if one was looked at."""
    trials = [part.trial for part in parts if part.trial]
    if not trials:
        return None
    together = trials[0]
    for trial in trials[1:]:
        beyond = zip(together.beyond, trial.beyond, strict=True)
        together = together.replace(
            length_s=together.length_s + trial.length_s,
            asked=together.asked + trial.asked,
            beyond=[None if None in (a, b) else (a or 0) + (b or 0) for a, b in beyond],
            client_limited=together.client_limited or trial.client_limited,
        )
    return together


def thinned_samples(part: LongLookRecord, stalls: Sequence[Stall]) -> LongLookRecord:
    """Exclude samples of a long part where nothing happened; the least held stays."""
    samples, kept = part.samples, list[ServerSample]()
    size = -(-len(samples) // MOST_SAMPLES)
    near_s = NEAR_WINDOWS * part.window_s
    for first in range(0, len(samples), max(size, 1)):
        group = samples[first : first + size]
        held = [sample.memory_bytes for sample in group if sample.memory_bytes is not None]
        opened = [sample.descriptors for sample in group if sample.descriptors is not None]
        least = group[-1].replace(
            memory_bytes=min(held, default=None),
            descriptors=min(opened, default=None),
        )
        kept += [
            sample
            for sample in group[:-1]
            if any(
                stall.at_s - near_s <= sample.at_s <= stall.at_s + stall.length_s + near_s
                for stall in stalls
            )
        ]
        kept.append(least)
    return part.replace(samples=kept)


def _join(parts: Sequence[LongLookRecord]) -> LongLookRecord:
    if len(parts) == 1:
        return parts[0]
    responses, samples, pauses = list[int](), list[ServerSample](), list[Stall]()
    failed = list[int]()
    for part in parts:
        begin_s = len(responses) * part.window_s
        samples += _following(samples, part, begin_s)
        pauses += shift_stalls(part.client_pauses, begin_s)
        responses += part.responses
        failed += part.failed or [0] * len(part.responses)
    first_failing = next((record for record in parts if any(record.failed)), parts[0])
    return parts[0].replace(
        responses=responses,
        failed=failed,
        samples=samples,
        client_pauses=pauses,
        load=first_failing.load.replace(latency_us=all_times(parts)),
        said=first_failing.said,
    )


def shift_stalls(stalls: Sequence[Stall], by_s: float) -> list[Stall]:
    """Return stalls of a part at their time in the whole."""
    return [stall.replace(at_s=stall.at_s + by_s) for stall in stalls]


def _following(
    before: Sequence[ServerSample], part: LongLookRecord, begin_s: float
) -> list[ServerSample]:
    """Return a part's samples with sums that go on from those before it."""
    mine = [sample for sample in part.samples if sample.at_s <= length_s(part)]
    if not before or not mine:
        return mine
    ahead = {name: getattr(before[-1], name) - getattr(mine[0], name) for name in SUMS}
    jump = jump_bytes(before, mine)
    return [
        sample.replace(
            at_s=sample.at_s + begin_s,
            memory_bytes=sample.memory_bytes and max(sample.memory_bytes - jump, 0),
            **{name: getattr(sample, name) + more for name, more in ahead.items()},
        )
        for sample in mine
    ]


def jump_bytes(before: Sequence[ServerSample], after: Sequence[ServerSample]) -> int:
    """Return how much more memory is held after connections are opened again: that is no leak."""
    held = [sample.memory_bytes for sample in before if sample.memory_bytes is not None]
    holds = [sample.memory_bytes for sample in after if sample.memory_bytes is not None]
    return holds[0] - held[-1] if held and holds else 0


def all_times(parts: Sequence[LongLookRecord]) -> Times:
    """Return the latency of all parts together, as far as a look needs them."""
    times = [part.load.latency_us for part in parts]
    encoded = [time.histogram for time in times if time.histogram]
    longest = [time.max for time in times if time.max is not None]
    return Times(
        p50=merge_encoded(encoded).quantile(0.5),
        max=max(longest, default=None),
        histogram=add_encoded(encoded) if encoded else None,
    )


class Windows(NamedTuple):
    """How many responses there were in each window, and how long a window is."""

    counts: Logs
    length_s: float


def windows_of(record: LongLookRecord) -> Windows:
    """Join neighbouring windows of a record until they are long enough."""
    # Not the latency: what waits to be sent after a stall would hide that.
    quiet_us = int(QUIET_RESPONSES * (record.load.service_time_us.p50 or 0.0))
    windows = -(-quiet_us // int(record.window_s * 1e6))
    joined = max(windows_to_join(record.responses), windows, 1)
    counts = sums_of(np.array(record.responses, dtype=float), joined)
    return Windows(counts, record.window_s * joined)


def sums_of(values: Logs, size: int) -> Logs:
    """Add up so many values at a time; what is left over at the end is excluded."""
    whole = len(values) // size * size
    return np.asarray(values[:whole].reshape(-1, size).sum(axis=1))


@dataclass(frozen=True)
class LookReadings:
    """Columns of samples: times are sums since the beginning of the stretch."""

    at_s: Logs
    cpu_s: Logs
    others_s: Logs
    """For which their CPUs ran something else."""
    stolen_s: Logs
    waited_s: Logs
    client_waited_s: Logs
    stopped: Logs

    @classmethod
    def of(cls, samples: Sequence[ServerSample]) -> Self:
        """Take what was read, in its order."""
        rows = [
            (
                sample.at_s,
                sample.cpu_s,
                sample.busy_s - sample.cpu_s,
                sample.stolen_s,
                sample.waited_s,
                sample.client_waited_s,
                sample.stopped,
            )
            for sample in samples
        ]
        return cls(*np.array(rows, dtype=float).reshape(-1, 7).T)

    @property
    def suffice(self) -> bool:
        """Whether there are enough of them to say what was in between."""
        return len(self.at_s) >= 2

    def grown(self, sums: Logs, edges_s: Logs) -> Logs:
        """Return by how much a column of sums grew from each of some moments to the next."""
        return np.diff(np.interp(edges_s, self.at_s, sums))

    def during(self, sums: Logs, begin_s: float, end_s: float) -> float:
        """Return by how much a column of sums grew between two moments."""
        return float(self.grown(sums, np.array([begin_s, end_s]))[0])

    def waited_during(self, waited_s: Logs, begin_s: float, end_s: float) -> float:
        """Return how much of a waiting for CPUs lies between two moments.

        The kernel counts a wait when it ends: what is more than the time since the reading before
        has begun before that.
        """
        each_s = np.maximum(np.diff(waited_s), 0.0)
        lasted_s = np.maximum(np.diff(self.at_s), each_s)
        ends_s = self.at_s[1:]
        within_s = np.minimum(ends_s, end_s) - np.maximum(ends_s - lasted_s, begin_s)
        shares = np.maximum(within_s, 0.0) / np.maximum(lasted_s, TINY)
        return float(each_s @ shares)

    def longest_gap_s(self, begin_s: float, end_s: float) -> float:
        """Return the longest time from a reading to the next that touches a time."""
        meets = (self.at_s[:-1] < end_s) & (self.at_s[1:] > begin_s)
        return float(np.diff(self.at_s)[meets].max(initial=0.0))

    def stopped_share(self, begin_s: float, end_s: float) -> float:
        """Return in which share of the readings between two moments a server was stopped."""
        within = self.stopped[(begin_s <= self.at_s) & (self.at_s <= end_s)]
        return float(within.mean()) if len(within) else 0.0
