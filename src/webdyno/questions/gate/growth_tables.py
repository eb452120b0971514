"""What grew where a gate fails: a line for each endpoint, and functions in tables."""

from collections.abc import Iterator

from webdyno.comparison.time_spent import SMALL, in_short
from webdyno.core.base import Interval
from webdyno.core.explain import CpuPart, Explanation
from webdyno.core.format import (
    MISSING,
    count,
    latency,
    latency_and_bounds,
    latency_unit,
    significant,
)
from webdyno.core.limits import CostGrowth
from webdyno.core.registry import as_called
from webdyno.core.text import printable
from webdyno.media import document as doc
from webdyno.questions.gate.growth import ALL_ELSE, grown_parts

MOST_IN_LINE, MOST_IN_TABLE = 3, 12
"""Functions that are shown, those first that grew most."""
REPORTING = 0.01
"""Share of the whole difference that a row needs."""


def growth_line(growth: CostGrowth, *, waits: bool = True) -> str:
    """Say by how much CPU per request grew at an endpoint, and which functions take it."""
    whole = growth.counted or growth.sampled
    if whole is None or whole.whole.more_us.low <= 0:
        said = f"{growth.endpoint}: CPU per request hasn't grown (95% confidence)"
        said += ", waiting has" if waits else ""
        said = said if whole else f"{growth.endpoint}: too few valid rounds"
    else:
        more, ends = latency_and_bounds(whole.whole.more_us)
        said = f"{growth.endpoint} +{more} CPU per request (95% CI {ends})"
        if parts := ", ".join(map(_more, _parts(growth))):
            said += f": {parts}"
    others = "; ".join(
        f"{other.what} {significant(other.baseline, 3)} → {significant(other.head, 3)}"
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
    more, ends = latency_and_bounds(part.more_us)
    return f"{in_short(part.what)} +{more} ({ends})"


def growth_tables(growths: list[CostGrowth]) -> Iterator[doc.Section]:
    """Give the functions of each endpoint that was profiled, and their CPU time per request."""
    for growth in growths:
        if growth.sampled:
            rounds = count(growth.rounds, "profile round")
            heading = f"What grew at {growth.endpoint}, by {rounds}"
            yield doc.Section(heading, [_table(growth.sampled)])


def _table(apart: Explanation) -> doc.Table:
    least = REPORTING * abs(apart.whole.more_us.estimate)
    reporting = [
        part for part in apart.parts if part.is_sure and abs(part.more_us.estimate) >= least
    ]
    rows = sorted(reporting, key=lambda part: -part.more_us.estimate)[:MOST_IN_TABLE]
    return doc.simple_table(
        {"function": "name", "baseline": "value", "head": "value", "more (95% CI)": "range"},
        [_growth_row(part) for part in (*rows, apart.whole)],
        style="listed",
    )


def _growth_row(part: CpuPart) -> list[doc.Cell | str]:
    return [
        printable(part.what),
        *(latency(us) if us else MISSING for us in (part.b_us, part.a_us)),
        _range(part.more_us),
    ]


def _range(more_us: Interval) -> str:
    """Give by how much a part grew: `+390–410 µs`, of one that shrank `−4.2 to −3.8 µs`."""
    each_us, unit = latency_unit(abs(more_us.estimate))
    ends = (significant(end / each_us, 3) for end in (more_us.low, more_us.high))
    return f"{' to '.join(ends)} {unit}".replace("-", "−")
