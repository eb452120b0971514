"""The machine's CPUs while slots were measured, as the probes sampled them."""

import altair as alt

from webdyno.judge.measured import Measured
from webdyno.model.records import Record
from webdyno.model.run import RunHead
from webdyno.report.chart_data import Rows
from webdyno.report.figure import GROUPED, Figure, Panel, arm_encodings, opacity, spec, values

SIDES = {"servers": "Servers' CPUs", "client": "Client's CPUs"}
MOST_SAMPLES = 2_000
"""Beyond so many only every second, third… slot is drawn."""


def host_figure(head: RunHead, records: list[Record]) -> Figure | None:
    """How busy the CPUs of servers and client were, over time."""
    rows = host_rows(records)
    if not rows:
        return None
    color, _, _ = arm_encodings(head.experiment.arms)
    base = alt.Chart(values(rows)).encode(
        x=alt.X("s:Q", title="Time since the first slot, s").axis(labelExpr=GROUPED, grid=False),
        color=color,
        opacity=opacity(),
        detail="slot:N",
    )
    panels = []
    for side, heading in SIDES.items():
        y = alt.Y(f"{side}:Q", title="Busy, % of their time").scale(domain=[0, 100])
        told = [
            alt.Tooltip("arm:N"),
            alt.Tooltip(f"{side}:Q", title="busy, %"),
            alt.Tooltip("running:Q", title="tasks that run or could"),
            alt.Tooltip("s:Q", title="after, s"),
        ]
        chart = alt.layer(
            base.mark_line(strokeWidth=1.5, aria=False).encode(y=y),
            base.mark_point(filled=True, size=18).encode(y=y, tooltip=told),
        )
        about = f"{heading}: how busy over time, in {len(rows)} samples."
        panels.append(Panel(f"host-{side}", about, spec(chart, height=200), heading))
    return Figure(
        name="host",
        title="How busy the CPUs were",
        caption="Sampled inside slots, everything on these CPUs counted. Servers that are the "
        "bottleneck keep theirs near 100\u202f%; a client near 100\u202f% measures itself.",
        panels=tuple(panels),
        by_arm=True,
    )


def host_rows(records: list[Record]) -> Rows:
    """Give one row per sample in slots that count."""
    slots = Measured.of(records).slots
    samples = sum(len(slot.readings.host.samples) for slot in slots if slot.readings)
    if not samples:
        return []
    every = -(-samples // MOST_SAMPLES)
    start = min(slot.started_at for slot in slots)
    return [
        {
            "arm": slot.arm,
            "slot": number,
            "s": round((slot.started_at - start).total_seconds() + sample.at_s, 2),
            "servers": round(100 * sample.servers_busy, 1),
            "client": round(100 * sample.client_busy, 1),
            "running": sample.running,
        }
        for number, slot in enumerate(slots)
        if slot.readings and number % every == 0
        for sample in slot.readings.host.samples
    ]
