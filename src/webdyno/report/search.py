"""A search for better settings as it stands, before fresh blocks have judged it."""

from collections.abc import Iterator, Sequence
from math import log

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from webdyno.model import format as text
from webdyno.model.knob import TunedSide, TuningStep
from webdyno.report.lines import GAP, INDENT, WIDTH, fact_lines, wrapped
from webdyno.report.tuning import settings_toml, side_facts

UNCONFIRMED = (
    "Unconfirmed: no final comparison was run yet. This is what the search saw, and the best of "
    "many noisy values looks better than it is."
)
MOST_STEPS = 12
"""Rounds that are shown of those in which a better setting was found."""
LONGEST_BAR = 30


def print_search(console: Console, sides: Sequence[TunedSide]) -> None:
    """Print what was done for each side and what came of it, its settings as lines to paste."""
    width = min(console.width, WIDTH)
    console.print(Group(*_parts(sides, width)), width=width, highlight=False)


def _parts(sides: Sequence[TunedSide], width: int) -> Iterator[RenderableType]:
    yield wrapped(UNCONFIRMED, width, "bold yellow")
    highest = max((step.gain for side in sides for step in side.steps), default=1.0)
    for side in sides:
        yield Text()
        yield Text(f"How {side.name} was tuned so far", style="bold")
        parts: list[RenderableType] = [fact_lines(side_facts(side), width - INDENT)]
        if steps := _better(side.steps):
            parts += [Text(), Text("Best so far, as a multiple of the default", style="dim")]
            parts.append(_chart(steps, highest))
        if side.settings:
            parts += [Text(), Text("Unconfirmed settings, to paste", style="dim")]
            parts.append(Text(settings_toml(side)))
        yield Padding(Group(*parts), (0, 0, 0, INDENT))
    yield Text()


def _better(steps: Sequence[TuningStep]) -> list[TuningStep]:
    """Keep the rounds after which the best so far was another than before."""
    before, kept = 1.0, []
    for step in steps:
        if step.gain != before:
            kept.append(step)
        before = step.gain
    return kept[-MOST_STEPS:]


def _chart(steps: Sequence[TuningStep], highest: float) -> Table:
    """Draw the best so far against the time used: bars as long as its logarithm."""
    grid = Table.grid(padding=(0, GAP, 0, 0), pad_edge=False)
    grid.add_column(justify="right")
    grid.add_column(justify="right")
    grid.add_column()
    for step in steps:
        share = log(step.gain) / log(highest) if step.gain > 1 else 0.0
        grid.add_row(
            f"after {text.duration(round(step.used_s))}",
            f"{text.number(step.gain, 2)}{text.TIMES}",
            "█" * round(LONGEST_BAR * share),
        )
    return grid
