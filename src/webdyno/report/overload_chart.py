"""What variants did at multiples of their capacity, as a chart."""

from collections.abc import Sequence

import altair as alt

from webdyno.model import format as text
from webdyno.model.explain import Overload
from webdyno.report.document import Figure
from webdyno.report.drawing import GROUPED, TOOLTIP, Rows, panel, values, variant_encodings
from webdyno.report.view import PointView


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
        base.mark_point(filled=True, size=60, opacity=1).encode(shape=shape, description=TOOLTIP),
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
