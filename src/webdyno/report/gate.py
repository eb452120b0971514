"""A gate's answer in the terminal."""

from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from webdyno.judge.gate_sentences import worse_range
from webdyno.model.format import MISSING, percent, significant
from webdyno.model.gate import GateAnswer, GateClaim, GateJudgement
from webdyno.model.metrics import metric_rule
from webdyno.report.ci import small_print

SAID = {
    GateAnswer.PASS: Text("✓ PASS", style="bold green"),
    GateAnswer.FAIL: Text("✗ FAIL", style="bold red"),
    GateAnswer.CANT_TELL: Text("? CAN'T TELL", style="bold yellow"),
    GateAnswer.INVALID: Text("! NO ANSWER", style="bold red"),
}


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


def _table(gate: GateJudgement) -> Table:
    made = Table(box=None, padding=(0, 1), pad_edge=False)
    made.add_column("")
    for heading in ("base → head", "worse by", "noise", "tolerated"):
        made.add_column(heading, justify="right", no_wrap=True)
    made.add_column("answer", no_wrap=True)
    for endpoint in dict.fromkeys(claim.endpoint for claim in gate.claims):
        made.add_row(Text(endpoint, style="bold"))
        for claim in (it for it in gate.claims if it.endpoint == endpoint):
            made.add_row(
                f"  {metric_rule(claim.metric).metric.label}",
                _figures(claim),
                worse_range(claim),
                f"±{percent(claim.noise)}" if claim.noise is not None else MISSING,
                percent(claim.tolerance),
                claim.answer,
            )
    return made


def _figures(claim: GateClaim) -> str:
    if not claim.base or not claim.head:
        return MISSING
    unit = metric_rule(claim.metric).metric.unit.replace("requests", "")
    return f"{significant(claim.base)} → {significant(claim.head)} {unit}"
