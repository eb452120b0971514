"""Where a response's time goes, and where the servers' CPU time does."""

from collections.abc import Callable, Iterable, Iterator

from webdyno.comparison.time_spent import explanation_sentence
from webdyno.comparison.waiting import BLOCKED, what_waits
from webdyno.core import format as text
from webdyno.core.base import Interval
from webdyno.core.findings import Waiting
from webdyno.core.judgement import Judgement
from webdyno.core.readings import BlockedBy
from webdyno.media.document import Kind, Section, said_section, simple_table
from webdyno.report.show import PointView

RESPONSE_TIME = "Where a response's time goes"
RESPONSE_PARTS = "Means: connections over throughput is the whole (Little's law); the parts add up."


def time_sections(judged: Judgement, waits: Iterable[str] = ()) -> Iterator[Section]:
    """Yield where time goes; `waits` are further sentences on a response's time."""
    yield from said_section(RESPONSE_TIME, [*what_waits(judged), *waits], note=RESPONSE_PARTS)
    yield from said_section(
        "Why: where the servers' CPU time goes",
        filter(None, map(explanation_sentence, judged.explanations)),
        note="What the kernel counted of it, for each response. The parts add up.",
    )


def waiting_section(point: PointView) -> Iterator[Section]:
    """Yield what the time of a response consists of, of many variants in a table."""
    known = {took.variant: took for took in point.judgement.waiting}
    parts: dict[str, Callable[[Waiting], Interval | None]] = {
        "in all": lambda took: took.whole_us,
        "work": lambda took: took.work_us,
        "waiting for a CPU": lambda took: took.cpu_us,
        "in front of workers": lambda took: took.queue_us,
        **{BLOCKED[what].removeprefix("of "): _blocked_by(what) for what in BLOCKED},
        "elsewhere": lambda took: took.rest_us,
    }
    of = [known[variant] for variant in point.variants if variant in known]
    used = {name: read for name, read in parts.items() if any(map(read, of))}
    rows = [[took.variant, *(_mean(read(took)) for read in used.values())] for took in of]
    columns: dict[str, Kind] = {"variant": "name", **dict.fromkeys(used, "value")}
    if rows:
        yield Section(RESPONSE_TIME, [simple_table(columns, rows, "brief")], RESPONSE_PARTS)


def _blocked_by(what: BlockedBy) -> Callable[[Waiting], Interval | None]:
    return lambda took: took.blocked_us.get(what)


def _mean(us: Interval | None) -> str:
    return text.latency(us.estimate) if us else text.MISSING
