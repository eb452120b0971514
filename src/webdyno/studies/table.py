"""What became of claims: in the terminal a block for each, as Markdown a table."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from webdyno.model.experiment import OWN_GENERATOR
from webdyno.model.format import MISSING, bounds, estimate, ratio_bounds, times
from webdyno.model.interval import Interval
from webdyno.model.metrics import metric_rule
from webdyno.model.study import Claim, ClaimRow, Outcome, Told

HEADINGS = ("study", "claim", "published", "done right", "as published", "outcome", "why")
STYLES = {
    Outcome.HOLDS: "bold green",
    Outcome.FAILS: "bold red",
    Outcome.UNDECIDED: "bold yellow",
    Outcome.UNTOLD: "bold yellow",
    Outcome.SHOWN: "bold",
}


def claim_blocks(rows: Sequence[ClaimRow]) -> RenderableType:
    """Give a block of lines per claim, under its study's name."""
    parts: list[RenderableType] = []
    for study, claims in groupby(rows, key=lambda row: row.study):
        parts += [Text(study, style="bold underline"), Text()]
        for row in claims:
            parts += [_claim(row), Text()]
    return Group(*parts)


def _claim(row: ClaimRow) -> RenderableType:
    said = [
        (heading, Text(text))
        for heading, text in zip(HEADINGS, _cells(row), strict=True)
        if heading in {"published", "done right", "as published", "why"} and text != MISSING
    ]
    outcome = Text.assemble((str(row.outcome), STYLES[row.outcome]), "  ", row.claim.says)
    table = Table.grid(padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column(style="dim", no_wrap=True)
    for heading, text in said:
        table.add_row(heading, text)
    return Group(outcome, Padding(table, (0, 0, 0, 2)))


def markdown(rows: Sequence[ClaimRow]) -> str:
    """Write the table as Markdown."""
    lines = [HEADINGS, ("---",) * len(HEADINGS), *map(_cells, rows)]
    return "".join(f"| {' | '.join(map(_escaped, line))} |\n" for line in lines)


def _cells(row: ClaimRow) -> tuple[str, ...]:
    """Give a row's texts; what wasn't measured or published is a dash."""
    right = next((told for told in row.told if told.generator == OWN_GENERATOR), None)
    published = next((told for told in row.told if told.generator != OWN_GENERATOR), None)
    return (
        row.study,
        row.claim.says,
        row.claim.published or MISSING,
        " ".join(_measured(row.claim, right)),
        " ".join(_measured(row.claim, published)),
        str(row.outcome),
        row.reason or MISSING,
    )


def _measured(claim: Claim, told: Told | None) -> Iterator[str]:
    if told is None:
        yield MISSING
        return
    if told.generator != OWN_GENERATOR:
        yield f"{told.generator}:"
    if not told.found:
        yield str(told.outcome)
        return
    written = partial(_figure, claim) if claim.is_figure else _ratio
    lowest = min(told.found, key=lambda it: it.estimate)
    highest = max(told.found, key=lambda it: it.estimate)
    yield written(lowest)
    if len(told.found) > 1:
        yield f"to {written(highest)}"


def _ratio(ratio: Interval) -> str:
    return f"{times(ratio)} ({ratio_bounds(ratio)})"


def _figure(claim: Claim, value: Interval) -> str:
    """Write a value of a metric with its unit; times as published, in milliseconds."""
    unit = metric_rule(claim.metric).metric.unit
    if unit == "µs":
        unit = "ms"
        ends = {"low": value.low / 1e3, "estimate": value.estimate / 1e3, "high": value.high / 1e3}
        value = value.model_copy(update=ends)
    return f"{estimate(value)} {unit} ({bounds(value)})"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
