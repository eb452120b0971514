"""The charts of what happened at one point: slots, CPU time, the machine's CPUs."""

from collections.abc import Callable, Iterator, Sequence
from math import ceil, log10
from typing import Any

import altair as alt

from webdyno.core import format as text
from webdyno.core.judgement import Judgement
from webdyno.core.metrics import throughput_rps
from webdyno.core.records import SlotRecord
from webdyno.core.registry import command
from webdyno.evidence.point_data import PointData
from webdyno.media.document import Figure
from webdyno.media.drawing import (
    CROSS,
    GROUPED,
    TOOLTIP,
    Rows,
    css_variable,
    panel,
    values,
    variant_encodings,
)
from webdyno.report.long_charts import course_figure
from webdyno.report.show import PointView
from webdyno.report.tables import FEWEST_BEYOND, merged_latency

POINTS_PER_DECADE = 20
NAMED = (0.5, 0.1, 0.01, 0.001, 0.0001)
"""Shares beyond a percentile that get a mark on the curve."""
SHORT_RANGE = 20
"""Times of the shortest latency up to which an axis has more steps."""
PERCENTILE = "'p' + format(100 * (1 - datum.value), '.8~g')"

CEILING_SHOWN = 1.5
"""Beyond this many times the highest arrival rate, the ceiling's line would only flatten the
chart."""
CPU_PX, HOST_PX = 220, 180
SIDES = {"servers": "Servers' CPUs", "client": "Client's CPUs"}
MOST_SLOTS = 400
"""Beyond so many only every second, third… slot is drawn in the chart of the machine's CPUs."""


def latency_figure(point: PointView) -> Figure | None:
    """Percentile curves of the latency, all slots of a variant merged; not of a search."""
    if not point.has_one_load:
        return None
    variants = point.variants
    rows = latency_rows(point.data, variants)
    if not rows:
        return None
    deepest = min(row["beyond"] for row in rows)
    ticks = [0.5, *(10.0**-n for n in range(1, 9) if 10.0**-n >= deepest * 0.9)]
    shortest, longest = min(row["ms"] for row in rows), max(row["ms"] for row in rows)
    is_short = longest <= SHORT_RANGE * shortest
    steps = (1, 1.5, 2, 3, 4, 5, 6, 8) if is_short else (1, 2, 5)
    times = (step * 10.0**power for power in range(-4, 6) for step in steps)
    times_shown = [time for time in times if shortest / 2 <= time <= longest * 2]
    color, shape, dash = variant_encodings(variants)
    base = alt.Chart(values(rows)).encode(
        x=alt.X("beyond:Q", title="Percentile of requests (log scale)")
        .scale(type="log", nice=False, domain=[rows[0]["beyond"], deepest])
        .axis(values=ticks, labelExpr=PERCENTILE, labelFlush=True),
        y=alt.Y("ms:Q", title="Latency, ms (log scale)")
        .scale(type="log", nice=False, padding=10)
        .axis(values=times_shown, labelExpr=GROUPED, labelOverlap="greedy"),
        color=color,
    )
    named = base.transform_filter("isValid(datum.told)").mark_point(filled=True, size=60, opacity=1)
    chart = alt.layer(
        base.mark_line(strokeWidth=2.5, aria=False).encode(strokeDash=dash),
        named.encode(shape=shape, description=TOOLTIP),
    )
    medians = "; ".join(row["told"] for row in rows if row["beyond"] == 0.5)
    about = f"Latency by percentile for each variant. {medians}."
    note = "A curve ends where fewer than ten responses are left beyond it."
    if point.data.experiment.load.loop == "closed":
        note += " Closed loop: while a server stalls its clients wait as well, so these times say "
        note += "how the variants compare, not what independent visitors would see."
    return Figure(
        name="latency",
        title="Latency by percentile",
        caption="All slots merged; lower is better.",
        note=note,
        panels=(panel("latency", about, chart),),
        by_variant=True,
    )


def latency_rows(data: PointData, variants: Sequence[str]) -> Rows:
    """Return each variant's latency at percentiles evenly spaced on the scale 1/(1 − p)."""
    steps = (10 ** (-step / POINTS_PER_DECADE) for step in range(1, 9 * POINTS_PER_DECADE))
    shares = sorted([*steps, 0.5], reverse=True)
    rows: Rows = []
    for variant in variants:
        merged = merged_latency(data, variant)
        for beyond in shares:
            time_us = merged.quantile(1 - beyond) if beyond * merged.total >= FEWEST_BEYOND else 0
            if not time_us:
                continue
            ms = float(f"{time_us / 1000:.4g}")
            row = {"variant": variant, "beyond": float(f"{beyond:.4g}"), "ms": ms}
            if row["beyond"] in NAMED:
                row["told"] = (
                    f"{variant}, {percentile_name(beyond)} of all slots: {text.significant(ms)} ms"
                )
            rows.append(row)
    return rows


