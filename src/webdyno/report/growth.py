"""What grew where a gate fails: a line for terminal and comment, a table for page and details."""

from collections.abc import Iterator

from webdyno.judge.growth import ALL_ELSE, grown_parts
from webdyno.judge.time_spent import IN_SHORT, SMALL
from webdyno.model import format as text
from webdyno.model.base import Interval
from webdyno.model.command import as_called
from webdyno.model.explain import CpuPart, Explanation
from webdyno.model.growth import CostGrowth
from webdyno.model.text import printable
from webdyno.report import document as doc

MOST_IN_LINE, MOST_IN_TABLE = 3, 12
"""Functions that are shown, those first that grew most."""
TELLING = 0.01
"""Share of the whole difference that a row needs."""


def growth_line(growth: CostGrowth) -> str:
    """Say by how much CPU per request grew at an endpoint, and which functions take it."""
    whole = growth.counted or growth.sampled
    if whole is None or whole.whole.more_us.low <= 0:
        said = f"{growth.endpoint}: CPU per request hasn't grown (95% confidence), waiting has"
        said = said if whole else f"{growth.endpoint}: too few valid rounds"
    else:
        more, ends = text.latency_and_bounds(whole.whole.more_us)
        said = f"{growth.endpoint} +{more} CPU per request (95% CI {ends})"
        if parts := ", ".join(map(_more, _parts(growth))):
            said += f": {parts}"
    others = "; ".join(
        f"{other.what} {text.significant(other.baseline, 3)} → {text.significant(other.head, 3)}"
        for other in growth.others
    )
    whys = f"functions unknown: {growth.lacking}" if growth.lacking else ""
    return printable(as_called("; ".join(filter(None, [said, others, whys]))))


def _parts(growth: CostGrowth) -> list[CpuPart]:
    """Give the functions that grew most; where none is known, programs and kernel."""
    for apart in (growth.sampled, growth.counted):
        if apart and (parts := grown_parts(apart, SMALL)):
            return [part for part in parts if part.what != ALL_ELSE][:MOST_IN_LINE]
    return []


def _more(part: CpuPart) -> str:
    more, ends = text.latency_and_bounds(part.more_us)
    return f"{IN_SHORT.get(part.what, part.what)} +{more} ({ends})"


def growth_tables(growths: list[CostGrowth]) -> Iterator[doc.Section]:
    """Give the functions of each endpoint that was profiled, and their CPU time per request."""
    for growth in growths:
        if growth.sampled:
            rounds = text.count(growth.rounds, "profile round")
            heading = f"What grew at {growth.endpoint}, by {rounds}"
            yield doc.Section(heading, [_table(growth.sampled)])


def _table(apart: Explanation) -> doc.Table:
    least = TELLING * abs(apart.whole.more_us.estimate)
    telling = [part for part in apart.parts if part.is_sure and abs(part.more_us.estimate) >= least]
    rows = sorted(telling, key=lambda part: -part.more_us.estimate)[:MOST_IN_TABLE]
    return doc.simple_table(
        {"function": "name", "baseline": "value", "head": "value", "more (95% CI)": "range"},
        [_row(part) for part in (*rows, apart.whole)],
        style="listed",
    )


def _row(part: CpuPart) -> list[doc.Cell | str]:
    return [
        printable(part.what),
        *(text.latency(us) if us else text.MISSING for us in (part.b_us, part.a_us)),
        _range(part.more_us),
    ]


def _range(more_us: Interval) -> str:
    """Give by how much a part grew: `+390–410 µs`, of one that shrank `−4.2 to −3.8 µs`."""
    each_us, unit = text.latency_unit(abs(more_us.estimate))
    ends = (text.significant(end / each_us, 3) for end in (more_us.low, more_us.high))
    return f"{' to '.join(ends)} {unit}".replace("-", "−")
