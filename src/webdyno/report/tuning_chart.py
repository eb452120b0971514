"""The chart of a search for better settings: the best so far against the time used."""

import altair as alt

from webdyno.model import format as text
from webdyno.report.drawing import (
    GROUPED,
    TOLD,
    Figure,
    Panel,
    arm_encodings,
    drawn,
    values,
)
from webdyno.report.view import PointView


def tuning_figure(point: PointView) -> Figure | None:
    """The best so far, as the search saw it, against the time used."""
    sides = point.data.experiment.tuning
    rows = [
        {
            "arm": side.arm,
            "minutes": float(f"{step.used_s / 60:.4g}"),
            "gain": float(f"{step.gain:.4g}"),
            "told": f"{side.arm}: {text.number(step.gain, 2)}{text.TIMES} the default after "
            f"{text.duration(round(step.used_s))}",
        }
        for side in sides
        for step in side.steps
    ]
    if not rows:
        return None
    color, shape, dash = arm_encodings(point.data.experiment.arms)
    base = alt.Chart(values(rows)).encode(
        x=alt.X("minutes:Q", title="Measuring time used, minutes").axis(
            labelExpr=GROUPED, grid=False
        ),
        y=alt.Y("gain:Q", title="Best so far, as a multiple of the default")
        .scale(zero=False, nice=True)
        .axis(labelExpr=GROUPED),
        color=color,
    )
    chart = alt.layer(
        base.mark_line(interpolate="step-after", strokeWidth=2, aria=False).encode(strokeDash=dash),
        base.mark_point(filled=True, size=46, opacity=1).encode(shape=shape, description=TOLD),
    )
    return Figure(
        name="tuning",
        title="The search, round by round",
        caption="The best settings that the search knew by then, as it saw them. The best of many "
        "noisy values looks better than it is: the result is what the fresh blocks say.",
        panels=(
            Panel(
                name="tuning",
                alt=f"{'; '.join(str(row['told']) for row in rows)}.",
                svg=drawn(chart),
            ),
        ),
        by_arm=True,
    )
