"""Points of one experiment that were measured on several machines: in the terminal."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from webdyno.judge.sweep import points_together
from webdyno.model import format as text
from webdyno.model.experiment import Experiment
from webdyno.model.metrics import metric_rule
from webdyno.model.point import PointJudgement
from webdyno.report.lines import GAP, INDENT, WIDTH, wrapped
from webdyno.report.terminal import STYLES, badges
from webdyno.report.words import SIGNS, metric_title

NOT_COMPARED = (
    "Each point was measured whole on one machine, and arms are compared at each point by itself. "
    "Points of different machines aren't compared: what differs between them may be the machines. "
    "Whether a ratio holds on other machines is told by --replicates."
)


class MachinePoint(NamedTuple):
    """What the machine says on which a point was measured."""

    machine: str
    run: Path
    """Its folder, in that of all of them."""
    at: PointJudgement


def print_spread(
    console: Console, experiment: Experiment, judged: Sequence[MachinePoint], points: int
) -> None:
    """Print each point with its machine; of so many `points` some may be missing."""
    width = min(console.width, WIDTH)
    console.print(Group(*_parts(experiment, judged, points, width)), width=width, highlight=False)


def _parts(
    experiment: Experiment, judged: Sequence[MachinePoint], points: int, width: int
) -> Iterator[RenderableType]:
    machines = text.count(len({it.machine for it in judged}), "machine")
    measured = [it.at for it in judged]
    yield Text(experiment.title, style="bold")
    yield Text(experiment.question, style="dim")
    yield Text()
    yield badges(Counter(it.judgement.verdict for it in measured))
    yield from (wrapped(it, width, "bold") for it in points_together(experiment, measured))
    yield Text()
    yield Text(metric_title(metric_rule(experiment.measure.decide_on).metric), style="bold")
    yield Padding(_table(experiment, judged), (0, 0, 0, INDENT))
    yield Text()
    yield Text(f"{len(judged)} of {text.count(points, 'point')}, on {machines}", style="bold")
    yield wrapped(NOT_COMPARED, width, "dim")


def _table(experiment: Experiment, judged: Sequence[MachinePoint]) -> Table:
    factors = list(text.factor_names(experiment.factors).values())
    table = Table.grid(padding=(0, GAP, 0, 0), pad_edge=False)
    for justify in (*("left" for _ in factors), "left", "right", "right", "left", "left"):
        table.add_column(justify=justify, overflow="fold")  # type: ignore[arg-type]
    heads = (*factors, "", "ratio", "interval", "verdict", "machine and run")
    table.add_row(*(Text(it, style="dim") for it in heads))
    for it in judged:
        beginning = [text.level(level) for level in it.at.point.levels.values()]
        end = str(it.run)
        for found in it.at.judgement.comparisons:
            if found.metric == experiment.measure.decide_on:
                sure = found.sure
                ratio = (text.times(sure), text.ratio_bounds(sure)) if sure else (text.MISSING, "")
                style = STYLES[found.verdict]
                verdict = Text(f"{SIGNS[found.verdict]} {found.verdict}", style=style)
                table.add_row(*beginning, f"{found.a} ÷ {found.b}", *ratio, verdict, end)
                beginning, end = [""] * len(factors), ""
    return table
