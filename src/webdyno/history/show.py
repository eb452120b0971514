"""A history of gates: what changed and when, in the terminal and as a page with its curves."""

from collections.abc import Iterator, Sequence
from importlib.metadata import version
from itertools import pairwise

import altair as alt

from webdyno.core import format as text
from webdyno.core.judgement import Verdict
from webdyno.core.metrics import METRICS
from webdyno.core.registry import command
from webdyno.evidence.differences import machine_differences
from webdyno.history import FEWEST, FEWEST_IN_ALL, Curve, PastGate, Plateau
from webdyno.media import document as doc
from webdyno.media.document import Figure, Panel
from webdyno.media.drawing import TOOLTIP, Layers, Rows, css_variable, panel, values
from webdyno.media.page import html
from webdyno.report.ratio_charts import FACTOR, TONES
from webdyno.report.words import SIGNS, metric_label, ratio_cells, verdict_cell

HOW_TO_READ = (
    "Each gate compared head with the same baseline, in rounds of its own: ratios of different "
    "days and machines can be compared, values can't. Levels are fitted by least squares (PELT). "
    "A history without any change shows one in at most 5% of cases. A change shows after "
    f"{text.count(FEWEST, 'gate')}; its place can be off by a gate or two where it is small."
)
COLUMNS: dict[str, doc.Kind] = {
    "metric": "name",
    "since": "words",
    "gates": "value",
    "ratio": "ratio",
    "95% CI": "range",
    "change": "verdict",
}
PANEL_PX = 220
MOST_DRAWN = 20
"""Endpoints: each takes a second to draw."""
HALF_A_GATE = 0.5
"""By which a level reaches beyond its first and last mark."""


def history_document(history: Sequence[PastGate], curves: Sequence[Curve]) -> doc.Document:
    """Return where the curves of a history changed, and what each stays at."""
    return _document(history, [*_answer(history, curves)])


def history_page(history: Sequence[PastGate], curves: Sequence[Curve], again: str) -> str:
    """Return the page; `again` is the command that writes it another time."""
    blocks: list[doc.Block] = [
        *_answer(history, curves),
        doc.Section("Gate after gate", history_figures(history, curves)),
        doc.Section("How to read it", [doc.Paragraph(HOW_TO_READ)]),
        doc.Section("How to repeat it", [doc.Code(again)]),
    ]
    return html(_document(history, blocks), brand="webdyno report", version=version("webdyno"))


def _document(history: Sequence[PastGate], blocks: Sequence[doc.Block]) -> doc.Document:
    first, last = history[0], history[-1]
    about = (
        f"{text.count(len(history), 'gate')} from {first.measured_at:%Y-%m-%d} to "
        f"{last.measured_at:%Y-%m-%d}, each ÷ {first.reference} (baseline)"
    )
    return doc.Document("History", about, blocks)


def _answer(history: Sequence[PastGate], curves: Sequence[Curve]) -> Iterator[doc.Block]:
    yield doc.Headlines([_headline(history, curves)])
    rows: dict[str, list[list[doc.Cell | str]]] = {}
    for curve in curves:
        rows.setdefault(curve.endpoint, []).extend(_rows(history, curve))
    yield doc.Table(
        columns=[doc.Column(name, kind, obvious=kind == "name") for name, kind in COLUMNS.items()],
        groups=[doc.RowGroup(of_endpoint, endpoint) for endpoint, of_endpoint in rows.items()],
        style="listed",
    )
    yield from (doc.Paragraph(said) for said in dict.fromkeys(_remarks(history, curves)))


def _headline(history: Sequence[PastGate], curves: Sequence[Curve]) -> doc.Headline:
    changed = [(curve, level) for curve in curves for level in curve.levels if level.change]
    if not changed:
        if len(history) < FEWEST_IN_ALL:
            said = f"a change shows from {text.count(FEWEST_IN_ALL, 'gate')} on"
            words = f"{SIGNS[Verdict.INCOMPLETE]} {text.count(len(history), 'gate').upper()}"
            return doc.Headline(Verdict.INCOMPLETE, words, said)
        words = f"{SIGNS[Verdict.EQUIVALENT]} NO CHANGE"
        return doc.Headline(Verdict.EQUIVALENT, words, f"in {text.count(len(history), 'gate')}")
    curve, level = max(changed, key=lambda change: change[1].gates[0])
    tone = change_tone(curve, level)
    assert level.change is not None  # noqa: S101 (chosen above)
    since = _since(history[level.gates[0]])
    label = METRICS[curve.metric].metric.label
    words = f"{SIGNS[tone]} {text.count(len(changed), 'change').upper()}"
    said = f"{curve.endpoint} {label} {text.times(level.change)} since {since}"
    return doc.Headline(tone, words, said if len(changed) == 1 else f"the last: {said}")


