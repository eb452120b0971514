"""The report in the terminal: the answer first and large, what was measured beside it small."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from webdyno.judge.questions.interventions import (
    what_limits,
    what_settings_are_worth,
    what_settings_do,
)
from webdyno.judge.saturation import AT_THE_LIMIT, what_was_full
from webdyno.judge.time_spent import explanation_sentence as because
from webdyno.judge.time_spent import what_waits
from webdyno.model.judgement import Verdict
from webdyno.report import bias
from webdyno.report.course import sentences as how_it_changes
from webdyno.report.fairness import FairnessRow
from webdyno.report.findings import FindingGroup
from webdyno.report.gate import print_gate
from webdyno.report.lines import GAP, INDENT, WIDTH, fact_lines, wrapped
from webdyno.report.pilots import COLD, SETTINGS, PilotView
from webdyno.report.tuning import gains, side_facts
from webdyno.report.view import (
    ArmAnswer,
    MetricTable,
    PointView,
    Row,
    RunView,
    confidence,
    reasons,
    why_nothing,
)
from webdyno.report.words import (
    ABOUT_PLACES,
    SIGNS,
    ratio_and_interval,
    side_word,
    sure_interval,
    value_and_interval,
)

BESIDE = "Other metrics (not part of the verdict; each interval holds by itself, unadjusted)"
FEWEST_OF_WORDS = 9
"""Columns that are left to words before figures, however little room there is."""
MOST_DIFFERENCES = 8
"""Differences between the answers that are shown; the page has them all."""

STYLES = {
    Verdict.FASTER: "bold green",
    Verdict.SLOWER: "bold red",
    Verdict.EQUIVALENT: "bold cyan",
    Verdict.UNDECIDED: "bold yellow",
    Verdict.INVALID: "bold red",
    Verdict.INCOMPLETE: "bold yellow",
    Verdict.MEASURED: "bold cyan",
}


def print_report(console: Console, view: RunView, report: str) -> None:
    """Print the report and where its page is, or what draws it; colours only on a terminal."""
    if view.gate:
        print_gate(console, view.gate, report)
        return
    width = min(console.width, WIDTH)
    console.print(Group(*_parts(view, report, width)), width=width, highlight=False)


def _parts(view: RunView, report: str, width: int) -> Iterator[RenderableType]:
    yield Text(view.head.experiment.title, style="bold")
    yield Text(view.head.experiment.question, style="dim")
    yield Text()
    if view.several:
        yield badges(view.counts)
        yield from (wrapped(sentence, width, "bold") for sentence in view.sentences)
    else:
        yield answer_lines(view.answers, width)
    yield from (_finding(found, width - INDENT) for found in view.findings)
    yield Text()
    if view.deciding:
        yield Text(view.deciding[0].title, style="bold")
        yield _deciding_table(view, width)
        if view.placed:
            yield Text()
            yield wrapped(ABOUT_PLACES, width, "dim")
    else:
        yield Text(why_nothing(view.points))
    yield Text()
    if not view.several:
        yield from _only_point(view.points[0], width)
    yield from _tuning(view, width)
    yield from _remedies(view, width)
    yield from _unlike(view.points)
    yield fact_lines(view.how, width)
    yield Text()
    yield Text.assemble(("Report  ", "dim"), (report, "underline"))


def answer_lines(answers: Sequence[ArmAnswer], width: int) -> Grid:
    """Give each verdict as a badge with its sentence beside it."""
    badges = [badge(answer.verdict, answer.verdict.upper()) for answer in answers]
    beside = width - max(it.cell_len for it in badges) - GAP
    grid = Grid.grid(padding=(0, GAP, 0, 0), pad_edge=False)
    grid.add_column(no_wrap=True)
    for it, answer in zip(badges, answers, strict=True):
        grid.add_row(it, wrapped(answer.sentence, beside, "bold"))
    return grid


def badge(verdict: Verdict, words: str) -> Text:
    """Give words with a verdict's sign, in its colours."""
    return Text(f" {SIGNS[verdict]} {words} ", style=f"reverse {STYLES[verdict]}")


