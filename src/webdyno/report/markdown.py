"""A run's summary as Markdown: for a pull request, a chat, a wiki."""

import re
from collections.abc import Iterator, Sequence

from webdyno.model.text import printable
from webdyno.report import bias
from webdyno.report.view import MetricTable, RunView, confidence
from webdyno.report.words import SIGNS, ratio_and_interval, side_word, value_and_interval

MARKUP = re.compile(r"([\\`*_{}\[\]<>#|~@])")
MOST_BESIDE = 4
"""Metrics beside the deciding one; the report has all."""


def unmarked(text: str) -> str:
    """Keep text from being read as markup or as a mention of somebody."""
    return MARKUP.sub(r"\\\1", printable(text).replace("\n", " "))


def summary(view: RunView) -> str:
    """Give the question, the answer, the figures it rests on, and what speaks against it."""
    experiment = view.head.experiment
    lines = [f"### {unmarked(experiment.title)}", "", unmarked(experiment.question), ""]
    if view.gate:
        lines += [f"**{view.gate.answer}**: {unmarked(view.gate.headline)}", ""]
    for answer in view.answers:
        said = f"{SIGNS[answer.verdict]} {answer.verdict}"
        lines += [f"**{said}**: {unmarked(answer.sentence)}", ""]
    lines += [f"- {unmarked(sentence)}" for sentence in view.sentences]
    lines += [""] * bool(view.sentences)
    for point in view.points:
        if point.deciding is None:
            continue
        if view.several:
            lines += [f"**{unmarked(point.label)}**", ""]
        beside = [] if view.several else point.beside[:MOST_BESIDE]
        for table in (point.deciding, *beside):
            lines += [*_table(table, decides=table is point.deciding), ""]
    lines += [f"- **{unmarked(it.rule)}**: {unmarked(' '.join(it.told))}" for it in view.findings]
    lines += [""] * bool(view.findings)
    lines += [f"{unmarked(term)}: {unmarked(said)}  " for term, said in view.how]
    return "\n".join(lines).rstrip() + "\n"


def _table(table: MetricTable, *, decides: bool) -> Iterator[str]:
    heads = [*(["place"] * table.placed), table.title, "value", "95 % interval", "ratio"]
    heads += [f"{confidence([table])} interval", "verdict" if decides else ""]
    yield _row(heads)
    yield _row(["---"] * len(heads))
    for row in table.rows:
        value, around = value_and_interval(row.value)
        cells = [*([row.place] * table.placed), row.arm, value, around]
        if row.comparison is None:
            yield _row([*cells, "", "", ""])
            continue
        ratio, interval = ratio_and_interval(row.comparison)
        if wide := bias.beside(row.comparison):
            interval = f"{interval} (all bounds {wide})"
        word = str(row.comparison.verdict) if decides else side_word(row.comparison)
        yield _row([*cells, ratio, interval, word])


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(unmarked, cells))} |"
