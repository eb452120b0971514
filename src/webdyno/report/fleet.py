"""What several machines say of one experiment: in the terminal, and as a page."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from statistics import quantiles
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from webdyno.model import format as text
from webdyno.model.base import Interval
from webdyno.model.judgement import Verdict
from webdyno.model.run import RunHead
from webdyno.model.several_runs import AcrossMachines, FleetJudgement, FleetPoint, Replicate
from webdyno.report.drawing import Figure
from webdyno.report.lines import GAP, INDENT, WIDTH, wrapped
from webdyno.report.page import templates
from webdyno.report.ratio_charts import ratio_panel
from webdyno.report.terminal import STYLES, answer_lines
from webdyno.report.view import ArmAnswer
from webdyno.report.words import SIGNS

APART = 20
"""Of so many machines each is shown."""
AT_EACH_END = 5
NAMED = 4
"""So many of the machines that have something in common are named, unless there is one more."""
VALUES = 8
"""So many values are told of what isn't the same on all of them: those that most of them have."""


@dataclass(frozen=True)
class Shown:
    """One machine, or what is said of many."""

    label: str
    ratio: Interval | None
    verdict: Verdict | None = None
    """None of what has none of its own."""
    reach: tuple[float, float] | None = None
    """Of many machines: the lowest and the highest ratio."""


def shown_machines(replicates: Sequence[Replicate]) -> list[Shown]:
    """Give what is shown of a fleet, by ratio where there are too many to show each."""
    if len(replicates) <= APART:
        return [_apart(it) for it in replicates]
    told = sorted(
        (it for it in replicates if it.ratio), key=lambda it: it.ratio.estimate if it.ratio else 0.0
    )
    shown = [_apart(it) for it in told]
    if len(told) > APART:
        shown = [*shown[:AT_EACH_END], _half_of(shown), *shown[-AT_EACH_END:]]
    without = [it for it in replicates if not it.ratio]
    verdicts = {it.verdict for it in without}
    if without:
        alike = verdicts.pop() if len(verdicts) == 1 else None
        shown.append(Shown(named([it.machine for it in without]), None, alike))
    return shown


def named(machines: Sequence[str]) -> str:
    """Name machines that have something in common: `a, b, c, d and 995 more`."""
    if len(machines) <= NAMED + 1:
        return ", ".join(machines)
    return f"{', '.join(machines[:NAMED])} and {text.number(len(machines) - NAMED)} more"


def shared_values(by_machine: Mapping[str, str]) -> list[tuple[str, str]]:
    """Give each value and the machines that share it, the most frequent first."""
    counted = Counter(by_machine.values())
    frequent = counted.most_common(VALUES)
    told = [
        (value, named([machine for machine, its in by_machine.items() if its == value]))
        for value, _ in frequent
    ]
    if len(counted) > VALUES:
        rest = counted.total() - sum(n for _, n in frequent)
        others = text.count(len(counted) - VALUES, "other value")
        told.append((others, text.count(rest, "machine")))
    return told


def _apart(it: Replicate) -> Shown:
    return Shown(it.machine, it.ratio, it.verdict)


def _half_of(shown: Sequence[Shown]) -> Shown:
    """Sum many up: the middle half of their ratios around the median."""
    ratios = [it.ratio.estimate for it in shown if it.ratio]
    low, middle, high = quantiles(ratios, n=4)
    half = Interval(low=low, estimate=middle, high=high, confidence=0.5)
    label = f"half of all {text.number(len(ratios))}"
    return Shown(label, half, reach=(min(ratios), max(ratios)))


AVERAGE, ANOTHER = "on average", "another machine"
DIFFER = (
    "The machines surely differ among each other by more than their blocks do (Welch's test, 5 %): "
    "what isn't the same on all of them may be why."
)


def print_fleet(console: Console, head: RunHead, fleet: FleetJudgement) -> None:
    """Print what the machines say; `head` is that of any of them."""
    width = min(console.width, WIDTH)
    parts: list[RenderableType] = [
        Text(head.experiment.title, style="bold"),
        Text(f"The same experiment on {text.count(len(fleet.machines), 'machine')}", style="dim"),
    ]
    for at in fleet.points:
        parts += [Text(), *_point(at, width)]
    if not fleet.points:
        parts += [Text(), answer_lines([ArmAnswer(Verdict.INVALID, why_nothing(fleet))], width)]
    if fleet.left_out:
        some = text.count(len(fleet.left_out), "point")
        parts += [Text(), Text(f"{some} left out, which not all of them have.", style="dim")]
    parts += [Text(), *_varieties(fleet, width)]
    console.print(Group(*parts), width=width, highlight=False)


def why_nothing(fleet: FleetJudgement) -> str:
    """Say why there is no verdict at any point."""
    if not fleet.mismatches:
        return "No verdict: there is no point that all of the machines have measured."
    name, unlike = next(iter(fleet.mismatches.items()))
    told = "; ".join(f"{it.what} is {it.before} and {it.after}" for it in unlike)
    return f"No verdict: these are different experiments. Of {fleet.machines[0]} and {name} {told}."


