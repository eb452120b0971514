"""A result in some twenty lines: what a terminal shows unless all is requested.

The verdict first, then one table with names in columns, what limits the figures, and a line each
for why, limit and trust. All the rest has `--verbose` and the page.
"""

from collections.abc import Iterator
from dataclasses import replace
from math import ceil
from pathlib import Path

from webdyno.judge.validity import SHORT_RUN
from webdyno.model.command import command
from webdyno.model.judgement import Verdict
from webdyno.report import document as doc
from webdyno.report.around_rounds import preflight_of
from webdyno.report.gate import gate_document
from webdyno.report.metrics_table import metrics_table
from webdyno.report.point_facts import point_facts, scope, trust_words
from webdyno.report.ratio_tables import by_variant_table
from webdyno.report.result import (
    cause_sections,
    deciding_section,
    outcome,
    said_of_deciding,
    tuning,
)
from webdyno.report.view import PointView, RunView


def brief(view: RunView) -> doc.Document:
    """Give what a terminal shows of a run."""
    if view.gate:
        return gate_document(view.gate)
    experiment = view.head.experiment
    return doc.Document(experiment.title, scope(experiment), list(_blocks(view)), in_one_line=True)


def _blocks(view: RunView) -> Iterator[doc.Block]:
    yield outcome(view)
    if view.several:
        yield from view.warnings
        yield from _sweep(view)
        return
    point = view.points[0]
    yield from _wrong_responses(point)
    yield from _callouts(view)
    invalid = _is_invalid(view)
    if point.deciding and not invalid:
        yield metrics_table(point, point.deciding)
        yield from cause_sections(point.judgement, brief=True)
    elif not view.warnings:
        yield from said_of_deciding(view)
    yield from tuning(view)
    if invalid:
        return
    if facts := [*point_facts(point, trust_words(point))]:
        yield doc.FactList(facts)


def next_steps(view: RunView, run: Path) -> doc.Facts:
    """Give the commands that are worth a thought after this answer."""
    asked = [found for table in view.deciding for found in table.compared]
    if view.gate or view.several or not asked:
        return []
    lacking = [it.more_minutes for it in asked if it.more_minutes]
    if lacking:
        return [("Next", command("resume", run, "--time", f"{ceil(max(lacking))}m"))]
    return [("Next", command("explain", run)), ("Details", command("report", run, "--verbose"))]


def _is_invalid(view: RunView) -> bool:
    """Whether none of the figures mean anything."""
    return all(it.tone is Verdict.INVALID for it in view.answers)


def _wrong_responses(point: PointView) -> Iterator[doc.Section]:
    """Show what variants responded before the load where that isn't what was to be measured."""
    wrong = [line for line in preflight_of(point.data).lines if line.wrong]
    if wrong:
        rows = [(line.what, line.by_variant) for line in wrong]
        table = by_variant_table(wrong[0].by_variant, {"": rows}, "preflight")
        yield doc.Section(wrong[0].about, [table])


def _callouts(view: RunView) -> Iterator[doc.Block]:
    """Give the warnings; of one that the headline has said only what to do."""
    said = " ".join(it.sentence for it in view.answers).casefold()
    incomplete = any(it.tone is Verdict.INCOMPLETE for it in view.answers)
    for found in view.warnings:
        told = [line for line in found.told if line.casefold().rstrip(".") not in said]
        if told and not (incomplete and found.name == SHORT_RUN):
            yield replace(found, told=told)
        else:
            yield doc.FactList([("Fix", found.fix)])


def _sweep(view: RunView) -> Iterator[doc.Block]:
    if view.deciding:
        yield deciding_section(view)
    else:
        yield from said_of_deciding(view)
