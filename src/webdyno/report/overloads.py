"""What variants did at multiples of their capacity: a table, and a chart."""

from collections.abc import Callable, Iterator, Sequence

import altair as alt

from webdyno.model import format as text
from webdyno.model.explain import Overload, OverRounds
from webdyno.report import document as doc
from webdyno.report.document import Figure
from webdyno.report.drawing import GROUPED, TOLD, Rows, panel, values, variant_encodings
from webdyno.report.view import PointView

NOTE = (
    "The last two of four seconds at a multiple of the capacity; medians of the rounds that tried "
    "it. Goodput: requests within the objectives, then as a share of the capacity. Back: how long "
    "half of the capacity broke the objectives afterwards."
)
HEADINGS = ("goodput, req/s", "of capacity", "failed", "p50", "p99", "back after")


def overload_section(found: Sequence[Overload]) -> Iterator[doc.Section]:
    """Say what came of asking for more than the capacity, where that was tried."""
    if found:
        columns = [
            doc.Column("variant", "name", obvious=True),
            doc.Column("load", "value"),
            *(doc.Column(heading, "value", spare=heading == "p50") for heading in HEADINGS),
        ]
        rows = [doc.RowGroup(list(map(_row, found)))]
        table = doc.Table(columns, rows, style="brief")
        yield doc.Section("Beyond capacity", [table], NOTE, "goodput is what meets the objectives")


def _row(found: Overload) -> list[doc.Cell | str]:
    return [
        found.variant,
        f"{found.times:g}{text.TIMES}",
        _median(found.goodput_rps, _rate),
        _median(found.of_capacity, text.percent),
        _median(found.failed, text.percent),
        _median(found.p50_us, text.latency),
        _median(found.p99_us, text.latency),
        back_words(found),
    ]


def _median(spread: OverRounds | None, written: Callable[[float], str]) -> str:
    return written(spread.median) if spread else text.MISSING


def _rate(rps: float) -> str:
    return text.significant(rps) if rps else "0"


def back_words(found: Overload) -> str:
    """Say how long it took to come back, and in how many rounds it didn't."""
    if not found.back_s:
        return "not in 10 s"
    said = text.duration(float(f"{found.back_s.median:.2g}"))
    return said if found.back == found.rounds else f"{said} ({found.back} of {found.rounds})"


def overload_figure(point: PointView) -> Figure | None:
    """Goodput by offered load, both in capacities."""
    rows = overload_rows(point.judgement.overloads)
    if not rows:
        return None
    color, shape, dash = variant_encodings(list(point.data.experiment.variants))
    base = alt.Chart(values(rows)).encode(
        x=alt.X("offered:Q", title="Offered load, % of the capacity")
        .scale(zero=False, nice=True)
        .axis(labelExpr=GROUPED, grid=False),
        y=alt.Y("goodput:Q", title="Goodput, % of the capacity").axis(labelExpr=GROUPED),
        color=color,
    )
    chart = alt.layer(
        base.mark_line(strokeWidth=2.5, aria=False).encode(strokeDash=dash),
        base.mark_point(filled=True, size=60, opacity=1).encode(shape=shape, description=TOLD),
    )
    said = "; ".join(str(row["told"]) for row in rows if row["offered"] > 100)
    return Figure(
        name="overload",
        title="Goodput beyond capacity",
        caption="Requests per second within the objectives. A server that holds 100% sheds what is "
        "too much.",
        panels=(panel("overload", f"Goodput beyond capacity. {said}.", chart),),
        by_variant=True,
    )


def overload_rows(found: Sequence[Overload]) -> Rows:
    """Give a row for each variant and multiple, and one for its capacity."""
    rows = [
        {"variant": variant, "offered": 100.0, "goodput": 100.0, "told": f"{variant}: its capacity"}
        for variant in dict.fromkeys(each.variant for each in found)
    ]
    return rows + [
        {
            "variant": each.variant,
            "offered": 100 * each.times,
            "goodput": 100 * each.of_capacity.median,
            "told": f"{each.variant} at {each.times:g}{text.TIMES}: "
            f"{text.percent(each.of_capacity.median)} of its capacity",
        }
        for each in found
        if each.of_capacity
    ]
