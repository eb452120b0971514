"""A run's page, its charts as files, and the writing of both.

The page has all that the terminal tells (`result`), and what there was no room for.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import vl_convert

from webdyno.judge.time_spent import where_time_goes
from webdyno.model import format as text
from webdyno.model.command import command
from webdyno.model.files import write_whole, writing
from webdyno.model.judgement import Verdict
from webdyno.model.run import PAGE_FILE, SUMMARY_FILE, SWEEPS, RunHead
from webdyno.report import document as doc
from webdyno.report.around_rounds import Preflight, pilot_sections, preflight_of
from webdyno.report.card import card
from webdyno.report.conditions import machine_facts, when
from webdyno.report.csv_files import summary_csv
from webdyno.report.details import Cost, configuration_differences, costs, of_endpoints
from webdyno.report.drawing import FONT, LIGHT, Mark, marks
from webdyno.report.factor_charts import factor_figures
from webdyno.report.for_statisticians import for_statisticians
from webdyno.report.gate import claimed, small_print
from webdyno.report.metrics_table import metrics_table
from webdyno.report.page import html, make_again
from webdyno.report.point_charts import point_figures
from webdyno.report.point_facts import point_facts
from webdyno.report.ratio_tables import by_variant_table
from webdyno.report.result import (
    adjustment_sections,
    cause_sections,
    deciding_section,
    each_request,
    outcome,
    said_of_deciding,
    tuning,
)
from webdyno.report.run_charts import flame_figure, ratio_figure
from webdyno.report.view import PointView, RunView
from webdyno.report.words import ABOUT_RANKS, verdict_cell

VARIABLE = re.compile(r"var\(--([\w-]+)\)")
SCALE = 2.0
"""Of PNGs, for screens with small pixels."""

NO_INTERFERENCE = (
    "No validity rule fired: every response was right, and neither client nor machine got in the "
    "way as far as the rules show."
)
ABOUT = {"latency": "Latency", "cpu": "Resources", "host": "Resources"}
"""Charts that have a section by what they are about; each other one has its own."""
COSTS = (
    "What was counted for each variant's servers. Per request: divided by the responses they gave. "
    "Network counters are those of the servers' network: where the client is on it as well, as on "
    "the loopback interface, every byte is counted as sent and as received, and so are those of "
    "other programs."
)


def write_report(folder: Path, view: RunView) -> Path:
    """Write `report.html` and `summary.csv` into the run's folder; give the page's path.

    Earlier ones are replaced as a whole or not at all. Raises OperationError when they can't be
    written.
    """
    then = make_again(command("report", folder))
    write_whole(folder / SUMMARY_FILE, summary_csv(view), then)
    write_whole(folder / PAGE_FILE, html_page(folder, view), then)
    return folder / PAGE_FILE


def html_page(folder: Path, view: RunView) -> str:
    """Give the page of a run as text."""
    head = view.head
    experiment = head.experiment
    if view.gate:
        came_out: str = view.gate.answer
    else:
        judged = view.points[0].judgement
        came_out = f"{len(view.points)} points" if view.several else judged.verdict
    return html(
        doc.Document(experiment.title, experiment.question, list(_sections(folder, view))),
        brand="webdyno report",
        version=head.webdyno_version,
        title=f"{experiment.title} · {came_out}",
        made=f"{when(head.started_at)} · {' · '.join(experiment.variants)}",
        made_from=f"made from `{folder}`, where every slot is kept in `slots.jsonl` and the "
        f"figures in `{SUMMARY_FILE}`",
        variants=experiment.variants,
        ends_with="words.html",
    )


def _sections(folder: Path, view: RunView) -> Iterator[doc.Block]:
    yield replace(outcome(view), card=card(view))
    if view.gate:
        note = small_print(view.gate)
        yield doc.Section("What was claimed", list(claimed(view.gate)), note=note)
    if view.warnings:
        yield doc.Section("Warnings", view.warnings)
    figures = _result_figures(view)
    yield _deciding(view, figures[:1])
    yield from tuning(view, to_paste=True)
    yield from (doc.Section("", [figure]) for figure in figures[1:])
    if view.several:
        points = [_folded(point, view) for point in view.points]
        yield doc.Section("Point by point", points, anchor="Points")
    else:
        yield from _point(view.points[0], view)
    yield from _elsewhere(folder)
    if flames := flame_figure(folder, view.points[0]):
        yield doc.Section("", [flames])
    yield from _configurations(folder, view)
    yield doc.Section("How it was measured", [doc.FactList(view.how)], anchor="Method")
    yield from _machine(view.head)
    yield _repeat(folder, view.head)


def _result_figures(view: RunView) -> list[doc.Figure]:
    """Give the charts of what came out: of several points along what was varied."""
    if view.several:
        return factor_figures(view)
    found = ratio_figure(view.deciding[0]) if view.deciding else None
    return [found] if found else []


def _deciding(view: RunView, figures: Sequence[doc.Figure]) -> doc.Section:
    """Give what came out: the terminal's table, and what explains it."""
    if not view.deciding:
        return doc.Section("", list(said_of_deciding(view)))
    if view.several:
        said: list[doc.Block] = [*deciding_section(view).blocks, *said_of_deciding(view)]
    else:
        said = list(_table_and_facts(view.points[0]))
    if view.ranked:
        said.append(doc.Paragraph(ABOUT_RANKS, look="soft"))
    if view.without_interference:
        said.append(doc.Paragraph(NO_INTERFERENCE, look="soft"))
    return doc.Section(view.deciding[0].title, [*figures, *said])