def percentile_name(beyond: float) -> str:
    """Return a percentile's name, with the digits that keep it from 100."""
    return f"p{100 * (1 - beyond):.{max(0, ceil(-log10(beyond) - 1e-9) - 2)}f}"


def point_figures(point: PointView) -> list[Figure]:
    """Return what can be drawn of a point, in the order of reading."""
    return [*result_figures(point), *other_figures(point)]


def result_figures(point: PointView) -> Iterator[Figure]:
    """Draw what came out at a point, besides ratios."""
    for show in point.shows:
        yield from show.results(point)
    if course := course_figure(point):
        yield course


def other_figures(point: PointView) -> Iterator[Figure]:
    """Draw how that came out."""
    for show in point.shows:
        yield from show.figures(point)
    yield from filter(None, (figure(point) for figure in FIGURES))


def slots_figure(point: PointView) -> Figure | None:
    """Throughput of each slot in the order in which they were measured."""
    rows = slot_rows(point.data, point.judgement)
    if not rows:
        return None
    bad = sum(bool(row["trouble"]) for row in rows)
    color, shape, _ = variant_encodings(point.variants)
    base = alt.Chart(values(rows)).encode(
        x=alt.X("s:Q", title="Time since the first slot, s").axis(labelExpr=GROUPED, grid=False),
        y=alt.Y("throughput:Q", title="Throughput, req/s")
        .scale(zero=False, nice=True, padding=8)
        .axis(labelExpr=GROUPED, tickCount=6),
        description=TOOLTIP,
    )
    rounds = alt.Chart(values(_round_spans(point.data))).encode(x="from:Q", x2="to:Q")
    good = base.transform_filter("datum.trouble == ''").encode(color=color, shape=shape)
    layers = [
        rounds.mark_rect(color=css_variable("band"), aria=False),
        good.mark_point(filled=True, size=46, opacity=1),
    ]
    caption = "A mark for each slot. Each shaded column is a round: every variant was restarted."
    notes = []
    if bad:
        cross = base.transform_filter("datum.trouble != ''")
        color_of_bad = css_variable("broken")
        layers.append(cross.mark_point(shape=CROSS, size=110, strokeWidth=2.5, color=color_of_bad))
        caption += f" A cross: the slot broke a rule or doesn't count ({bad})."
    if min(row["throughput"] for row in rows) > 0:
        notes.append("The axis doesn't begin at zero.")
    if ceiling_rps := _highest_ceiling_rps(point.data):
        notes.append(
            f"Against a server that does nothing this client reaches {text.number(ceiling_rps)} "
            f"req/s ({command('doctor', '--calibrate')}); a dashed line shows that where it is "
            "near."
        )
        if ceiling_rps <= CEILING_SHOWN * max(row["throughput"] for row in rows):
            ceiling = alt.Chart(values([{"throughput": ceiling_rps}])).encode(y="throughput:Q")
            layers.append(ceiling.mark_rule(strokeDash=[6, 4]))
    about = f"Throughput, req/s of {len(rows)} slots over time, by variant; "
    about += f"{bad} broke a rule or don't count."
    return Figure(
        name="slots",
        title="Throughput, slot by slot",
        caption=caption,
        note=" ".join(notes),
        panels=(panel("slots", about, alt.layer(*layers)),),
        by_variant=True,
    )


def slot_rows(data: PointData, judgement: Judgement) -> Rows:
    """Return one row per measured slot: when it began, what it achieved, what was wrong with it."""
    slots = _measured_slots(data)
    if not slots:
        return []
    counted = {(slot.round, slot.slot) for slot in data.slots}
    broken: dict[tuple[int, int], set[str]] = {}
    for excluded in judgement.excluded:
        broken.setdefault((excluded.round, excluded.slot), set()).add(excluded.rule)
    start = min(slot.started_at for slot in slots)
    rows = []
    for slot in slots:
        place = (slot.round, slot.slot)
        throughput = throughput_rps([slot]) or 0.0
        trouble = ", ".join(sorted(broken.get(place, [])))
        if not trouble and place not in counted:
            trouble = "round not finished"
        words = f"{slot.variant}, round {slot.round}: {text.number(throughput)} req/s"
        rows.append(
            {
                "variant": slot.variant,
                "s": round((slot.started_at - start).total_seconds(), 2),
                "throughput": round(throughput, 1),
                "round": slot.round,
                "trouble": trouble,
                "told": f"{words} ({trouble})" if trouble else words,
            }
        )
    return rows


def _measured_slots(data: PointData) -> list[SlotRecord]:
    return [
        slot for slot in data.records if isinstance(slot, SlotRecord) and slot.phase == "measure"
    ]


