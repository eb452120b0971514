"""The report in the terminal: the answer first and large, what was measured beside it small."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from webdyno.model.judgement import Verdict
from webdyno.report.conditions import Facts
from webdyno.report.fairness import Line
from webdyno.report.view import (
    SIGNS,
    Answer,
    FindingGroup,
    PointView,
    Row,
    RunView,
    Table,
    confidence,
    ratio_and_interval,
    reasons,
    side_word,
    value_and_interval,
)

WIDTH = 100
"""Columns that the report takes at most, on however wide a terminal."""
INDENT = 2
GAP = 2
LEFT_OF_FIGURES = 12
"""Columns that are left to the words before the figures, however long those are."""
MOST_DIFFERENCES = 8
"""Differences between the answers that are shown; the page has them all."""

STYLES = {
    Verdict.FASTER: "bold green",
    Verdict.SLOWER: "bold red",
    Verdict.EQUIVALENT: "bold cyan",
    Verdict.UNDECIDED: "bold yellow",
    Verdict.INVALID: "bold red",
}


def print_report(console: Console, view: RunView, page: Path) -> None:
    """Print the report and where its page is; colours are left out where there is no terminal."""
    width = min(console.width, WIDTH)
    console.print(Group(*_parts(view, page, width)), width=width, highlight=False)


def _parts(view: RunView, page: Path, width: int) -> Iterator[RenderableType]:
    yield Text(view.head.experiment.title, style="bold")
    yield Text(view.head.experiment.question, style="dim")
    yield Text()
    if view.several:
        yield _badges(view.counts)
        yield from (Text(sentence, style="bold") for sentence in view.sentences)
    else:
        yield answer_lines(view.answers)
    yield from (_finding(found) for found in view.findings)
    yield Text()
    if view.deciding:
        yield Text(view.deciding[0].title, style="bold")
        yield _deciding_table(view, width)
        yield Text()
    if not view.several:
        yield from _only_point(view.points[0], width)
    yield from _unlike(view.points)
    yield _facts(view.how)
    yield Text()
    yield Text.assemble(("Report  ", "dim"), (str(page), "underline"))


def answer_lines(answers: Iterable[Answer]) -> Grid:
    """Give each verdict as a badge with its sentence beside it."""
    grid = Grid.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    for answer in answers:
        grid.add_row(badge(answer.verdict, answer.verdict.upper()), Text(answer.sentence, "bold"))
    return grid


def badge(verdict: Verdict, words: str) -> Text:
    """Give words with a verdict's sign, in its colours."""
    return Text(f" {SIGNS[verdict]} {words} ", style=f"reverse {STYLES[verdict]}")


def _badges(counts: dict[Verdict, int]) -> Text:
    found = (badge(verdict, f"{count} {verdict}") for verdict, count in counts.items())
    return Text("  ").join(found)


def _finding(found: FindingGroup) -> Padding:
    style = STYLES[Verdict.INVALID if found.severity == "invalid" else Verdict.UNDECIDED]
    return Padding(
        Group(
            Text.assemble((found.rule, style), (f"  {found.means}", "dim")),
            *map(Text, found.told),
            Text.assemble(("→ ", "dim"), found.remedy),
        ),
        (1, 0, 0, INDENT),
    )


def _deciding_table(view: RunView, width: int) -> Padding:
    """Give all points and arms on the deciding metric, as much of it as fits."""
    levels = view.factors if view.several else []
    heads = [*levels, "", "value", "95 % interval", "ratio"]
    heads += [f"{confidence(view.deciding)} interval", "verdict"]
    rows = [[Text(head, style="dim") for head in heads], *_deciding_rows(view)]
    own_interval = len(levels) + 2
    if _needed(rows) > width:
        rows = [row[:own_interval] + row[own_interval + 1 :] for row in rows]
    return _lined_up(rows, len(levels) + 1, width)


def _deciding_rows(view: RunView) -> Iterator[list[Text]]:
    for point in view.points:
        if point.deciding is None:
            continue
        levels = [Text(level) for level in point.level_words] if view.several else []
        for row in point.deciding.rows:
            yield [*levels, Text(row.arm), *_figures(row), _verdict(row)]
            levels = [Text() for _ in levels]


