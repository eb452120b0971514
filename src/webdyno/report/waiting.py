"""What an answer's time is made of, in a sentence for each arm."""

from collections.abc import Iterator, Sequence

from webdyno.model import format as text
from webdyno.model.interval import Interval
from webdyno.model.judgement import Judgement, Verdict
from webdyno.model.metrics import RATE
from webdyno.model.waiting import Waiting

IDLE_BELOW = 0.5
"""CPUs that servers keep busy: with more of them, waiting is for others' work."""
MOST_OF_IT = 0.1
"""So many times the difference of waiting at most may that of work be."""
DELAYED_ACK_US = (35_000, 50_000)
"""Linux delays an acknowledgement by 40 ms (TCP_DELACK_MIN)."""


def sentences(found: Sequence[Waiting]) -> Iterator[str]:
    """Say of each arm how long an answer takes, is worked on, and waits for what."""
    for it in found:
        parts = [
            f"{_time(it.work_us)} of work on the servers' CPUs",
            f"{_time(it.cpu_us)} of waiting for a CPU",
        ]
        if it.queue_us is not None:
            parts.append(
                f"{_time(it.queue_us)} in front of the {it.workers} workers of {it.queue_at}, all "
                "of them taken"
            )
        yield (
            f"{it.arm}: with {it.connections} connections an answer takes {_time(it.whole_us)}: "
            f"{', '.join(parts)}, and {_time(it.rest_us)} in sockets and event loops, on the way, "
            "and in the client."
        )


def what_waits(judged: Judgement) -> Iterator[str]:
    """Say where a difference of rates is one of waiting, and not of work on the servers' CPUs."""
    by_arm = {it.arm: it for it in judged.waiting}
    for found in judged.comparisons:
        is_told = found.metric == RATE and found.verdict in {Verdict.FASTER, Verdict.SLOWER}
        if not is_told or found.limited_by or not {found.a, found.b} <= by_arm.keys():
            continue
        slow, fast = sorted(
            (by_arm[found.a], by_arm[found.b]), key=lambda it: -it.whole_us.estimate
        )
        longer_us = slow.rest_us.estimate - fast.rest_us.estimate
        work_us = abs(slow.work_us.estimate - fast.work_us.estimate)
        if _busy(slow) > IDLE_BELOW or work_us > MOST_OF_IT * longer_us:
            continue
        yield (
            f"{slow.arm} waits: of the {_time(slow.whole_us)} that its answer takes, "
            f"{_time(slow.work_us)} are work on the servers' CPUs ({fast.arm}: "
            f"{_time(fast.work_us)} of {_time(fast.whole_us)}).{_nagle(longer_us)}"
        )


def _busy(found: Waiting) -> float:
    """Give how many CPUs its servers keep busy: requests under way times the share of work."""
    return found.connections * found.work_us.estimate / found.whole_us.estimate


def _nagle(longer_us: float) -> str:
    """Name what makes a connection wait for the kernel's delayed acknowledgement."""
    low_us, high_us = DELAYED_ACK_US
    if not low_us <= longer_us <= high_us:
        return ""
    return (
        " Steps of 40 ms come from Nagle's algorithm and delayed acknowledgements, where head and "
        "body are written apart: set TCP_NODELAY, or write them at once."
    )


def _time(us: Interval) -> str:
    return text.latency(max(us.estimate, 0.0))
