"""A gate's answer: in the terminal, and the words and rows of it for the page."""

from collections.abc import Iterator
from typing import NamedTuple

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from webdyno.judge.gate_sentences import worse_range
from webdyno.model.command import as_called
from webdyno.model.format import MISSING, percent, significant
from webdyno.model.gate import GateAnswer, GateClaim, GateJudgement
from webdyno.model.judgement import Verdict
from webdyno.model.metrics import metric_rule
from webdyno.report.ci import small_print
from webdyno.report.lines import GAP, INDENT, WIDTH, wrapped

SAID = {
    GateAnswer.PASS: Text("✓ PASS", style="bold green"),
    GateAnswer.FAIL: Text("✗ FAIL", style="bold red"),
    GateAnswer.CANT_TELL: Text("? CAN'T TELL", style="bold yellow"),
    GateAnswer.INVALID: Text("! NO ANSWER", style="bold red"),
}
TONES = {
    GateAnswer.PASS: Verdict.FASTER,
    GateAnswer.FAIL: Verdict.SLOWER,
    GateAnswer.CANT_TELL: Verdict.UNDECIDED,
    GateAnswer.INVALID: Verdict.INVALID,
}
"""The verdict that has the same colour."""
ROOM_FOR_A_TABLE = 96
"""Columns below which the names of metrics would break in the table."""


def print_gate(console: Console, gate: GateJudgement, page: str | None = None) -> None:
    """Print the answer, each claim with its figures, what else is to be known, and the page.

    `page` is where that is, or the command that draws it.
    """
    width = min(console.width, WIDTH)
    answer = SAID[gate.answer]
    head = Table.grid(padding=(0, GAP, 0, 0))
    head.add_column(no_wrap=True)
    head.add_row(answer, wrapped(gate.headline, width - answer.cell_len - GAP))
    parts: list[RenderableType] = [head, Text()]
    if gate.claims:
        parts += [_table(gate) if width >= ROOM_FOR_A_TABLE else _list(gate, width), Text()]
    for note in gate.notes:
        parts += [wrapped(as_called(note), width), Text()]
    parts.append(wrapped(small_print(gate), width, "dim"))
    if page:
        parts += [Text(), Text.assemble(("Report  ", "dim"), (page, "underline"))]
    console.print(Group(*parts), width=width, highlight=False)


class GateRow(NamedTuple):
    """A claim in words."""

    metric: str
    figures: str
    worse: str
    noise: str
    tolerated: str
    answer: str


HEADINGS = ("base → head", "worse by", "noise", "tolerated", "answer")


def rows(gate: GateJudgement) -> dict[str, list[GateRow]]:
    """Give what is claimed, by endpoint."""
    endpoints = dict.fromkeys(claim.endpoint for claim in gate.claims)
    return {endpoint: list(_rows_of(gate, endpoint)) for endpoint in endpoints}


def _rows_of(gate: GateJudgement, endpoint: str) -> Iterator[GateRow]:
    for claim in gate.claims:
        if claim.endpoint == endpoint:
            yield GateRow(
                metric_rule(claim.metric).metric.label,
                _figures(claim),
                worse_range(claim),
                f"±{percent(claim.noise)}" if claim.noise is not None else MISSING,
                percent(claim.tolerance),
                claim.answer,
            )


def _table(gate: GateJudgement) -> Table:
    made = Table(box=None, padding=(0, 1), pad_edge=False)
    made.add_column("")
    for heading in HEADINGS[:-1]:
        made.add_column(heading, justify="right", no_wrap=True)
    made.add_column(HEADINGS[-1], no_wrap=True)
    for endpoint, claims in rows(gate).items():
        made.add_row(Text(endpoint, style="bold"))
        for claim in claims:
            made.add_row(f"  {claim.metric}", *claim[1:])
    return made


def _list(gate: GateJudgement, width: int) -> Group:
    """Give what the table has, two lines a claim."""

    def line(said: str, columns: int) -> Padding:
        return Padding(wrapped(said, width - columns), (0, 0, 0, columns))

    parts: list[RenderableType] = []
    for endpoint, claims in rows(gate).items():
        parts.append(Text(endpoint, style="bold"))
        for claim in claims:
            beside = f"(noise {claim.noise}, tolerated {claim.tolerated})"
            parts.append(line(f"{claim.metric}: {claim.answer}", INDENT))
            parts.append(line(f"{claim.figures}, {claim.worse} {beside}", 2 * INDENT))
    return Group(*parts)


def _figures(claim: GateClaim) -> str:
    if not claim.base or not claim.head:
        return MISSING
    unit = metric_rule(claim.metric).metric.unit.replace("requests", "")
    return f"{significant(claim.base)} → {significant(claim.head)} {unit}"
