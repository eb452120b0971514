"""The curves of a history: each gate's ratio with its CI, and the levels they lie around."""

from collections.abc import Iterator, Sequence

import altair as alt

from webdyno.model import format as text
from webdyno.model.history import Curve, PastGate, Plateau
from webdyno.model.judgement import Verdict
from webdyno.model.metrics import METRICS
from webdyno.report.document import Figure, Panel
from webdyno.report.drawing import TOOLTIP, Layers, Rows, css_variable, panel, values
from webdyno.report.ratio_charts import FACTOR, TONES
from webdyno.report.words import metric_label

PANEL_PX = 220
MOST_DRAWN = 20
"""Endpoints: each takes a second to draw."""
HALF_A_GATE = 0.5
"""By which a level reaches beyond its first and last mark."""


def history_figures(history: Sequence[PastGate], curves: Sequence[Curve]) -> list[Figure]:
    """Draw the curves of each endpoint; of many those that changed."""
    endpoints = list(dict.fromkeys(curve.endpoint for curve in curves))
    if len(endpoints) > MOST_DRAWN:
        changed = {curve.endpoint for curve in curves if len(curve.levels) > 1}
        endpoints = sorted(endpoints, key=lambda endpoint: endpoint not in changed)[:MOST_DRAWN]
    return [
        Figure(
            name=f"history-{number}",
            title=endpoint,
            caption="A dot: a gate's ratio to the baseline, with the bounds that its answer rests "
            "on. A line: the level, with its 95% CI. A dashed line: another machine.",
            panels=tuple(
                _panel(f"history-{number}-{curve.metric}", history, curve)
                for curve in curves
                if curve.endpoint == endpoint
            ),
            by_variant=False,
        )
        for number, endpoint in enumerate(endpoints)
    ]


def gate_rows(history: Sequence[PastGate], curve: Curve) -> Rows:
    """Give a row for each gate that measured this."""
    return [
        {
            "gate": place + 1,
            "low": past.ratio.low,
            "ratio": past.ratio.estimate,
            "high": past.ratio.high,
            "told": f"gate {place + 1}, {gate.measured_at:%Y-%m-%d}, {gate.commit}: "
            f"{text.times(past.ratio)} ({text.between(past.ratio)})",
        }
        for place, gate in enumerate(history)
        for past in gate.ratios
        if (past.endpoint, past.metric) == (curve.endpoint, curve.metric)
    ]


def level_rows(curve: Curve) -> Rows:
    """Give a row for each level."""
    return [
        {
            "start": level.gates[0] + 1 - HALF_A_GATE,
            "end": level.gates[-1] + 1 + HALF_A_GATE,
            "low": level.ratio.low,
            "level": level.ratio.estimate,
            "high": level.ratio.high,
            "tone": str(change_tone(curve, level)),
        }
        for level in curve.levels
    ]


def change_tone(curve: Curve, level: Plateau) -> Verdict:
    """Give the verdict in whose colors a level is drawn, by its change."""
    if level.change is None:
        return Verdict.EQUIVALENT
    risen = level.change.estimate > 1
    better = risen is (METRICS[curve.metric].metric.better == "higher")
    return Verdict.FASTER if better else Verdict.SLOWER


def _panel(name: str, history: Sequence[PastGate], curve: Curve) -> Panel:
    label = metric_label(METRICS[curve.metric].metric)
    said = "; ".join(
        f"gates {level.gates[0] + 1} to {level.gates[-1] + 1}: {text.times(level.ratio)}"
        for level in curve.levels
    )
    return panel(
        name,
        f"{curve.endpoint}, {label}, ratio to the baseline. {said}.",
        _chart(gate_rows(history, curve), level_rows(curve), list(_moves(history))),
        heading=label,
        height=PANEL_PX,
        is_half=True,
    )


def _moves(history: Sequence[PastGate]) -> Iterator[dict[str, float]]:
    """Give the places before which the machine became another one."""
    for place in range(1, len(history)):
        before, after = history[place - 1].machine, history[place].machine
        if (before.identity, before.cpu_model) != (after.identity, after.cpu_model):
            yield {"gate": place + 1 - HALF_A_GATE}


def _chart(gates: Rows, levels: Rows, moves: Rows) -> Layers:
    def across(field: str) -> alt.X:
        axis = alt.Axis(grid=False, format="d", tickMinStep=1)
        return alt.X(f"{field}:Q", title="Gate", axis=axis).scale(nice=False)

    def up(field: str) -> alt.Y:
        axis = alt.Axis(labelExpr=FACTOR, tickCount=5)
        return alt.Y(f"{field}:Q", title="Ratio to the baseline", axis=axis).scale(
            zero=False, nice=True, padding=8
        )

    dots, flat = alt.Chart(values(gates)), alt.Chart(values(levels))
    tones = alt.Scale(domain=list(TONES), range=[css_variable(tone) for tone in TONES.values()])
    color = alt.Color("tone:N", scale=tones, legend=None)
    soft = css_variable("ink-soft")
    return alt.layer(
        alt.Chart(values(moves))
        .mark_rule(strokeDash=[4, 4], color=soft, aria=False)
        .encode(x=across("gate")),
        flat.mark_rect(opacity=0.25, aria=False).encode(
            x=across("start"), x2="end:Q", y=up("low"), y2="high:Q", color=color
        ),
        dots.mark_rule(strokeWidth=1, color=soft, aria=False).encode(
            x=across("gate"), y=up("low"), y2="high:Q"
        ),
        flat.mark_rule(strokeWidth=2.5, aria=False).encode(
            x=across("start"), x2="end:Q", y=up("level"), color=color
        ),
        dots.mark_point(filled=True, size=46, opacity=1, color=soft).encode(
            x=across("gate"), y=up("ratio"), description=TOOLTIP
        ),
    )
