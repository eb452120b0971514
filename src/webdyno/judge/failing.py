"""When requests failed in one long stretch of load, and what was measured until then."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from webdyno.model.long_look import Failing, Stall
from webdyno.model.records import LongLookRecord

Counts = NDArray[np.intp]

APART_S = 1.0
"""Failures that are further apart are told of apart; connections are tried again sooner."""
GONE_SHARE = 0.5
"""Who fails so many requests to the end serves no more."""
CLIENTS_WORDS = ("cannot assign requested address", "too many open files")
"""By which the load generator says that it can't open a connection: for want of ports, or files."""


def failing_in(record: LongLookRecord) -> list[Failing]:
    """Give the stretches of time in which requests failed."""
    failing = _failing_windows(record)
    if not len(failing):
        return []
    apart = max(round(APART_S / record.window_s), 1)
    episodes = np.split(failing, np.flatnonzero(np.diff(failing) > apart) + 1)
    said, by_client = _why(record)
    return [
        _episode(record, int(it[0]), int(it[-1]) + 1, apart).replace(
            said=said,
            by_client=by_client,
        )
        for it in episodes
    ]


def _failing_windows(record: LongLookRecord) -> Counts:
    """Give the windows in which requests failed.

    Where failures are all that came after the last answer, nothing was answered any more from then
    on: requests fail only when they time out, seconds later and all at once.
    """
    failing = np.flatnonzero(record.failed[: len(record.responses)])
    answered = np.flatnonzero(record.responses)
    silent_from = int(answered[-1]) + 1 if len(answered) else 0
    if not np.any(failing >= silent_from):
        return failing
    return np.union1d(failing, np.arange(silent_from, len(record.responses)))


def _episode(record: LongLookRecord, begin: int, end: int, apart: int) -> Failing:
    to_the_end = end + apart >= len(record.responses)
    if to_the_end:
        end = len(record.responses)
    failed = sum(record.failed[begin:end])
    return Failing(
        at_s=begin * record.window_s,
        length_s=(end - begin) * record.window_s,
        failed=failed,
        share=failed / (failed + sum(record.responses[begin:end])),
        answered_before=sum(record.responses[:begin]),
        to_the_end=to_the_end,
    )


def _why(record: LongLookRecord) -> tuple[str, bool]:
    """Give words for why requests failed, and whether the client's own connections did."""
    samples = record.load.all_of_it.failure_samples
    own = [it for it in samples if any(words in it.lower() for words in CLIENTS_WORDS)]
    if own:
        return own[0], True
    return record.said or next(iter(samples), ""), False


def gone(failing: Sequence[Failing]) -> Failing | None:
    """Give the stretch in which requests failed to the end, if most did."""
    return next((it for it in failing if it.to_the_end and it.share >= GONE_SHARE), None)


def while_it_served(record: LongLookRecord) -> LongLookRecord:
    """Give what was seen before most requests failed to the end; all where they didn't."""
    end = gone(failing_in(record))
    if end is None:
        return record
    windows = round(end.at_s / record.window_s)
    return record.replace(
        responses=record.responses[:windows],
        failed=record.failed[:windows],
        samples=[it for it in record.samples if it.at_s <= end.at_s],
        client_pauses=[it for it in record.client_pauses if it.at_s < end.at_s],
    )


def is_failing(stall: Stall, failing: Sequence[Failing]) -> bool:
    """Whether what looks like a stall is a stretch of failures: answers came, but wrong ones."""
    end_s = stall.at_s + stall.length_s
    covered_s = sum(
        max(0.0, min(end_s, it.at_s + it.length_s) - max(stall.at_s, it.at_s)) for it in failing
    )
    return covered_s > stall.length_s / 2