def _figures(row: Row) -> Iterator[Text]:
    value, interval = value_and_interval(row.value)
    yield from (Text(value), Text(interval, style="dim"))
    ratio, interval = ratio_and_interval(row.comparison) if row.comparison else ("", "")
    yield from (Text(ratio), Text(interval, style="dim"))


def _verdict(row: Row) -> Text:
    if row.comparison is None:
        return Text()
    verdict = row.comparison.verdict
    return Text(f"{SIGNS[verdict]} {verdict}", style=STYLES[verdict])


def _only_point(point: PointView, width: int) -> Iterator[RenderableType]:
    if point.deciding is None:
        yield Text("Nothing was measured: the run ended before its first block was finished.")
        yield Text()
        return
    for who, why in reasons(point.deciding):
        yield Text.assemble((f"{who}: ", "bold"), why)
    yield Text()
    if point.beside:
        yield Text("Beside it (the verdict isn't about these)", style="dim italic")
        yield _beside_table(point.beside, width)
        yield Text()


def _beside_table(tables: Sequence[Table], width: int) -> Padding:
    """Give what else was measured, without the values' own intervals and without raised voice."""
    heads = ["", "value", "ratio", f"{confidence(tables)} interval", ""]
    lines = [[Text(head) for head in heads]]
    for table in tables:
        lines.append([Text(table.title), *(Text() for _ in heads[1:])])
        for row in table.rows:
            value, _, ratio, interval = _figures(row)
            word = Text(side_word(row.comparison) if row.comparison else "")
            lines.append([Text(f"  {row.arm}"), value, ratio, interval, word])
    for cell in chain.from_iterable(lines):
        cell.stylize("dim")
    return _lined_up(lines, 1, width)


def _needed(rows: Sequence[Sequence[Text]]) -> int:
    return INDENT + sum(_widths(rows)) + GAP * (len(rows[0]) - 1)


def _widths(rows: Sequence[Sequence[Text]]) -> list[int]:
    return [max(cell.cell_len for cell in column) for column in zip(*rows, strict=True)]


def _lined_up(rows: Sequence[Sequence[Text]], words: int, width: int) -> Padding:
    """Give a table whose first columns are words, which are folded where they are too long."""
    widths = _widths(rows)
    too_much = _needed(rows) - width
    longest = max(range(words), key=lambda column: widths[column])
    if too_much > 0:
        widths[longest] = max(widths[longest] - too_much, LEFT_OF_FIGURES)
    grid = Grid.grid(padding=(0, GAP, 0, 0), pad_edge=False)
    for column, wide in enumerate(widths):
        figures = words <= column < len(widths) - 1
        grid.add_column(width=wide, justify="right" if figures else "left", overflow="fold")
    for row in rows:
        grid.add_row(*row)
    return Padding(grid, (0, 0, 0, INDENT))


def _unlike(points: Sequence[PointView]) -> Iterator[RenderableType]:
    """Say what the arms answered differently before the load, what is wrong first."""
    found = {
        (line.about, line.what): line
        for point in points
        for line in (point.fairness.shown if point.fairness else [])
    }
    if not found:
        return
    lines = sorted(found.values(), key=lambda line: not line.wrong)
    yield Text("Not the same on all arms before the load", style="bold")
    yield Padding(Group(*map(_difference, lines[:MOST_DIFFERENCES])), (0, 0, 0, INDENT))
    if len(lines) > MOST_DIFFERENCES:
        more = f"… and {len(lines) - MOST_DIFFERENCES} more, in the report"
        yield Padding(Text(more, style="dim"), (0, 0, 0, INDENT))
    yield Text()


def _difference(line: Line) -> Text:
    wrong = (" wrong", STYLES[Verdict.INVALID]) if line.wrong else ""
    by_arm = "; ".join(f"{arm}: {said}" for arm, said in line.by_arm.items())
    return Text.assemble((f"{line.about} · {line.what}", "dim"), wrong, "  ", by_arm)


def _facts(facts: Facts) -> Grid:
    grid = Grid.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column()
    for term, said in facts:
        grid.add_row(term, Text(said))
    return grid