def _table_and_facts(point: PointView) -> Iterator[doc.Block]:
    if point.deciding:
        yield metrics_table(point, point.deciding)
    if facts := [*point_facts(point)]:
        yield doc.FactList(facts)


def _folded(point: PointView, view: RunView) -> doc.Folded:
    judged = point.judgement
    said = doc.Paragraph(judged.headline, look="strong")
    blocks = [said, *_table_and_facts(point), *_point(point, view)]
    return doc.Folded(point.label, blocks, verdict_cell(judged.verdict))


def _point(point: PointView, view: RunView) -> Iterator[doc.Section]:
    if folded := [*for_statisticians(point)]:
        yield doc.Section("For statisticians", folded)
    yield from cause_sections(point.judgement, where_time_goes(point.judgement.waiting))
    yield from each_request(point)
    if endpoints := of_endpoints(point.judgement):
        yield doc.Section("What came of each request", [_counted(point, endpoints)])
    yield from _measured(point, view)
    yield from pilot_sections(point.data)
    yield from adjustment_sections([point])
    if (before := preflight_of(point.data)).variants:
        yield _preflight(before)


def _measured(point: PointView, view: RunView) -> Iterator[doc.Section]:
    """Give the charts of one point and what a request costs, by what they are about."""
    about: dict[str, list[doc.Block]] = {"": [], "Latency": [], "Resources": []}
    for figure in point_figures(point):
        about[ABOUT.get(figure.name, "")].append(_named(figure, point, view))
    if found := costs(point.data, point.judgement.facts):
        note = doc.Paragraph(COSTS, look="soft")
        about["Resources"] += [doc.Heading("What a request costs"), note, _counted(point, found)]
    for heading in ("Latency", "Resources"):
        if about[heading]:
            anchor = "" if view.several else heading
            yield doc.Section(heading, about[heading], anchor=anchor)
    yield from (doc.Section("", [figure]) for figure in about[""])


def _counted(point: PointView, found: Mapping[str, Sequence[Cost]]) -> doc.Table:
    groups = {name: [(it.what, it.by_variant) for it in its] for name, its in found.items()}
    return by_variant_table(point.data.experiment.variants, groups, "costs")


def _preflight(found: Preflight) -> doc.Section:
    """Say what the variants answered before the load: of what differs what each of them did."""
    groups: dict[str, list[tuple[doc.Cell | str, dict[str, str]]]] = {}
    for line in found.shown:
        mark = verdict_cell(Verdict.INVALID, f"{line.what}: wrong")
        what = mark if line.wrong else line.what
        groups.setdefault(line.about, []).append((what, line.by_variant))
    shows = (
        "This is what differs, or is not what the site promises:"
        if groups
        else "Nothing that matters differs."
    )
    blocks: list[doc.Block] = [
        doc.Paragraph(f"Before any load, the same requests went to every variant. {shows}")
    ]
    if groups:
        blocks.append(by_variant_table(found.variants, groups, "preflight"))
    if found.alike:
        blocks.append(
            doc.Paragraph(f"The same on every variant: {', '.join(found.alike)}.", look="soft")
        )
    return doc.Section("Pre-flight check", blocks)