def _round_spans(data: PointData) -> Rows:
    slots = _measured_slots(data)
    start = min(slot.started_at for slot in slots)
    spans: dict[int, list[float]] = {}
    for slot in slots:
        begin = (slot.started_at - start).total_seconds()
        spans.setdefault(slot.round, []).extend([begin, begin + slot.load.measured_s])
    return [{"from": round(min(ends), 2), "to": round(max(ends), 2)} for ends in spans.values()]


def _highest_ceiling_rps(data: PointData) -> float | None:
    """Return the most that the client could have reached, with the lightest of the responses."""
    readings = [slot.readings for slot in _measured_slots(data) if slot.readings]
    return max((each.ceiling.throughput_rps for each in readings if each.ceiling), default=None)


def cpu_figure(point: PointView) -> Figure | None:
    """CPU per request of each round."""
    rows = [
        {
            "variant": value.variant,
            "round": round_number,
            "value": each,
            "told": f"{value.variant}, round {round_number}: {text.significant(each)} µs",
        }
        for value in point.judgement.variants
        if value.metric == "server_cpu_us"
        for round_number, each in zip(value.rounds, value.by_round, strict=True)
    ]
    if not rows:
        return None
    color, shape, dash = variant_encodings(point.variants)
    base = alt.Chart(values(rows)).encode(
        x=alt.X("round:O", title="Round").axis(labelAngle=0, labelOverlap=True),
        y=alt.Y("value:Q", title="CPU per request, µs")
        .scale(zero=True)
        .axis(labelExpr=GROUPED, tickCount=6),
        color=color,
    )
    chart = alt.layer(
        base.mark_line(strokeWidth=1.5, aria=False).encode(strokeDash=dash),
        base.mark_point(filled=True, size=60, opacity=1).encode(shape=shape, description=TOOLTIP),
    )
    about = "CPU per request by round for each variant."
    return Figure(
        name="cpu",
        title="CPU per request, round by round",
        caption="User and system time of all of a variant's server processes, divided by its "
        "responses. Lower is better.",
        note="Unlike throughput it isn't limited by the client.",
        panels=(panel("cpu", about, chart, height=CPU_PX),),
        by_variant=True,
    )


def host_figure(point: PointView) -> Figure | None:
    """How busy the CPUs of servers and client were, slot by slot."""
    rows = host_rows(point.data)
    if not rows:
        return None
    color, shape, _ = variant_encodings(point.variants)
    base = alt.Chart(values(rows)).encode(
        x=alt.X("s:Q", title="Time since the first slot, s").axis(labelExpr=GROUPED, grid=False),
        color=color,
        shape=shape,
    )
    panels = []
    for side, heading in SIDES.items():
        ends = alt.Y(f"{side}_low:Q", title="Busy, % of their time").scale(domain=[0, 100])
        chart = alt.layer(
            base.mark_rule(strokeWidth=1.5, aria=False).encode(y=ends, y2=f"{side}_high:Q"),
            base.mark_point(filled=True, size=30, opacity=1).encode(
                y=f"{side}:Q", description=alt.Description(f"{side}_told:N")
            ),
        )
        about = f"{heading}: how busy over time, in {len(rows)} slots."
        panels.append(
            panel(f"host-{side}", about, chart, heading=heading, height=HOST_PX, is_half=True)
        )
    return Figure(
        name="host",
        title="How busy the CPUs were",
        caption="A mark for each slot; a line from the least to the most busy of its samples.",
        note="Everything on these CPUs is counted. Servers near 100% are saturated; a client near "
        "100% measures itself.",
        panels=tuple(panels),
        by_variant=True,
    )


def host_rows(data: PointData) -> Rows:
    """Return one row per slot that counts and was sampled: mean and range of its samples."""
    sampled = [
        (slot, slot.readings.host.samples)
        for slot in data.slots
        if slot.readings and slot.readings.host.samples
    ]
    if not sampled:
        return []
    start = min(slot.started_at for slot, _ in sampled)
    every = -(-len(sampled) // MOST_SLOTS)
    rows = []
    for slot, samples in sampled[::every]:
        row: dict[str, Any] = {
            "variant": slot.variant,
            "s": round((slot.started_at - start).total_seconds(), 2),
        }
        for side in SIDES:
            busy = [100 * getattr(sample, f"{side}_busy") for sample in samples]
            mean = sum(busy) / len(busy)
            row |= {side: mean, f"{side}_low": min(busy), f"{side}_high": max(busy)}
            row[f"{side}_told"] = f"{slot.variant}, round {slot.round}: {text.number(mean)}% busy"
        rows.append(row)
    return rows


FIGURES: tuple[Callable[[PointView], Figure | None], ...] = (
    latency_figure,
    slots_figure,
    cpu_figure,
    host_figure,
)
