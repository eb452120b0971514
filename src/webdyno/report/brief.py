"""An answer in some twenty lines, for terminal and Markdown; and all there is to it in words.

The verdict first, then one table with names in columns, and a line each for why, limit and trust.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import ceil
from pathlib import Path

from webdyno.comparison.comparison import asked_about
from webdyno.comparison.sentences import MOST_MINUTES
from webdyno.core.format import listed, typed_duration
from webdyno.core.judgement import Verdict
from webdyno.core.registry import command
from webdyno.media import document as doc
from webdyno.media.markdown import markdown
from webdyno.report.around_rounds import pilot_sections, preflight_of
from webdyno.report.cost_tables import cost_sections
from webdyno.report.point_facts import point_facts, scope
from webdyno.report.result import (
    adjustment_sections,
    deciding_section,
    difference_sections,
    each_request,
    found_sections,
    other_metrics,
    outcome,
    run_sections,
    said_of_deciding,
    time_sections,
)
from webdyno.report.show import PointView, RunView
from webdyno.report.tables import by_variant_table, failed_requests, metrics_table, not_shown
from webdyno.validity import SHORT_RUN

NOISE_RULES = {"other-work", "steal", "client-cpu-starved", "client-stalled", "exclusion-matters"}
"""Warnings about what others did on the machine."""
VARIANT = re.compile(r"variant (.+?): ")
"""How a warning begins that is about one."""


def brief(view: RunView) -> doc.Document:
    """Give the answer."""
    if view.whole:
        return doc.Document("", "", [outcome(view), *view.whole.blocks()])
    experiment = view.head.experiment
    return doc.Document(experiment.title, scope(experiment), list(_blocks(view)), in_one_line=True)


def in_full(view: RunView) -> doc.Document:
    """Give the answer, and all else that there is in words."""
    answer = brief(view)
    if view.whole:
        return answer
    return replace(answer, blocks=[*answer.blocks, *_details(view), doc.FactList(view.how)])


def summary(view: RunView) -> str:
    """Give the answer, and how it was measured, as Markdown."""
    answer = brief(view)
    return markdown(replace(answer, blocks=[*answer.blocks, doc.FactList(view.how)]))


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
        yield from cost_sections([point])
        yield from found_sections(point)
    elif not view.warnings:
        yield from said_of_deciding(view)
    yield from run_sections(view)
    if not invalid and (facts := point_facts(point)):
        yield doc.FactList(facts)


def _details(view: RunView) -> Iterator[doc.Block]:
    """Give what an answer leaves out for brevity."""
    if not view.several:
        yield from _details_of_point(view)
    yield from adjustment_sections(view.points)
    yield from difference_sections(view.points)


def _details_of_point(view: RunView) -> Iterator[doc.Block]:
    (point,) = view.points
    if view.deciding:
        yield deciding_section(view)
        yield from said_of_deciding(view)
    yield from time_sections(point.judgement)
    yield from each_request(point)
    yield from other_metrics(replace(point, alongside=not_shown(point)))
    yield from pilot_sections(point.data)


def next_steps(view: RunView, run: Path) -> doc.Facts:
    """Give the commands that are worth a thought after this answer."""
    if view.whole:
        return view.whole.next_steps(run)
    incomplete = Verdict.INCOMPLETE in {*view.counts, *(answer.tone for answer in view.answers)}
    if incomplete or any(warning.name == SHORT_RUN for warning in view.warnings):
        measure = view.head.experiment.measure
        more = ["--time", typed_duration(measure.budget_s)] if measure.budget_is_limit else []
        return [("Continue", command("resume", run, *more))]
    asked = asked_about([comparison for table in view.deciding for comparison in table.compared])
    if view.several or not asked or _is_invalid(view):
        return []
    lacking = [comparison.more_minutes for comparison in asked if comparison.more_minutes]
    if lacking and max(lacking) <= MOST_MINUTES:
        return [("Next", command("resume", run, "--time", f"{ceil(max(lacking))}m"))]
    return [("Next", command("explain", run)), ("Details", command("report", run, "--verbose"))]


def _is_invalid(view: RunView) -> bool:
    """Whether none of the figures mean anything."""
    return all(answer.tone is Verdict.INVALID for answer in view.answers)


def _wrong_responses(point: PointView) -> Iterator[doc.Section]:
    """Show what variants responded before the load where that isn't what was to be measured."""
    wrong = [line for line in preflight_of(point.data).lines if line.wrong]
    if wrong:
        rows = [(line.what, line.by_variant) for line in wrong]
        table = by_variant_table(wrong[0].by_variant, {"": rows}, "preflight")
        yield doc.Section(wrong[0].about, [table])


def _callouts(view: RunView) -> Iterator[doc.Block]:
    """Give the warnings once for variants that are alike.

    Of one that the headline has said there is only what to do; of a run that is too short what to
    do is the next step. Interference is in the line about noise.
    """
    said = " ".join(answer.sentence for answer in view.answers).casefold()
    for warning in view.warnings:
        if warning.name == SHORT_RUN or warning.name in NOISE_RULES:
            continue
        lines = [line for line in warning.lines if not _is_in(said, line.casefold().rstrip("."))]
        if not lines:
            yield doc.FactList([("Fix", warning.fix)])
            continue
        yield replace(warning, lines=_of_variants_together(lines))


def _of_variants_together(lines: Sequence[str]) -> list[str]:
    """Say what was found of several variants once: the first one's figures, and who is alike."""
    about = [VARIANT.match(line) for line in lines]
    if len(lines) < 2 or not all(about) or any("\n" in line for line in lines):
        return list(lines)
    names = [match[1] for match in about if match]
    return [f"{lines[0]}; {listed(names[1:])} likewise"]


def _is_in(said: str, line: str) -> bool:
    """Whether a line stands in what was said, with or without whom it is about before it."""
    _, _, what = line.partition(": ")
    return line in said or bool(what and what in said)


def _sweep(view: RunView) -> Iterator[doc.Block]:
    if view.deciding:
        yield deciding_section(view)
        yield from cost_sections(view.points, view.factors)
        yield doc.FactList([("Failed requests", failed_requests(view.points))])
    else:
        yield from said_of_deciding(view)
