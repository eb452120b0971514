"""What an answer's time is made of, in a sentence for each arm."""

from collections.abc import Iterator, Sequence

from webdyno.model import format as text
from webdyno.model.interval import Interval
from webdyno.model.waiting import Waiting

MILLISECOND_US = 1000


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


def _time(us: Interval) -> str:
    value = max(us.estimate, 0.0)
    unit, shown = ("ms", value / 1000) if value >= MILLISECOND_US else ("µs", value)
    return f"{text.significant(shown, 3)} {unit}"
