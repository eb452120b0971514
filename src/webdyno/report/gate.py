"""A gate's answer: in the terminal, and the words and rows of it for the page."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table
from rich.text import Text

from webdyno.judge.gate_sentences import worse_range
from webdyno.model.format import MISSING, percent, significant
from webdyno.model.gate import GateAnswer, GateClaim, GateJudgement
from webdyno.model.judgement import Verdict
from webdyno.model.metrics import metric_rule
from webdyno.report.ci import small_print

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


def print_gate(console: Console, gate: GateJudgement, page: Path | None = None) -> None:
    """Print the answer, each claim with its figures, what else is to be known, and the page."""
    console.print(Text.assemble(SAID[gate.answer], "  ", gate.headline))
    if gate.claims:
        console.print()
        console.print(_table(gate))
    for note in gate.notes:
        console.print(f"\n{note}")
    console.print(f"\n{small_print(gate)}")
    if page:
        console.print(f"Report: {page}", soft_wrap=True)


class ClaimRow(NamedTuple):
    """A claim in words."""

    metric: str
    figures: str
    worse: str
    noise: str
    tolerated: str
    answer: str


HEADINGS = ("base → head", "worse by", "noise", "tolerated", "answer")


def rows(gate: GateJudgement) -> dict[str, list[ClaimRow]]:
    """Give what is claimed, by endpoint."""
    endpoints = dict.fromkeys(claim.endpoint for claim in gate.claims)
    return {endpoint: list(_rows_of(gate, endpoint)) for endpoint in endpoints}


def _rows_of(gate: GateJudgement, endpoint: str) -> Iterator[ClaimRow]:
    for claim in gate.claims:
        if claim.endpoint == endpoint:
            yield ClaimRow(
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


def _figures(claim: GateClaim) -> str:
    if not claim.base or not claim.head:
        return MISSING
    unit = metric_rule(claim.metric).metric.unit.replace("requests", "")
    return f"{significant(claim.base)} → {significant(claim.head)} {unit}"
