"""The charts of one point, each defined once: Vega draws it in the page, vl-convert before that."""

import altair as alt

from webdyno.model.judgement import Judgement, Verdict
from webdyno.model.records import Record
from webdyno.model.run import RunHead
from webdyno.report import chart_data as data
from webdyno.report import text
from webdyno.report.chart_data import Rows
from webdyno.report.evidence import MetricEvidence, confidence
from webdyno.report.figure import (
    GROUPED,
    Figure,
    Layers,
    Panel,
    arm_encodings,
    opacity,
    spec,
    values,
)
from webdyno.report.palette import variable

ROW_PX = 46
"""Height of a ratio with its label above it."""
ABOVE_PX = -11
TONES = {
    Verdict.FASTER: "better",
    Verdict.SLOWER: "worse",
    Verdict.EQUIVALENT: "even",
    Verdict.UNDECIDED: "open",
    Verdict.INVALID: "broken",
}
CROSS = "M-.7,-.7L.7,.7M-.7,.7L.7,-.7"
PERCENTILE = "'p' + format(100 * (1 - datum.value), '.8~g')"


def ratio_figure(metrics: list[MetricEvidence]) -> Figure | None:
    """Ratios with their intervals and the band within which arms count as equivalent."""
    rows = data.ratios(metrics)
    if not rows:
        return None
    delta = next(found.delta for metric in metrics for found in metric.compared)
    against = rows[0]["against"]
    several = len({row["arm"] for row in rows}) > 1
    stacked = _stacked(rows, several=several)
    who = f"Each arm ÷ {against}" if several else f"{rows[0]['arm']} ÷ {against}"
    return Figure(
        name="ratios",
        title="How much, and how sure",
        caption=f"{who}, with {confidence(metrics)} intervals. The shaded band, "
        f"±{text.percent(delta)} around 1, holds differences too small to matter. An interval "
        "inside it means equivalent; one clear of 1 shows a difference; one that is neither leaves "
        "the question open.",
        panels=(
            Panel(
                name="ratios",
                alt="; ".join(
                    f"{row['arm']}, {row['metric']}: {row['told']}, {row['verdict']}"
                    for row in rows
                ),
                spec=spec(_ratio_chart(stacked, delta, who), ROW_PX * len(stacked)),
            ),
        ),
        by_arm=False,
    )


def _stacked(rows: Rows, *, several: bool) -> Rows:
    """Give each row its place; with several arms, a line with the metric's name comes first."""
    stacked: Rows = []
    for row in rows:
        heading = {"label": f"{row['metric']} ({row['better']})", "heading": True}
        result = {"result": f"{row['told'].split()[0]}  {row['sign']} {row['verdict']}"}
        if not several:
            stacked.append(row | result | heading)
            continue
        if row["metric"] not in {earlier["metric"] for earlier in stacked}:
            stacked.append({"metric": row["metric"]} | heading)
        stacked.append(row | result | {"label": row["arm"], "heading": False})
    return [row | {"row": place} for place, row in enumerate(stacked)]


def _ratio_chart(rows: Rows, delta: float, who: str) -> Layers:
    band = alt.Chart(values([{"low": 1 / (1 + delta), "high": 1 + delta, "one": 1}]))
    base = alt.Chart(values(rows)).encode(y=alt.Y("row:O", axis=None))
    x = alt.X("low:Q", title=f"{who} (log scale)").scale(type="log", nice=False, padding=18)
    x = x.axis(
        labelExpr="format(datum.value, '.4~g') + '×'",
        tickCount=6,
        labelOverlap="greedy",
        labelSeparation=8,
    )
    tones = alt.Scale(domain=list(TONES), range=[variable(tone) for tone in TONES.values()])
    shown = base.transform_filter("isValid(datum.ratio)").encode(
        color=alt.Color("tone:N", scale=tones, legend=None),
        tooltip=[
            alt.Tooltip("metric:N"),
            alt.Tooltip("arm:N"),
            alt.Tooltip("against:N"),
            alt.Tooltip("told:N", title="ratio (interval)"),
            alt.Tooltip("verdict:N"),
        ],
    )
    heading = 0.58 if all("ratio" in row for row in rows) else 1
    headings = base.transform_filter("datum.heading").encode(x=alt.value(0), text="label:N")
    names = base.transform_filter("!datum.heading").encode(x=alt.value(0), text="label:N")
    results = shown.encode(x=alt.value("width"), text="result:N")
    return alt.layer(
        band.mark_rect(color=variable("band")).encode(x=x, x2="high:Q"),
        band.mark_rule(color=variable("ink-soft"), strokeWidth=1).encode(x="one:Q"),
        shown.mark_rule(strokeWidth=3, yOffset=8, strokeCap="round").encode(x="low:Q", x2="high:Q"),
        shown.mark_point(filled=True, size=90, opacity=1, yOffset=8).encode(x="ratio:Q"),
        headings.mark_text(align="left", dy=ABOVE_PX, fontWeight=600, limit=_share(heading)),
        names.mark_text(align="left", dy=ABOVE_PX, limit=_share(0.58)),
        results.mark_text(align="right", dy=ABOVE_PX, fontWeight=600),
    )


