"""What several machines show of one experiment: in the terminal, and as a page.

Each of a few machines is shown; of many those at both ends, and their sum.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from statistics import quantiles
from typing import Any

from webdyno.core import format as text
from webdyno.core.base import Interval
from webdyno.core.judgement import Verdict
from webdyno.core.run import RunHead
from webdyno.fleet import AcrossMachines, FleetJudgement, Replicate
from webdyno.media import document as doc
from webdyno.media.page import html
from webdyno.report.ratio_charts import band_words, ratio_panel
from webdyno.report.words import SIGNS, as_headline, ratio_cells, verdict_cell

RATIOS: dict[str, doc.Kind] = {"ratio": "ratio", "CI": "range", "verdict": "verdict"}
AVERAGE, ANOTHER = "on average", "another machine"
DIFFER = (
    "The machines differ among each other by more than their rounds do (Welch's test, 5%): "
    "what isn't the same on all of them may be why."
)
HOW_TO_READ = (
    "A machine counts once, however many rounds it measured. The average's CI holds the mean "
    "of machines of this kind in 95 of 100 such fleets; the range of another machine holds the "
    "ratio that one more of them would show. Neither speaks of machines of another kind. The "
    "verdict is that of the average; all interference is counted against it."
)
MOST_EXCLUDED = 5
"""Excluded machines that are named where there are many."""
MOST_SHOWN = 20
"""Machines up to which each is shown."""
AT_EACH_END = 5
NAMED = 4
"""Machines with something in common that are named, unless there is just one more."""
VALUES = 8
"""Values that are shown of what isn't the same on all machines: the most frequent ones."""


def fleet_document(head: RunHead, fleet: FleetJudgement) -> doc.Document:
    """Return what the machines show; `head` is that of any of them."""

    def section_of(comparison: AcrossMachines, _: str) -> doc.Section:
        differ = [doc.Paragraph(DIFFER)] if comparison.machines_differ else []
        return doc.Section(f"{comparison.a} ÷ {comparison.b}", [_table(comparison), *differ])

    return _document(head, fleet, section_of)


def fleet_page(head: RunHead, fleet: FleetJudgement, reports: Mapping[str, str], again: str) -> str:
    """Return the page; `reports` are the addresses of the machines' own, by machine."""
    many = len(fleet.machines) > MOST_SHOWN

    def section_of(comparison: AcrossMachines, name: str) -> doc.Section:
        figure = _figure(name, comparison)
        blocks: list[doc.Block] = [
            *([figure] if figure else []),
            *_excluded_words(comparison, many=many),
            *([doc.Paragraph(DIFFER)] if comparison.machines_differ else []),
            *([_each_machine(comparison, reports)] if many else []),
        ]
        return doc.Section(f"{comparison.a} ÷ {comparison.b}", blocks)

    document = _document(head, fleet, section_of)
    links = [(machine, reports.get(machine, "")) for machine in fleet.machines]
    blocks = [
        *document.blocks,
        *([] if many else [doc.Section("Machines", [doc.Links(links)])]),
        doc.Section("How to read it", [doc.Paragraph(HOW_TO_READ)]),
        doc.Section("How to repeat it", [doc.Code(again)]),
    ]
    page = doc.Document(document.title, document.about, blocks)
    return html(page, brand="webdyno report", version=version("webdyno"))


def _document(
    head: RunHead, fleet: FleetJudgement, section_of: Callable[[AcrossMachines, str], doc.Section]
) -> doc.Document:
    about = f"The same experiment on {text.count(len(fleet.machines), 'machine')}"
    blocks: list[doc.Block] = []
    for n, point in enumerate(fleet.points):
        answer = as_headline(point.verdict, point.headline)
        blocks.append(doc.Headlines([answer], text.levels_text(point.levels)))
        for m, comparison in enumerate(point.comparisons):
            blocks.append(section_of(comparison, f"machines-{n}-{m}"))
    if not fleet.points:
        blocks.append(doc.Headlines([as_headline(Verdict.INVALID, why_no_verdict(fleet))]))
    if fleet.excluded:
        some = text.count(len(fleet.excluded), "point")
        blocks.append(doc.Paragraph(f"{some} excluded, which not all of them have.", look="soft"))
    return doc.Document(head.experiment.title, about, [*blocks, _varieties(fleet)])


