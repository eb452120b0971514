"""The chart of a search for better settings."""

import altair as alt

from webdyno.core import format as text
from webdyno.media.document import Figure
from webdyno.media.drawing import GROUPED, TOOLTIP, panel, values, variant_encodings
from webdyno.report.show import PointView


def tuning_figure(point: PointView) -> Figure | None:
    """The best so far, as the search saw it, against the time used."""
    tuning = point.data.experiment.tuning
    rows = [
        {
            "variant": tuned.variant,
            "minutes": float(f"{step.used_s / 60:.4g}"),
            "gain": float(f"{step.gain:.4g}"),
            "told": f"{tuned.variant}: {text.number(step.gain, 2)}{text.TIMES} the default after "
            f"{text.duration(round(step.used_s))}",
        }
        for tuned in tuning
        for step in tuned.steps
    ]
    if not rows:
        return None
    color, shape, dash = variant_encodings(point.data.experiment.variants)
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
        base.mark_point(filled=True, size=46, opacity=1).encode(shape=shape, description=TOOLTIP),
    )
    return Figure(
        name="tuning",
        title="The search, batch by batch",
        caption="The best settings known by then, as the search saw them.",
        note="The best of many noisy values looks better than it is: the result is what the fresh "
        "rounds say.",
        panels=(panel("tuning", f"{'; '.join(str(row['told']) for row in rows)}.", chart),),
        by_variant=True,
    )