def latency_figure(head: RunHead, records: list[Record]) -> Figure | None:
    """Percentile curves of the response times, all slots of an arm merged."""
    rows = data.latency(records, list(head.experiment.arms))
    if not rows:
        return None
    deepest = min(row["beyond"] for row in rows)
    ticks = [0.5, *(10.0**-n for n in range(1, 9) if 10.0**-n >= deepest * 0.9)]
    color, _, dash = arm_encodings(head.experiment.arms)
    near = alt.selection_point(nearest=True, on="pointerover", fields=["beyond"], empty=False)
    base = alt.Chart(values(rows)).encode(
        x=alt.X("beyond:Q", title="Percentile of requests (log scale towards the slowest)")
        .scale(type="log", nice=False, domain=[1, deepest])
        .axis(values=ticks, labelExpr=PERCENTILE, labelFlush=True),
        y=alt.Y("ms:Q", title="Response time, ms (log scale)")
        .scale(type="log", nice=False, padding=10)
        .axis(labelExpr=GROUPED, values=_round_steps(rows)),
        color=color,
        opacity=opacity(),
    )
    chart = alt.layer(
        base.mark_line(strokeWidth=2.5, interpolate="monotone", aria=False).encode(strokeDash=dash),
        base.mark_point(filled=True, size=70, aria=False)
        .encode(
            opacity=alt.when(near).then(alt.value(1)).otherwise(alt.value(0)),
            tooltip=[
                alt.Tooltip("arm:N"),
                alt.Tooltip("percentile:N"),
                alt.Tooltip("ms:Q", title="response time, ms"),
            ],
        )
        .add_params(near),
    )
    medians = [f"{row['arm']} {row['ms']} ms" for row in rows if row["percentile"] == "p50"]
    return Figure(
        name="latency",
        title="How long answers take",
        caption="Lower is better. All slots merged; a curve ends where fewer than ten answers are "
        "left beyond it."
        + (
            " Closed loop: while a server stalls its clients wait as well, so these times say "
            "how the arms compare, not what independent visitors would see."
            if head.experiment.load.loop == "closed"
            else ""
        ),
        panels=(
            Panel(
                name="latency",
                alt=f"Response time by percentile for each arm. Medians: {', '.join(medians)}.",
                spec=spec(chart),
            ),
        ),
        by_arm=True,
    )


def _round_steps(rows: Rows) -> list[float]:
    """Give 1, 2 and 5 times each power of ten in the range of the curves."""
    times = [row["ms"] for row in rows]
    steps = (step * 10.0**power for power in range(-4, 6) for step in (1, 2, 5))
    return [step for step in steps if min(times) / 2 <= step <= max(times) * 2]


CEILING_SHOWN = 1.5
"""Beyond this many times the highest rate, the ceiling's line would only flatten the chart."""