def badges(counts: Mapping[Verdict, int]) -> Text:
    """Give how many points have each verdict."""
    found = (badge(verdict, f"{count} {verdict}") for verdict, count in counts.items())
    return Text("  ").join(found)


def _finding(found: FindingGroup, width: int) -> Padding:
    style = STYLES[Verdict.INVALID if found.severity == "invalid" else Verdict.UNDECIDED]
    return Padding(
        Group(
            Text.assemble((found.rule, style), (f"  {found.means}", "dim")),
            *(wrapped(line, width) for line in found.told),
            wrapped(f"→ {found.remedy}", width),
        ),
        (1, 0, 0, INDENT),
    )


def _deciding_table(view: RunView, width: int) -> Padding:
    """Give all points and arms on the deciding metric.

    Where there is too little room the arms' own intervals are left out, then those with all bounds.
    """
    levels = view.factors if view.several else []
    places = ["place"] if any(table.placed for table in view.deciding) else []
    heads = [*levels, *places, "", "value", "95 % interval", "ratio"]
    heads += [f"{confidence(view.deciding)} interval", "all bounds", "verdict"]
    rows = [[Text(head, style="dim") for head in heads], *_deciding_rows(view)]
    words = len(levels) + len(places) + 1
    bounded = any(table.bounded for table in view.deciding)
    rows = rows if bounded else _without(rows, -2)
    for column in (words + 1, -2)[: 1 + bounded]:
        if _together(_widths(rows)) > width:
            rows = _without(rows, column)
    return _lined_up(rows, words, _fitting(rows, words, width))


def _without(rows: Sequence[Sequence[Text]], column: int) -> list[list[Text]]:
    kept = range(len(rows[0]))
    return [[row[at] for at in kept if at != kept[column]] for row in rows]


def _deciding_rows(view: RunView) -> Iterator[list[Text]]:
    for point in view.points:
        if point.deciding is None:
            continue
        levels = [Text(level) for level in point.level_words] if view.several else []
        for row in point.deciding.rows:
            wide = bias.beside(row.comparison) if row.comparison else ""
            place = [Text(row.place)] if point.deciding.placed else []
            yield [*levels, *place, Text(row.arm), *_figures(row), Text(wide, "dim"), _verdict(row)]
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
    if point.judgement.league is not None:
        return  # of so many arms the rest is in the report
    answered = reasons(point.deciding) if point.deciding else ()
    whys = [wrapped(f"{who}: {why}", width) for who, why in answered]
    if whys:
        yield from (*whys, Text())
    explained = [line for it in point.judgement.explanations if (line := because(it))]
    for heading, told in (
        (AT_THE_LIMIT, what_was_full(point.judgement.saturation)),
        ("What each setting does", what_settings_do(point.judgement.effects)),
        (
            "What limits it: by how many % the rate falls with 1 % less of it",
            what_limits(point.judgement.elasticities),
        ),
        ("What other settings are worth", what_settings_are_worth(point.judgement.gains)),
        ("Under load for longer: how things change", how_it_changes(point.judgement.looks)),
        ("Why: where the time goes", what_waits(point.judgement)),
        ("Why: where the servers' CPU time goes", explained),
    ):
        if lines := [wrapped(it, width - INDENT) for it in told]:
            yield Text(heading, style="bold")
            yield from (Padding(it, (0, 0, 0, INDENT)) for it in lines)
            yield Text()
    if point.endpoints:
        yield Text("Each request by itself, judged together", style="dim italic")
        yield from _beside(point.endpoints, width)
        yield Text()
    if point.beside:
        yield wrapped(BESIDE, width, "dim italic")
        yield from _beside(point.beside, width)
        yield Text()
    if point.pilots:
        yield Text("Each arm alone, before the blocks", style="bold")
        yield from _pilots(point.pilots, width)
        yield Text()


def _beside(tables: Sequence[MetricTable], width: int) -> Iterator[RenderableType]:
    """Give what else was measured, without the values' own intervals and without raised voice."""
    heads = [["", "value", "ratio", f"{confidence(tables)} interval", ""]]
    lines = [[list(_soft_cells(row)) for row in table.rows] for table in tables]
    widths = _fitting([_soft(heads[0]), *chain.from_iterable(lines)], 1, width)
    yield _lined_up([_soft(heads[0])], 1, widths)
    for table, rows in zip(tables, lines, strict=True):
        yield Padding(Text(table.title, style="dim"), (0, 0, 0, INDENT))
        yield _lined_up(rows, 1, widths)


