"""The table of claims: in the terminal, and as Markdown."""

from collections.abc import Sequence

from rich.table import Table

from webdyno.model.experiment import GeneratorName
from webdyno.model.judgement import Interval
from webdyno.model.study import ClaimRow, Told

HEADINGS = ("study", "claim", "published", "done right", "as published", "outcome", "why")


def rich_table(rows: Sequence[ClaimRow]) -> Table:
    """Make the table for the terminal."""
    table = Table(pad_edge=False, header_style="bold", show_lines=True)
    for heading in HEADINGS:
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*cells(row))
    return table


def markdown(rows: Sequence[ClaimRow]) -> str:
    """Write the table as Markdown."""
    lines = [HEADINGS, ("---",) * len(HEADINGS), *map(cells, rows)]
    return "".join(f"| {' | '.join(map(_escaped, line))} |\n" for line in lines)


def cells(row: ClaimRow) -> tuple[str, ...]:
    """Give a row's texts; what wasn't measured is a dash."""
    right = next((told for told in row.told if told.generator == "loadgen"), None)
    published = next((told for told in row.told if told.generator != "loadgen"), None)
    return (
        row.study,
        row.claim.says,
        row.claim.published or "–",
        _measured(right),
        _measured(published),
        str(row.outcome),
        row.reason,
    )


def _measured(told: Told | None) -> str:
    if told is None:
        return "–"
    tool = _named(told.generator)
    if not told.ratios:
        return f"{tool}{told.outcome}"
    lowest = min(told.ratios, key=lambda ratio: ratio.estimate)
    highest = max(told.ratios, key=lambda ratio: ratio.estimate)
    span = _ratio(lowest) if len(told.ratios) == 1 else f"{_ratio(lowest)} to {_ratio(highest)}"
    return f"{tool}{span}"


def _named(generator: GeneratorName) -> str:
    return "" if generator == "loadgen" else f"{generator}: "


def _ratio(ratio: Interval) -> str:
    return f"{ratio.estimate:.3g}× ({ratio.low:.3g}–{ratio.high:.3g})"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
