"""A sweep in the terminal: what is where, one table of all points, findings put together."""

from collections.abc import Iterator
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from webdyno.model.judgement import Verdict
from webdyno.model.point import SweepJudgement
from webdyno.model.records import Record
from webdyno.model.run import RunHead
from webdyno.report import text
from webdyno.report.evidence import SIGNS, confidence, metric_title
from webdyno.report.facts import how_measured
from webdyno.report.sweep.evidence import (
    GroupedFinding,
    SweepEvidence,
    factor_facts,
    grouped_findings,
    sweep_evidence,
    verdict_counts,
)
from webdyno.report.terminal import (
    GAP,
    INDENT,
    STYLES,
    WIDTH,
    evidence_cells,
    facts_table,
    where_report_is,
)


def print_sweep(
    console: Console, folder: Path, head: RunHead, records: list[Record], sweep: SweepJudgement
) -> None:
    """Print the report; rich leaves colours out where the output is no terminal."""
    width = min(console.width, WIDTH)
    blocks = sum(at.judgement.blocks for at in sweep.points)
    parts: list[RenderableType] = [
        Text(head.experiment.title, style="bold"),
        Text(head.experiment.question, style="dim"),
        Text(),
        _counts(verdict_counts(head, sweep)),
        *(Text(sentence, style="bold") for sentence in sweep.sentences),
        Text(),
    ]
    found = sweep_evidence(head, sweep)
    if found:
        parts += [Text(metric_title(found.metric), style="bold"), _table(found, width), Text()]
    for finding in grouped_findings(sweep):
        parts += [_finding(finding), Text()]
    parts += [facts_table([*factor_facts(head), *how_measured(head, records, blocks)]), Text()]
    parts.append(where_report_is(folder))
    console.print(Group(*parts), width=width, highlight=False)


def _counts(counts: dict[Verdict, int]) -> Text:
    return Text("  ").join(
        Text(f" {SIGNS[verdict]} {count} {verdict} ", style=f"reverse {STYLES[verdict]}")
        for verdict, count in counts.items()
    )


def _table(found: SweepEvidence, width: int) -> Padding:
    """Give the table, without the values' own intervals where they don't fit."""
    heads = [*found.factors, "", "value", f"{text.percent(0.95)} interval", "ratio"]
    heads += [f"{confidence(found.by_metric)} interval", "verdict"]
    rows = [[Text(head, style="dim") for head in heads], *_rows(found)]
    interval = len(found.factors) + 2
    needed = sum(max(cell.cell_len for cell in column) + GAP for column in zip(*rows, strict=True))
    if INDENT + needed - GAP > width:
        for row in rows:
            del row[interval]
    table = Table.grid(padding=(0, GAP, 0, 0), pad_edge=False)
    for column in range(len(rows[0])):
        figures = len(found.factors) < column < len(rows[0]) - 1
        table.add_column(justify="right" if figures else "left", overflow="fold")
    for row in rows:
        table.add_row(*row)
    return Padding(table, (0, 0, 0, INDENT))


def _rows(found: SweepEvidence) -> Iterator[list[Text]]:
    for point in found.points:
        levels = [Text(level) for level in point.levels]
        for row in point.rows:
            yield [*levels, *evidence_cells(row, decides=True)]
            levels = [Text() for _ in point.levels]


def _finding(group: GroupedFinding) -> Padding:
    spoils = group.severity == "invalid"
    style = STYLES[Verdict.INVALID if spoils else Verdict.UNDECIDED]
    return Padding(
        Group(
            Text.assemble((group.first.rule, style), (f"  {group.means}", "dim")),
            *_lines(group),
            Text.assemble(("→ ", "dim"), group.first.remedy),
        ),
        (0, 0, 0, INDENT),
    )


def _lines(group: GroupedFinding) -> Iterator[Text]:
    for place in group.where:
        yield Text(place)
    yield Text.assemble(("for example ", "dim"), group.first.what)