def _rows(history: Sequence[PastGate], curve: Curve) -> Iterator[list[doc.Cell | str]]:
    for number, level in enumerate(curve.levels):
        tone = change_tone(curve, level)
        word = "better" if tone is Verdict.FASTER else "worse"
        change = f"{word}, {text.times(level.change)}" if level.change else ""
        yield [
            "" if number else metric_label(METRICS[curve.metric].metric),
            _since(history[level.gates[0]]),
            text.number(len(level.gates)),
            *ratio_cells(level.ratio),
            verdict_cell(tone, change) if change else "",
        ]


def _since(gate: PastGate) -> str:
    return f"{gate.measured_at:%Y-%m-%d} ({gate.commit})"


def _remarks(history: Sequence[PastGate], curves: Sequence[Curve]) -> Iterator[str]:
    """Describe of each change what else changed with it, and how to find the commit."""
    for curve in curves:
        for before, level in pairwise(curve.levels):
            earlier, later = history[before.gates[-1]], history[level.gates[0]]
            label = METRICS[curve.metric].metric.label
            if differing := machine_differences(earlier.machine, later.machine):
                names = text.listed(change.what.removeprefix("machine.") for change in differing)
                yield f"{curve.endpoint} {label}: the machine changed with it ({names})."
            elif change_tone(curve, level) is Verdict.SLOWER and (
                said := _bisection(earlier, later, curve.endpoint)
            ):
                yield f"{curve.endpoint}: find the commit by `{said}`."


def _bisection(earlier: PastGate, later: PastGate, endpoint: str) -> str:
    """Return the command that finds the commit; none where gates weren't of plain commits."""
    names = (earlier.commit, later.commit)
    if earlier.commit == later.commit or not all(name.isalnum() for name in names):
        return ""
    flag = "--path" if endpoint.startswith("/") else "--endpoint"
    return command("gate", "--bisect", "..".join(names), flag, endpoint)


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
            panels=tuple(_panels(f"history-{number}", history, endpoint, curves)),
            by_variant=False,
        )
        for number, endpoint in enumerate(endpoints)
    ]


def _panels(
    name: str, history: Sequence[PastGate], endpoint: str, curves: Sequence[Curve]
) -> Iterator[Panel]:
    here = [curve for curve in curves if curve.endpoint == endpoint]
    for curve in here:
        yield _panel(f"{name}-{curve.metric}", history, curve, is_half=len(here) > 1)


def gate_rows(history: Sequence[PastGate], curve: Curve) -> Rows:
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
    """Return the verdict in whose colors a level is drawn, by its change."""
    if level.change is None:
        return Verdict.EQUIVALENT
    risen = level.change.estimate > 1
    better = risen is (METRICS[curve.metric].metric.better == "higher")
    return Verdict.FASTER if better else Verdict.SLOWER


def _panel(name: str, history: Sequence[PastGate], curve: Curve, *, is_half: bool) -> Panel:
    label = metric_label(METRICS[curve.metric].metric)
    machines = [(gate.machine.identity, gate.machine.cpu_model) for gate in history]
    moves = [
        {"gate": number - HALF_A_GATE}
        for number, (before, after) in enumerate(pairwise(machines), 2)
        if before != after
    ]
    said = "; ".join(
        f"gates {level.gates[0] + 1} to {level.gates[-1] + 1}: {text.times(level.ratio)}"
        for level in curve.levels
    )
    return panel(
        name,
        f"{curve.endpoint}, {label}, ratio to the baseline. {said}.",
        _chart(gate_rows(history, curve), level_rows(curve), moves),
        heading=label,
        height=PANEL_PX,
        is_half=is_half,
    )


def _chart(gates: Rows, levels: Rows, moves: Rows) -> Layers:
    def across(field: str) -> alt.X:
        axis = alt.Axis(grid=False, format="d", tickMinStep=1)
        return alt.X(f"{field}:Q", title="Gate", axis=axis).scale(nice=False, zero=False)

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