def _elsewhere(folder: Path) -> Iterator[doc.Section]:
    """Give the pages of the sweeps beside a search, by what they show; those that are there."""
    pages = {said: f"{name}/{PAGE_FILE}" for name, said in SWEEPS.items()}
    links = [
        (text.upper_first(said), page) for said, page in pages.items() if (folder / page).exists()
    ]
    if links:
        yield doc.Section("Sweeps around the capacities", [doc.Links(links)])


def _configurations(folder: Path, view: RunView) -> Iterator[doc.Section]:
    if found := configuration_differences(folder, view):
        only = len(found) == 1
        blocks = [
            doc.Folded(
                f"{it.variant} against {it.other}: {it.file}", [doc.Code(it.diff)], is_open=only
            )
            for it in found
        ]
        yield doc.Section("How the configurations differ", blocks)


def _machine(head: RunHead) -> Iterator[doc.Section]:
    sysctls = [(name, str(value)) for name, value in head.machine.sysctls.items()]
    settings = [doc.Folded("Settings of the kernel", [doc.FactList(sysctls)])] if sysctls else []
    yield doc.Section("Machine", [doc.FactList(machine_facts(head.machine)), *settings])
    versions = [
        (variant, ", ".join(f"{service} {version}" for service, version in services.items()))
        for variant, services in head.versions.items()
    ]
    yield doc.Section("Versions", [doc.FactList([*versions, ("webdyno", head.webdyno_version)])])


def _repeat(folder: Path, head: RunHead) -> doc.Section:
    how: list[doc.Block] = [
        doc.Paragraph(
            "The run's folder holds all that it takes: the experiment, and the services, stacks "
            f"and sites as they were. With webdyno {head.webdyno_version}:"
        ),
        doc.Code(head.repeat_command(folder)),
    ]
    if head.format == 1:
        how = [
            doc.Paragraph(
                "Save the experiment below as a file, and give that to `webdyno run`, version "
                f"{head.webdyno_version}."
            )
        ]
    whole = "The experiment as it was run, every default and the seed written out"
    folded = doc.Folded(whole, [doc.Code(head.experiment.toml())])
    return doc.Section("How to repeat it", [*how, folded], anchor="Reproduce")


def _named(figure: doc.Figure, point: PointView, view: RunView) -> doc.Figure:
    """Give each point's charts names of their own, where there are several."""
    return figure.prefixed(f"point-{point.number}-") if view.several else figure


def write_charts(folder: Path, view: RunView) -> list[Path]:
    """Write each chart of the page as SVG and PNG; give the files.

    Raise OperationError where they can't be written.
    """
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    written = []
    for _, panel, drawn in charts(view):
        for file, content in (
            (folder / f"{panel.name}.svg", drawn.encode()),
            (folder / f"{panel.name}.png", vl_convert.svg_to_png(drawn, scale=SCALE)),
        ):
            with writing(file):
                file.write_bytes(content)
            written.append(file)
    return written


def charts(view: RunView) -> Iterator[tuple[doc.Figure, doc.Panel, str]]:
    """Give each chart of the page with what it is part of, and as SVG that stands alone."""
    known = marks(view.head.experiment.variants)
    of_points = (
        _named(figure, point, view) for point in view.points for figure in point_figures(point)
    )
    for figure in (*_result_figures(view), *of_points):
        for panel in figure.panels:
            yield figure, panel, _standalone(panel.svg, known)


def _standalone(svg: str, known: list[Mark]) -> str:
    """Give a page's chart the colours, font and background that it has from the page."""
    colours = LIGHT | {mark.variable: LIGHT[mark.colour] for mark in known}
    coloured = VARIABLE.sub(lambda found: colours.get(found[1], LIGHT["ink"]), svg)
    begin = f'<svg xmlns="http://www.w3.org/2000/svg" font-family="{FONT}" '
    opened = coloured.replace("<svg ", begin, 1)
    head, end, rest = opened.partition(">")
    return f'{head}{end}<rect width="100%" height="100%" fill="{LIGHT["card"]}"/>{rest}'