def why_no_verdict(fleet: FleetJudgement) -> str:
    """Explain why there is no verdict at any point."""
    if not fleet.mismatches:
        return "No verdict: there is no point that all of the machines have measured."
    name, unlike = next(iter(fleet.mismatches.items()))
    differences = "; ".join(f"{each.what} is {each.before} and {each.after}" for each in unlike)
    both = f"{fleet.machines[0]} and {name}"
    return f"No verdict: these are different experiments. Of {both} {differences}."


def _table(comparison: AcrossMachines) -> doc.Table:
    rows: list[list[doc.Cell | str]] = [
        [
            machine.label,
            *ratio_cells(machine.ratio),
            verdict_cell(machine.verdict) if machine.verdict else "",
        ]
        for machine in shown_machines(comparison.replicates)
    ]
    if comparison.mean and comparison.another:
        average = doc.Cell(AVERAGE, strong=True)
        rows += [
            [average, *ratio_cells(comparison.mean), verdict_cell(comparison.verdict)],
            [ANOTHER, "", text.ratio_bounds(comparison.another), ""],
        ]
    return doc.simple_table({"machine": "name", **RATIOS}, rows, "brief")


def _excluded_words(comparison: AcrossMachines, *, many: bool) -> Iterator[doc.Paragraph]:
    mark = verdict_cell(Verdict.INVALID)
    invalid = [replicate for replicate in comparison.replicates if replicate.why]
    named = invalid[:MOST_EXCLUDED] if many else invalid
    said = [f"{replicate.machine}, excluded: {replicate.why}" for replicate in named]
    if more := len(invalid) - len(named):
        said.append(f"{text.count(more, 'more machine')} excluded.")
    yield from (doc.Paragraph(sentence, label=mark.text, tone=mark.tone) for sentence in said)


def _each_machine(comparison: AcrossMachines, reports: Mapping[str, str]) -> doc.Folded:
    rows: list[list[doc.Cell | str]] = [
        [
            doc.Cell(replicate.machine, link=reports.get(replicate.machine, "")),
            text.number(replicate.rounds),
            *ratio_cells(replicate.ratio),
            verdict_cell(replicate.verdict),
        ]
        for replicate in comparison.replicates
    ]
    table = doc.simple_table({"machine": "name", "rounds": "value", **RATIOS}, rows, "brief")
    return doc.Folded(f"All {text.count(len(rows), 'machine')}", [table])


def _varieties(fleet: FleetJudgement) -> doc.Block:
    if not fleet.varieties:
        return doc.Paragraph("Machines, versions and load generators are alike.", look="soft")
    facts = [
        (variety.what, "; ".join(f"{value} ({on})" for value, on in shared_values(variety.values)))
        for variety in fleet.varieties
    ]
    return doc.Section("What isn't the same on all of them", [doc.FactList(facts)])


@dataclass(frozen=True)
class Shown:
    """One machine, or many summed up."""

    label: str
    ratio: Interval | None
    verdict: Verdict | None = None
    """None of what has none of its own."""
    reach: tuple[float, float] | None = None
    """Of many machines: the lowest and the highest ratio."""


