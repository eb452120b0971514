"""A baseline: figures of an earlier gate, kept as a file, beside those of today's: never judged.

Two runs have no blocks in common, so that nothing in them takes out what changed between the days.
A gate's answer rests on ratios within one run only.
"""

from datetime import datetime
from typing import Literal

from webdyno.judge.differences import machine_differences
from webdyno.model.base import Model
from webdyno.model.gate import GateJudgement
from webdyno.model.machine import Machine
from webdyno.model.metrics import metric_rule


class BaselineFigure(Model):
    """One metric of one endpoint."""

    endpoint: str
    metric: str
    value: float


class Baseline(Model):
    """The file."""

    format: Literal[1] = 1
    revision: str
    measured_at: datetime
    machine: Machine
    figures: list[BaselineFigure]


def baseline_of(gate: GateJudgement, measured_at: datetime) -> Baseline | None:
    """Make the baseline of what was found of head; None where nothing was measured."""
    figures = [
        BaselineFigure(endpoint=claim.endpoint, metric=claim.metric, value=claim.head)
        for claim in gate.claims
        if claim.head is not None
    ]
    if gate.machine is None or not figures:
        return None
    return Baseline(
        revision=gate.head, measured_at=measured_at, machine=gate.machine, figures=figures
    )


def since_baseline(before: Baseline, gate: GateJudgement) -> list[str]:
    """Say how head's figures compare with the baseline's, or why that would mean nothing."""
    name = f"the baseline ({before.revision}, {before.measured_at:%Y-%m-%d})"
    if gate.machine is None:
        return []
    if differing := machine_differences(before.machine, gate.machine):
        told = "; ".join(
            f"{it.what.removeprefix('machine.')} was {it.before}, is {it.after}" for it in differing
        )
        said = f"{name} was measured on another machine ({told})"
        return [f"{said}: only ratios within one run count, so that it is left aside"]
    known = {(it.endpoint, it.metric): it.value for it in before.figures}
    changes = [
        f"{claim.endpoint} {metric_rule(claim.metric).metric.label} "
        f"{claim.head / known[claim.endpoint, claim.metric] - 1:+.1%}".replace("-", "−")
        for claim in gate.claims
        if claim.head is not None and known.get((claim.endpoint, claim.metric))
    ]
    if not changes:
        return [f"{name} has no endpoint in common with this gate"]
    return [f"since {name}, on this machine, beside the answer: {', '.join(changes)}"]
