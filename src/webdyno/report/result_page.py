"""A run's page, and its charts as files: all the terminal says, and what it has no room for."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import vl_convert

from webdyno.comparison.sentences import verdict_word
from webdyno.comparison.waiting import where_time_goes
from webdyno.core import format as text
from webdyno.core.files import write_whole
from webdyno.core.judgement import Verdict
from webdyno.core.registry import command
from webdyno.core.run import PAGE_FILE, SUMMARY_FILE
from webdyno.media import document as doc
from webdyno.media.drawing import FONT, LIGHT, Mark, marks
from webdyno.media.page import html, make_again
from webdyno.report.around_rounds import pilot_sections, preflight_of
from webdyno.report.bar_charts import bar_figure
from webdyno.report.brief import (
    NOISE_RULES,
    about_verdicts,
    adjustment_sections,
    deciding_section,
    each_request,
    found_sections,
    lines_unsaid,
    outcome,
    run_sections,
    said_of_deciding,
    said_once,
)
from webdyno.report.card import card, tiles
from webdyno.report.conditions import when
from webdyno.report.costs import cost_sections, costs, of_endpoints
from webdyno.report.exports import summary_csv
from webdyno.report.factor_charts import factor_figures
from webdyno.report.flame_charts import flame_figure
from webdyno.report.headlines import what_to_do, without_advice
from webdyno.report.method_sections import (
    configuration_section,
    environment_section,
    for_statisticians,
    preflight_section,
    repeat_section,
)
from webdyno.report.point_charts import other_figures, point_figures, result_figures
from webdyno.report.point_facts import ALONE, LOAD, point_facts
from webdyno.report.ratio_charts import ratio_figure
from webdyno.report.show import PointView, RunView
from webdyno.report.tables import ALL_SLOTS, by_variant_table, latency_table, metrics_table
from webdyno.report.time_spent import time_sections, waiting_section
from webdyno.report.words import metric_label, verdict_cell
from webdyno.validity import SHORT_RUN, used_s

NO_WARNINGS = (
    "none: every response was valid, and neither client nor machine interfered as far as the rules "
    "show"
)
ABOUT = {"latency": "Latency", "cpu": "Resources", "host": "Resources"}
"""Charts that have a section by what they are about; each other one has its own."""
COSTS_IN_SHORT = "What a request costs: CPU time, switches, bytes, memory, start"
COSTS = (
    "What was counted for each variant's servers. Per request: divided by the responses they gave. "
    "Network counters are those of the servers' network: where the client is on it as well, as on "
    "the loopback interface, every byte is counted as sent and as received, and so are those of "
    "other programs."
)
VARIABLE = re.compile(r"var\(--([\w-]+)\)")
SCALE = 2.0
"""Of PNGs, for screens with small pixels."""


def write_report(folder: Path, view: RunView) -> Path:
    """Write page and `summary.csv` into a folder, or raise OperationError; return the page."""
    then = make_again(command("report", folder))
    write_whole(folder / SUMMARY_FILE, summary_csv(view), then)
    write_whole(folder / PAGE_FILE, html_page(folder, view), then)
    return folder / PAGE_FILE


def html_page(folder: Path, view: RunView) -> str:
    """Return the page of a run as text."""
    head, experiment = view.head, view.head.experiment
    if view.whole:
        came_out = view.whole.word
    elif view.several:
        came_out = f"{len(view.points)} points"
    else:
        came_out = str(view.points[0].judgement.verdict)
    return html(
        doc.Document(experiment.title, experiment.question, list(_sections(folder, view))),
        brand="webdyno report",
        version=head.webdyno_version,
        title=f"{experiment.title} · {came_out}",
        made=" · ".join(_made(view)),
        made_from=f"made from `{folder}`, where every slot is kept in `slots.jsonl` and the "
        f"figures in `{SUMMARY_FILE}`",
        variants=view.variants,
        ends_with="glossary.html",
    )


def _made(view: RunView) -> Iterator[str]:
    head = view.head
    yield when(head.started_at)
    if took_s := sum(used_s(point.data) for point in view.points):
        yield f"measured for {text.duration(took_s)}"
    yield f"{text.count(len(head.machine.cpus), 'CPU')}, {head.machine.cpu_model}"
    if hosts := len(head.hosts):
        yield text.count(hosts, "host")


def _sections(folder: Path, view: RunView) -> Iterator[doc.Block]:
    came_out = outcome(view)
    if isinstance(came_out, doc.Headlines):
        answers = without_advice(came_out.headlines)
        came_out = replace(came_out, headlines=answers, tiles=tiles(view))
    yield replace(came_out, card=[*what_to_do(view, folder), *card(view)])
    if view.whole:
        yield from view.whole.sections(folder, view)
    in_full = [warning for warning in view.warnings if _is_said_elsewhere(view, warning)]
    variants = view.head.experiment.variants
    warnings = [said_once(each, variants) for each in view.warnings if each not in in_full]
    grave = [warning for warning in warnings if warning.tone is Verdict.INVALID]
    if grave:
        yield doc.Section("Warnings", grave)
    figures = _result_figures(view)
    results = [] if view.several else result_figures(view.points[0])
    first = 1 if view.several else 0 if view.has_ranks else len(figures)
    yield _deciding(view, [*figures[:first], *results])
    mild = [warning for warning in warnings if warning not in grave]
    if grave or view.whole:
        in_full = [*mild, *in_full]
    elif mild:
        yield doc.Section("Warnings", mild)
    yield from run_sections(view, to_paste=True)
    if view.several:
        points = [_fold_point(point) for point in view.points]
        yield doc.Section("Point by point", points, anchor="Points")
    details = list(_details(folder, view, figures[first:]))
    if in_full:
        details.insert(0, doc.Section("Warnings in full", in_full))
    yield from (replace(section, is_closed=True) for section in details)


def _is_said_elsewhere(view: RunView, warning: doc.Callout) -> bool:
    """Whether headline, card and the line about noise say what a reader needs of it."""
    is_noise = warning.name in NOISE_RULES and warning.tone is not Verdict.INVALID
    return is_noise or warning.name == SHORT_RUN or not lines_unsaid(view, warning)


def _details(folder: Path, view: RunView, figures: Sequence[doc.Figure]) -> Iterator[doc.Section]:
    yield from map(_alone, figures)
    if not view.several:
        yield from _point(view.points[0], list(other_figures(view.points[0])))
    for show in view.shows:
        yield from show.pages(folder)
    if flames := flame_figure(folder, view.points[0]):
        yield _alone(flames)
    yield from configuration_section(folder, view)
    yield doc.Section("How it was measured", [doc.FactList(view.how)], anchor="Method")
    yield environment_section(view.head)
    yield repeat_section(folder, view.head)


def _result_figures(view: RunView) -> list[doc.Figure]:
    if view.several:
        return factor_figures(view)
    ratios = ratio_figure(view.deciding[0]) if view.deciding else None
    if ratios and view.has_ranks:
        ratios = replace(ratios, title=f"Ratios to {view.variants[0]}")
    return [figure for figure in (bar_figure(view.points[0]), ratios) if figure]


def _deciding(view: RunView, figures: Sequence[doc.Figure]) -> doc.Section:
    if not view.deciding:
        return doc.Section("", [*figures, *said_of_deciding(view)])
    table = view.deciding[0]
    if view.several:
        heading = table.title
        said: list[doc.Block] = [*deciding_section(view).blocks, *said_of_deciding(view)]
    else:
        heading = metric_label(table.metric)
        if view.has_ranks:
            heading = f"Ranked by {table.metric.label}"
        elif table.comparisons:
            heading += f" compared with {table.comparisons[0].b}"
        said = list(_table_and_facts(view.points[0]))
    said += about_verdicts(view) or []
    if view.without_interference:
        said.append(doc.FactList([("Warnings", NO_WARNINGS)]))
    return doc.Section(heading, [*figures, *said])


def _table_and_facts(point: PointView) -> Iterator[doc.Block]:
    if point.deciding:
        yield metrics_table(point, point.deciding, tails=True)
    in_card = {LOAD} if point.levels else {LOAD, ALONE}
    if facts := [fact for fact in point_facts(point) if fact[0] not in in_card]:
        yield doc.FactList(facts)


def _fold_point(point: PointView) -> doc.Folded:
    judged = point.judgement
    said = doc.Paragraph(judged.headline, look="strong")
    blocks = [said, *_table_and_facts(point), *_point(point, point_figures(point), _prefix(point))]
    word = verdict_word(judged.verdict, point.data.measure.decide_on)
    return doc.Folded(point.label, blocks, verdict_cell(judged.verdict, word))


def _prefix(point: PointView) -> str:
    return f"point-{point.number}-"


def _point(
    point: PointView, figures: Sequence[doc.Figure], prefix: str = ""
) -> Iterator[doc.Section]:
    if folded := [*for_statisticians(point)]:
        yield doc.Section("For statisticians", folded)
    yield from cost_sections([point])
    yield from found_sections(point)
    if point.judgement.ranking:
        yield from waiting_section(point)
    else:
        yield from time_sections(point.judgement, where_time_goes(point.judgement.waiting))
    yield from each_request(point)
    if endpoints := of_endpoints(point.judgement):
        yield doc.Section(
            "What came of each request",
            [by_variant_table(point.variants, endpoints, "costs")],
        )
    yield from _chart_sections(point, figures, prefix)
    yield from pilot_sections(point.data)
    yield from adjustment_sections([point])
    if (before := preflight_of(point.data)).variants:
        yield preflight_section(before)


def _chart_sections(
    point: PointView, figures: Sequence[doc.Figure], prefix: str
) -> Iterator[doc.Section]:
    about: dict[str, list[doc.Block]] = {"Latency": [], "Resources": []}
    if point.has_one_load and (percentiles := latency_table(point)):
        about["Latency"] += [percentiles, doc.Paragraph(ALL_SLOTS, look="soft")]
    for figure in figures:
        if figure.name in ABOUT:
            about[ABOUT[figure.name]].append(figure.with_prefix(prefix))
    if groups := costs(point.data, point.judgement.facts):
        note = doc.Paragraph(COSTS, look="soft")
        table = by_variant_table(point.variants, groups, "costs")
        about["Resources"].append(doc.Folded(COSTS_IN_SHORT, [note, table]))
    for heading, blocks in about.items():
        if blocks:
            yield doc.Section(heading, blocks, anchor="" if prefix else heading)
    others = [figure for figure in figures if figure.name not in ABOUT]
    yield from (_alone(figure.with_prefix(prefix)) for figure in others)


def _alone(figure: doc.Figure) -> doc.Section:
    return doc.Section(figure.title, [replace(figure, title="")])


def all_figures(view: RunView) -> Iterator[doc.Figure]:
    """Yield every chart of the page."""
    yield from _result_figures(view)
    for point in view.points:
        for figure in point_figures(point):
            yield figure.with_prefix(_prefix(point)) if view.several else figure


def write_charts(folder: Path, view: RunView) -> list[Path]:
    """Write each chart as SVG and PNG, or raise OperationError; return the files."""
    written = []
    for _, panel, drawn in charts(view):
        for file, content in (
            (folder / f"{panel.name}.svg", drawn.encode()),
            (folder / f"{panel.name}.png", vl_convert.svg_to_png(drawn, scale=SCALE)),
        ):
            write_whole(file, content, below=folder.parent)
            written.append(file)
    return written


def charts(view: RunView) -> Iterator[tuple[doc.Figure, doc.Panel, str]]:
    """Yield each chart of the page with what it is part of, and as SVG that stands alone."""
    known = marks(view.variants)
    for figure in all_figures(view):
        for panel in figure.panels:
            yield figure, panel, _standalone(panel.svg, known)


def _standalone(svg: str, known: list[Mark]) -> str:
    """Return a page's chart with the colours, font and background that the page gives it."""
    colours = LIGHT | {mark.variable: LIGHT[mark.colour] for mark in known}
    coloured = VARIABLE.sub(lambda match: colours.get(match[1], LIGHT["ink"]), svg)
    begin = f'<svg xmlns="http://www.w3.org/2000/svg" font-family="{FONT}" '
    opened = coloured.replace("<svg ", begin, 1)
    head, end, rest = opened.partition(">")
    return f'{head}{end}<rect width="100%" height="100%" fill="{LIGHT["card"]}"/>{rest}'