def shown_machines(replicates: Sequence[Replicate]) -> list[Shown]:
    """Return what is shown of a fleet, by ratio where there are too many to show each."""
    if len(replicates) <= MOST_SHOWN:
        return [_apart(replicate) for replicate in replicates]
    shown = [_apart(replicate) for replicate in replicates if replicate.ratio]
    shown.sort(key=lambda machine: machine.ratio.estimate if machine.ratio else 0.0)
    if len(shown) > MOST_SHOWN:
        ratios = [machine.ratio.estimate for machine in shown if machine.ratio]
        low, middle, high = quantiles(ratios, n=4)
        half = Interval(low=low, estimate=middle, high=high, confidence=0.5)
        label, reach = f"half of all {text.number(len(ratios))}", (min(ratios), max(ratios))
        rest = Shown(label, half, reach=reach)
        shown = [*shown[:AT_EACH_END], rest, *shown[-AT_EACH_END:]]
    without = [replicate for replicate in replicates if not replicate.ratio]
    verdicts = {replicate.verdict for replicate in without}
    if without:
        alike = verdicts.pop() if len(verdicts) == 1 else None
        shown.append(Shown(list_some([replicate.machine for replicate in without]), None, alike))
    return shown


def list_some(machines: Sequence[str]) -> str:
    """Name machines that have something in common: `a, b, c, d and 995 more`."""
    if len(machines) <= NAMED + 1:
        return ", ".join(machines)
    return f"{', '.join(machines[:NAMED])} and {text.number(len(machines) - NAMED)} more"


def shared_values(by_machine: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return each value and the machines that share it, the most frequent first."""
    counted = Counter(by_machine.values())
    frequent = counted.most_common(VALUES)
    shared = [
        (value, list_some([machine for machine, its in by_machine.items() if its == value]))
        for value, _ in frequent
    ]
    if len(counted) > VALUES:
        rest = counted.total() - sum(n for _, n in frequent)
        others = text.count(len(counted) - VALUES, "other value")
        shared.append((others, text.count(rest, "machine")))
    return shared


def _apart(replicate: Replicate) -> Shown:
    return Shown(replicate.machine, replicate.ratio, replicate.verdict)


def _figure(name: str, comparison: AcrossMachines) -> doc.Figure | None:
    shown = [machine for machine in shown_machines(comparison.replicates) if machine.ratio]
    if comparison.mean and comparison.another:
        # Where another machine could show the opposite, its range has no verdict's colour.
        crosses = comparison.another.low < 1 < comparison.another.high
        surely = Verdict.INCONCLUSIVE if crosses else comparison.verdict
        shown += [
            Shown(AVERAGE, comparison.mean, comparison.verdict),
            Shown(ANOTHER, comparison.another, surely),
        ]
    if not shown:
        return None
    rows = [_row(machine, comparison.delta) for machine in shown]
    machines = "Each machine's ratio with its CI"
    if any(machine.reach for machine in shown):
        machines = (
            "The lowest and the highest ratios with their CIs; between them those of all "
            "machines (dot: median, thick line: the middle half, thin line: all)"
        )
    return doc.Figure(
        name=name,
        title="",
        caption=f"{machines}, their average with its own, and where one more machine of this kind "
        "would lie.",
        note=band_words([comparison.delta]),
        panels=(ratio_panel(name, rows, comparison.b),),
        by_variant=False,
    )


def _row(machine: Shown, delta: float) -> dict[str, Any]:
    """Return a row of the chart; another machine's ratio is a range alone."""
    ratio, verdict = machine.ratio, machine.verdict
    assert ratio is not None  # noqa: S101 (requested by the caller)
    words = text.between(ratio) if verdict is None else f"{SIGNS[verdict]} {verdict}"
    shown = text.between(ratio) if machine.label == ANOTHER else f"{text.times(ratio)}  {words}"
    low, high = machine.reach or (ratio.low, ratio.high)
    return {
        "label": machine.label,
        "result": shown,
        "told": f"{machine.label}: {text.times(ratio)} ({text.ratio_range(ratio)}), {verdict}"
        if verdict
        else f"{machine.label}: {text.between(ratio)}, around {text.times(ratio)}",
        "tone": str(verdict or Verdict.EQUIVALENT),
        "ratio": ratio.estimate,
        "low": ratio.low,
        "high": ratio.high,
        "decisive_low": low,
        "decisive_high": high,
        "even_low": 1 / (1 + delta),
        "even_high": 1 + delta,
        "rounds": [],
    }