def slots_figure(head: RunHead, records: list[Record], judgement: Judgement) -> Figure | None:
    """Rate of each slot in the order in which they were measured."""
    rows = data.slot_rates(records, judgement)
    if not rows:
        return None
    bad = sum(1 for row in rows if row["trouble"])
    color, shape, _ = arm_encodings(head.experiment.arms)
    base = alt.Chart(values(rows)).encode(
        x=alt.X("s:Q", title="Time since the first slot, s").axis(labelExpr=GROUPED, grid=False),
        y=alt.Y("rate:Q", title="Valid answers per second")
        .scale(zero=False, nice=True, padding=8)
        .axis(labelExpr=GROUPED, tickCount=6),
        tooltip=[
            alt.Tooltip("arm:N"),
            alt.Tooltip("rate:Q", title="answers per second", format=",.0f"),
            alt.Tooltip("block:Q"),
            alt.Tooltip("s:Q", title="begun after, s"),
            *([alt.Tooltip("trouble:N")] if bad else []),
        ],
    )
    blocks = (
        alt.Chart(values(data.block_spans(records)))
        .mark_rect(color=variable("band"))
        .encode(x="from:Q", x2="to:Q")
    )
    layers = [
        blocks,
        base.transform_filter("datum.trouble == ''")
        .mark_point(filled=True, size=46)
        .encode(color=color, shape=shape, opacity=opacity()),
    ]
    if bad:
        cross = base.mark_point(shape=CROSS, size=110, strokeWidth=2.5, color=variable("broken"))
        layers.append(cross.transform_filter("datum.trouble != ''"))
    ceiling_rps = data.highest_ceiling_rps(records)
    if ceiling_rps and ceiling_rps <= CEILING_SHOWN * max(row["rate"] for row in rows):
        ceiling = alt.Chart(values([{"rate": ceiling_rps}]))
        layers.append(ceiling.mark_rule(strokeDash=[6, 4]).encode(y="rate:Q"))
    return Figure(
        name="slots",
        title="Rate, slot by slot",
        caption="Each shaded column is a block, for which every arm was started afresh."
        + ("" if min(row["rate"] for row in rows) == 0 else " The axis doesn't begin at zero.")
        + (f" A cross marks a slot that broke a rule or doesn't count ({bad})." if bad else "")
        + (_ceiling_caption(ceiling_rps) if ceiling_rps else ""),
        panels=(
            Panel(
                name="slots",
                alt=f"Valid answers per second of {len(rows)} slots over time, by arm; "
                f"{bad} with trouble.",
                spec=spec(alt.layer(*layers)),
            ),
        ),
        by_arm=True,
    )


def _ceiling_caption(ceiling_rps: float) -> str:
    return (
        f" Against a server that does nothing this client reaches {text.number(ceiling_rps)} "
        "answers per second (webdyno calibrate); a dashed line shows that where it is near."
    )


def cpu_figure(head: RunHead, judgement: Judgement) -> Figure | None:
    """Server CPU time per request of each block."""
    rows = data.by_block(judgement, "server_cpu_us")
    if not rows:
        return None
    color, shape, dash = arm_encodings(head.experiment.arms)
    base = alt.Chart(values(rows)).encode(
        x=alt.X("block:O", title="Block").axis(labelAngle=0, labelOverlap=True),
        y=alt.Y("value:Q", title="Server CPU time per request, µs")
        .scale(zero=True)
        .axis(labelExpr=GROUPED, tickCount=6),
        color=color,
        opacity=opacity(),
        tooltip=[
            alt.Tooltip("arm:N"),
            alt.Tooltip("block:O"),
            alt.Tooltip("value:Q", title="µs per request"),
        ],
    )
    chart = alt.layer(
        base.mark_line(strokeWidth=1.5).encode(strokeDash=dash),
        base.mark_point(filled=True, size=60).encode(shape=shape),
    )
    return Figure(
        name="cpu",
        title="What an answer costs the servers",
        caption="User and system time of all of an arm's server processes, divided by the answers "
        "they gave. Lower is better; unlike the rate it isn't limited by the client.",
        panels=(
            Panel(
                name="cpu",
                alt="Server CPU time per request by block for each arm.",
                spec=spec(chart),
            ),
        ),
        by_arm=True,
    )


def _share(of_width: float) -> alt.ExprRef:
    return alt.ExprRef(f"width * {of_width}")