def _point(at: FleetPoint, width: int) -> Iterator[RenderableType]:
    if at.levels:
        yield Text(text.levels_text(at.levels), style="bold")
    yield answer_lines([ArmAnswer(at.verdict, at.headline)], width)
    for it in at.comparisons:
        yield Text()
        yield Text(f"{it.a} ÷ {it.b}", style="bold")
        yield Padding(_table(it), (0, 0, 0, INDENT))
        if it.machines_differ:
            yield wrapped(DIFFER, width)


def _table(found: AcrossMachines) -> Table:
    table = Table.grid(padding=(0, GAP, 0, 0), pad_edge=False)
    for justify in ("left", "right", "right", "left"):
        table.add_column(justify=justify, overflow="fold")
    table.add_row(*(Text(head, style="dim") for head in ("", "ratio", "interval", "verdict")))
    for it in shown_machines(found.replicates):
        table.add_row(it.label, *_ratio(it.ratio), _verdict(it.verdict) if it.verdict else "")
    if found.mean and found.another:
        table.add_row(Text(AVERAGE, "bold"), *_ratio(found.mean), _verdict(found.verdict))
        table.add_row(ANOTHER, "", Text(text.ratio_bounds(found.another)))
    return table


def _ratio(ratio: Interval | None) -> tuple[str, str]:
    return (text.times(ratio), text.ratio_bounds(ratio)) if ratio else (text.MISSING, "")


def _verdict(verdict: Verdict) -> Text:
    return Text(f"{SIGNS[verdict]} {verdict}", style=STYLES[verdict])


def _varieties(fleet: FleetJudgement, width: int) -> Iterator[RenderableType]:
    if not fleet.varieties:
        yield Text("Machines, versions and load generators are alike.", style="dim")
        return
    yield Text("What isn't the same on all of them", style="bold")
    for it in fleet.varieties:
        told = "; ".join(f"{value} ({machines})" for value, machines in shared_values(it.values))
        yield Padding(wrapped(f"{it.what}: {told}", width - INDENT), (0, 0, 0, INDENT))


def fleet_page(head: RunHead, fleet: FleetJudgement, reports: Mapping[str, str], again: str) -> str:
    """Give the page; `reports` are the addresses of the machines' own, by machine."""
    return (
        templates()
        .get_template("fleet.html")
        .render(
            title=head.experiment.title,
            version=version("webdyno"),
            marks=[],
            fleet=fleet,
            points=[
                (at, [_figure(f"machines-{n}-{m}", it) for m, it in enumerate(at.comparisons)])
                for n, at in enumerate(fleet.points)
            ],
            nothing="" if fleet.points else why_nothing(fleet),
            differ=DIFFER,
            reports=reports,
            many=len(fleet.machines) > APART,
            shared_values=shared_values,
            repeat=again,
        )
    )


def _figure(name: str, found: AcrossMachines) -> Figure | None:
    shown = [it for it in shown_machines(found.replicates) if it.ratio]
    if found.mean and found.another:
        # Where another machine could show the opposite, its range has no verdict's colour.
        crosses = found.another.low < 1 < found.another.high
        surely = Verdict.UNDECIDED if crosses else found.verdict
        shown += [Shown(AVERAGE, found.mean, found.verdict), Shown(ANOTHER, found.another, surely)]
    if not shown:
        return None
    rows = [{"row": place} | _row(it, found.delta) for place, it in enumerate(shown)]
    machines = "Each machine's ratio with its interval"
    if any(it.reach for it in shown):
        machines = (
            "The lowest and the highest ratios with their intervals; between them those of all "
            "machines (dot: median, thick line: the middle half, thin line: all)"
        )
    return Figure(
        name=name,
        title=f"{found.a} ÷ {found.b}",
        caption=f"{machines}, their average with its own interval, and where one more machine of "
        "this kind would lie. The shaded band, "
        f"±{text.percent(found.delta)} around 1, holds differences too small to matter.",
        panels=(ratio_panel(name, rows, found.b),),
        by_arm=False,
    )


def _row(it: Shown, delta: float) -> dict[str, Any]:
    """Give a row of the chart; another machine's ratio is a range alone."""
    ratio, verdict = it.ratio, it.verdict
    assert ratio is not None  # noqa: S101 (asked for by the caller)
    told = text.ratio_ends(ratio) if verdict is None else f"{SIGNS[verdict]} {verdict}"
    shown = text.ratio_ends(ratio) if it.label == ANOTHER else f"{text.times(ratio)}  {told}"
    low, high = it.reach or (ratio.low, ratio.high)
    return {
        "label": it.label,
        "result": shown,
        "told": f"{it.label}: {text.times(ratio)} ({text.ratio_range(ratio)}), {verdict}"
        if verdict
        else f"{it.label}: {text.ratio_ends(ratio)}, around {text.times(ratio)}",
        "tone": str(verdict or Verdict.EQUIVALENT),
        "ratio": ratio.estimate,
        "low": ratio.low,
        "high": ratio.high,
        "sure_low": low,
        "sure_high": high,
        "even_low": 1 / (1 + delta),
        "even_high": 1 + delta,
    }