def _soft_cells(row: Row) -> Iterator[Text]:
    value, _, ratio, _ = _figures(row)
    word = side_word(row.comparison) if row.comparison else ""
    interval = sure_interval(row.comparison) if row.comparison else ""
    yield from _soft([f"  {row.arm}", value.plain, ratio.plain, interval, word])


def _soft(cells: Sequence[str]) -> list[Text]:
    return [Text(cell, style="dim") for cell in cells]


def _fitting(rows: Sequence[Sequence[Text]], words: int, width: int) -> list[int]:
    """Give the columns' widths; where that is too much heads are folded, then the words."""
    widths = _widths(rows)
    if _together(widths) > width:
        folded = [max(map(len, head.plain.split()), default=0) for head in rows[0]]
        widths = list(map(max, folded, _widths(rows[1:])))
    while _together(widths) > width and max(widths[:words]) > FEWEST_OF_WORDS:
        widths[widths.index(max(widths[:words]))] -= 1
    return widths


def _widths(rows: Sequence[Sequence[Text]]) -> list[int]:
    return [max(cell.cell_len for cell in column) for column in zip(*rows, strict=True)]


def _together(widths: Sequence[int]) -> int:
    return INDENT + sum(widths) + GAP * (len(widths) - 1)


def _lined_up(rows: Sequence[Sequence[Text]], words: int, widths: Sequence[int]) -> Padding:
    """Give rows as a table: words, then figures, then a word."""
    grid = Grid.grid(padding=(0, GAP, 0, 0), pad_edge=False)
    for column, wide in enumerate(widths):
        figures = words <= column < len(widths) - 1
        grid.add_column(width=wide, justify="right" if figures else "left", overflow="fold")
    for row in rows:
        grid.add_row(*row)
    return Padding(grid, (0, 0, 0, INDENT))


def _pilots(pilots: Sequence[PilotView], width: int) -> Iterator[RenderableType]:
    """Give how each arm starts, and the times found for it with the reason."""
    for what, columns in (("from a cold start", COLD), ("times found", SETTINGS)):
        heads = [name for name, _ in columns]
        rows = [[Text(it, style="dim") for it in (what, *heads, "")]]
        rows += [[Text(it) for it in (p.arm, *map(p.cells.__getitem__, heads), "")] for p in pilots]
        yield _lined_up(rows, 1, _fitting(rows, 1, width))
    for pilot in pilots:
        yield Padding(
            wrapped(f"{pilot.arm}: {pilot.why}", width - INDENT, "dim"), (0, 0, 0, INDENT)
        )


def _tuning(view: RunView, width: int) -> Iterator[RenderableType]:
    """Say what tuning was worth, and what was done for it."""
    for at, side in enumerate(view.head.experiment.tuning):
        if at == 0:
            yield Text("What tuning was worth", style="bold")
            said = [line for point in view.points for line in gains(point)]
            yield from (Padding(wrapped(it, width - INDENT), (0, 0, 0, INDENT)) for it in said)
            yield Text()
        yield Text(f"How {side.name} was tuned", style="bold")
        yield Padding(fact_lines(side_facts(side), width - INDENT), (0, 0, 0, INDENT))
        yield Text()


def _remedies(view: RunView, width: int) -> Iterator[RenderableType]:
    """Say what webdyno mended by itself, of several points where."""
    told = [
        f"{point.label}: {line}" if view.several else line
        for point in view.points
        for line in point.remedies
    ]
    if told:
        yield Text("Mended while it ran", style="bold")
        yield from (Padding(wrapped(it, width - INDENT), (0, 0, 0, INDENT)) for it in told)
        yield Text()


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


def _difference(line: FairnessRow) -> Text:
    wrong = (" wrong", STYLES[Verdict.INVALID]) if line.wrong else ""
    by_arm = "; ".join(f"{arm}: {said}" for arm, said in line.by_arm.items())
    return Text.assemble((f"{line.about} · {line.what}", "dim"), wrong, "  ", by_arm)
