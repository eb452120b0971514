"""The report in the terminal: verdict, evidence, findings, how it was measured."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from webdyno.model.judgement import Finding, Judgement, Verdict
from webdyno.model.records import Record
from webdyno.model.run import RunHead
from webdyno.report import text
from webdyno.report.evidence import (
    SIGNS,
    MetricEvidence,
    Row,
    confidence,
    evidence,
    headline_sentences,
    still_needed,
    verdict_word,
    weight,
)
from webdyno.report.facts import Facts, how_measured

WIDTH = 100
"""Columns that the report takes at most, on however wide a terminal."""

INDENT = 2
GAP = 2
MIN_ARM = 12

STYLES = {
    Verdict.FASTER: "bold green",
    Verdict.SLOWER: "bold red",
    Verdict.EQUIVALENT: "bold cyan",
    Verdict.UNDECIDED: "bold yellow",
    Verdict.INVALID: "bold red",
}


def print_report(
    console: Console, folder: Path, head: RunHead, records: list[Record], judgement: Judgement
) -> None:
    """Print the report; rich leaves colours out where the output is no terminal."""
    width = min(console.width, WIDTH)
    report = terminal_report(folder, head, records, judgement, width)
    console.print(report, width=width, highlight=False)


def terminal_report(
    folder: Path, head: RunHead, records: list[Record], judgement: Judgement, width: int
) -> RenderableType:
    """Give the whole report as something rich can print."""
    parts: list[RenderableType] = [
        Text(head.experiment.title, style="bold"),
        Text(head.experiment.question, style="dim"),
        Text(),
        verdict_line(judgement.verdict, headline_sentences(judgement)),
        *(_finding(found, weight(found, judgement)) for found in judgement.findings),
        Text(),
    ]
    metrics = evidence(head, judgement)
    if metrics:
        parts += [*_tables(metrics, width), Text(), *_notes(metrics), Text()]
    parts += [_facts(how_measured(head, records, judgement)), Text(), _folder(folder)]
    return Group(*parts)


def verdict_line(verdict: Verdict, sentences: Sequence[str]) -> Table:
    """Give the verdict as a badge with what is to be said beside it."""
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_row(
        Text(f" {SIGNS[verdict]} {verdict.upper()} ", style=f"reverse {STYLES[verdict]}"),
        Text("\n".join(sentences), style="bold"),
    )
    return table


def _finding(found: Finding, means: str) -> Padding:
    style = STYLES[Verdict.INVALID if found.severity == "invalid" else Verdict.UNDECIDED]
    return Padding(
        Group(
            Text.assemble((found.rule, style), (f"  {means}", "dim")),
            Text(found.what),
            Text.assemble(("→ ", "dim"), found.remedy),
        ),
        (1, 0, 0, 2),
    )


def _tables(metrics: list[MetricEvidence], width: int) -> Iterator[RenderableType]:
    """Give a heading and a table for each metric, all with the same columns."""
    heads = [
        "",
        "value",
        f"{text.percent(0.95)} interval",
        "ratio",
        f"{confidence(metrics)} interval",
        "verdict",
    ]
    lines = [[list(_cells(row, decides=it.decides)) for row in it.rows] for it in metrics]
    columns = zip(
        [Text(head) for head in heads], *(line for each in lines for line in each), strict=True
    )
    arm, *figures = (max(cell.cell_len for cell in column) for column in columns)
    arm = max(min(arm, width - INDENT - sum(figures) - GAP * len(figures)), MIN_ARM)
    widths = [arm, *figures]
    yield _lined_up([[Text(head, style="dim") for head in heads]], widths)
    for it, rows in zip(metrics, lines, strict=True):
        yield Text(it.title, style="bold" if it.decides else "italic")
        yield _lined_up(rows, widths)


def _lined_up(rows: list[list[Text]], widths: list[int]) -> Padding:
    table = Table.grid(padding=(0, GAP, 0, 0), pad_edge=False)
    for column, width in enumerate(widths):
        right = 0 < column < len(widths) - 1
        table.add_column(width=width, justify="right" if right else "left", overflow="fold")
    for row in rows:
        table.add_row(*row)
    return Padding(table, (0, 0, 0, INDENT))


def _cells(row: Row, *, decides: bool) -> Iterator[Text]:
    yield Text(row.arm)
    interval = row.value.interval if row.value else None
    yield Text(text.estimate(interval) if interval else text.only(row.value))
    yield Text(text.bounds(interval) if interval else "", style="dim")
    found = row.comparison
    if found is None:
        yield from (Text(), Text(), Text())
        return
    yield Text(text.ratio(found.ratio) if found.ratio else text.MISSING)
    yield Text(text.ratio_bounds(found.ratio) if found.ratio else "", style="dim")
    word = verdict_word(found.verdict, decides=decides)
    yield Text(f"{SIGNS[found.verdict]} {word}", style=STYLES[found.verdict])


def _notes(metrics: list[MetricEvidence]) -> Iterator[Text]:
    """Say what the deciding verdicts rest on, and what the undecided ones lack."""
    for metric in metrics:
        for row in metric.rows:
            if row.comparison is None or not metric.decides:
                continue
            needed = still_needed(row.comparison)
            yield Text.assemble(
                (f"{row.comparison.a} against {row.comparison.b}: ", "bold"),
                row.comparison.why,
                f" Still needed: {needed}." if needed else "",
            )


def _facts(facts: Facts) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    for term, said in facts:
        table.add_row(term, said)
    return table


def _folder(folder: Path) -> Text:
    return Text.assemble(("Report  ", "dim"), (str(folder / "report.html"), "underline"))
