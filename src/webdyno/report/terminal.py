"""The report in the terminal: verdict, evidence, findings, how it was measured."""

from collections.abc import Iterator
from pathlib import Path

from rich import box
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
    still_needed,
    verdict_word,
    weight,
)
from webdyno.report.facts import Facts, how_measured

WIDTH = 100
"""Columns that the report takes at most, on however wide a terminal."""

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
    console.print(
        terminal_report(folder, head, records, judgement),
        width=min(console.width, WIDTH),
        highlight=False,
    )


def terminal_report(
    folder: Path, head: RunHead, records: list[Record], judgement: Judgement
) -> RenderableType:
    """Give the whole report as something rich can print."""
    parts: list[RenderableType] = [
        Text(head.experiment.title, style="bold"),
        Text(head.experiment.question, style="dim"),
        Text(),
        _headline(judgement),
        *(_finding(found, weight(found, judgement)) for found in judgement.findings),
        Text(),
    ]
    metrics = [metric for metric in evidence(head, judgement) if _has_values(metric)]
    if metrics:
        parts += [_table(metrics), *_notes(metrics), Text()]
    parts += [_facts(how_measured(head, records, judgement)), Text(), _folder(folder)]
    return Group(*parts)


def _headline(judgement: Judgement) -> Table:
    sign = f" {SIGNS[judgement.verdict]} {judgement.verdict.upper()} "
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_row(
        Text(sign, style=f"reverse {STYLES[judgement.verdict]}"),
        Text(judgement.headline, style="bold"),
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


def _has_values(metric: MetricEvidence) -> bool:
    return any(row.value and row.value.by_block for row in metric.rows)


def _table(metrics: list[MetricEvidence]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False, expand=False)
    table.add_column("", overflow="fold")
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column(f"interval\n{text.percent(0.95)}", justify="right", no_wrap=True, style="dim")
    table.add_column("ratio", justify="right", no_wrap=True)
    table.add_column(f"interval\n{confidence(metrics)}", justify="right", no_wrap=True, style="dim")
    table.add_column("verdict", no_wrap=True)
    for metric in metrics:
        table.add_row(Text(metric.title, style="bold" if metric.decides else "italic"))
        for row in metric.rows:
            table.add_row(*_cells(row, decides=metric.decides))
            if row is metric.rows[-1] and metric is not metrics[-1]:
                table.add_row()
    return table


def _cells(row: Row, *, decides: bool) -> Iterator[Text]:
    yield Text(f"  {row.arm}")
    interval = row.value.interval if row.value else None
    if interval:
        yield Text(text.estimate(interval))
        yield Text(text.bounds(interval))
    else:
        yield Text(text.only(row.value))
        yield Text()
    found = row.comparison
    if found is None:
        return
    yield Text(text.ratio(found.ratio) if found.ratio else text.MISSING)
    yield Text(text.ratio_bounds(found.ratio) if found.ratio else "")
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
