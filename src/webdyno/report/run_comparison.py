"""What changed between two runs, in the terminal."""

from collections.abc import Iterator, Sequence

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from webdyno.model import format as text
from webdyno.model.judgement import Verdict
from webdyno.model.metrics import metric_rule
from webdyno.model.run import RunHead
from webdyno.model.several_runs import (
    Change,
    Difference,
    PointComparison,
    SweepComparison,
)
from webdyno.report.lines import GAP, INDENT, WIDTH
from webdyno.report.terminal import STYLES, answer_lines
from webdyno.report.view import ArmAnswer
from webdyno.report.words import SIGNS, metric_title, side_word


def print_comparison(console: Console, head: RunHead, compared: SweepComparison) -> None:
    """Print what changed; `head` is that of the later run."""
    width = min(console.width, WIDTH)
    decide_on = head.experiment.measure.decide_on
    parts: list[RenderableType] = [
        Text(head.experiment.title, style="bold"),
        Text("What changed from the first run to the second", style="dim"),
    ]
    several = len(compared.points) > 1
    for at in compared.points:
        parts += [Text(), *_point(at, decide_on, width, only_deciding=several)]
    if not compared.points:
        told = "The runs have no point in common: there is nothing to compare."
        parts += [Text(), answer_lines([ArmAnswer(Verdict.INVALID, told)], width)]
    if compared.left_out:
        count = text.count(len(compared.left_out), "point")
        parts += [Text(), Text(f"{count} left out, which only one of the runs has.", style="dim")]
    if compared.points:
        differences = compared.points[0].comparison.differences
        parts += [Text(), *_differences(differences)]
    console.print(Group(*parts), width=width, highlight=False)


def _point(
    at: PointComparison, decide_on: str, width: int, *, only_deciding: bool
) -> Iterator[RenderableType]:
    if at.levels:
        yield Text(text.levels_text(at.levels), style="bold")
    found = at.comparison
    sentences = found.headline if found.mismatches else found.headline.replace("; ", "\n")
    yield answer_lines([ArmAnswer(found.verdict, sentences)], width)
    if not found.mismatches:
        yield Text()
        shown = [c for c in found.changes if c.metric == decide_on or not only_deciding]
        yield _changes(shown, decide_on)


def _changes(changes: Sequence[Change], decide_on: str) -> Padding:
    """Give one table for all metrics, each under a heading, the deciding one first."""
    table = Table.grid(padding=(0, GAP, 0, 0), pad_edge=False)
    for justify in ("left", "right", "right", "left"):
        table.add_column(justify=justify, overflow="fold")
    heads = ["", "after ÷ before", f"{_confidence(changes)} interval", "verdict"]
    table.add_row(*(Text(head, style="dim") for head in heads))
    metrics = dict.fromkeys(change.metric for change in changes)
    for name in sorted(metrics, key=lambda name: name != decide_on):
        decides = name == decide_on
        table.add_row(
            Text(metric_title(metric_rule(name).metric), style="bold" if decides else "italic")
        )
        for change in changes:
            if change.metric == name and change.change:
                table.add_row(*_cells(change, decides=decides))
    return Padding(table, (0, 0, 0, INDENT))


def _cells(change: Change, *, decides: bool) -> Iterator[Text]:
    assert change.change is not None  # noqa: S101 (asked for by the caller)
    yield Text(f"  {change.subject}")
    yield Text(text.times(change.change))
    yield Text(text.ratio_bounds(change.change), style="dim")
    asked = decides and change.of == "arm"
    word = str(change.verdict) if asked else side_word(change)
    yield Text(f"{SIGNS[change.verdict]} {word}", style=STYLES[change.verdict])


def _confidence(changes: Sequence[Change]) -> str:
    levels = [change.change.confidence for change in changes if change.change]
    return text.confidence_level(levels[0] if levels else 0.95)


def _differences(differences: Sequence[Difference]) -> Iterator[RenderableType]:
    if not differences:
        yield Text("Machine, versions and settings of measuring are the same.", style="dim")
        return
    yield Text("What else differs, and may be the cause", style="bold")
    table = Table.grid(padding=(0, GAP, 0, 0), pad_edge=False)
    for _ in range(3):
        table.add_column(overflow="fold")
    table.add_row(*(Text(head, style="dim") for head in ("", "before", "after")))
    for difference in differences:
        table.add_row(*map(Text, (difference.what, difference.before, difference.after)))
    yield Padding(table, (0, 0, 0, INDENT))
