"""A history of gates: what changed and when, in the terminal and as a page with its curves."""

from collections.abc import Iterator, Sequence
from importlib.metadata import version
from itertools import pairwise

from webdyno.judge.differences import machine_differences
from webdyno.judge.history import FEWEST, FEWEST_IN_ALL
from webdyno.model import format as text
from webdyno.model.command import command
from webdyno.model.history import Curve, PastGate
from webdyno.model.judgement import Verdict
from webdyno.model.metrics import METRICS
from webdyno.report import document as doc
from webdyno.report.history_charts import change_tone, history_figures
from webdyno.report.page import html
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


def history_document(history: Sequence[PastGate], curves: Sequence[Curve]) -> doc.Document:
    """Say where the curves of a history changed, and what each stays at."""
    return _document(history, [*_answer(history, curves)])


def history_page(history: Sequence[PastGate], curves: Sequence[Curve], again: str) -> str:
    """Give the page; `again` is the command that writes it another time."""
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
    endpoints = dict.fromkeys(curve.endpoint for curve in curves)
    yield doc.Table(
        columns=[doc.Column(name, kind, obvious=kind == "name") for name, kind in COLUMNS.items()],
        groups=[
            doc.RowGroup(
                [
                    row
                    for curve in curves
                    if curve.endpoint == endpoint
                    for row in _rows(history, curve)
                ],
                endpoint,
            )
            for endpoint in endpoints
        ],
        style="listed",
    )
    yield from (doc.Paragraph(said) for said in dict.fromkeys(_beside(history, curves)))


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


def _beside(history: Sequence[PastGate], curves: Sequence[Curve]) -> Iterator[str]:
    """Say of each change what else changed with it, and how to find the commit."""
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
    """Give the command that finds the commit; none where gates weren't of plain commits."""
    names = (earlier.commit, later.commit)
    if earlier.commit == later.commit or not all(name.isalnum() for name in names):
        return ""
    flag = "--path" if endpoint.startswith("/") else "--endpoint"
    return command("gate", "--bisect", "..".join(names), flag, endpoint)
