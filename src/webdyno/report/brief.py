"""An answer in some twenty lines, for terminal and Markdown; and all there is to it in words.

The verdict first, then one table with names in columns, and a line each for why, load and noise.
The parts of it are made once, for the page as well (`result_page`).
"""

import re
from collections.abc import Collection, Container, Iterator, Sequence
from dataclasses import replace

from webdyno.core.format import listed
from webdyno.core.judgement import Verdict
from webdyno.media import document as doc
from webdyno.media.markdown import markdown
from webdyno.report.around_rounds import (
    adjustments_made,
    how_it_changes,
    pilot_sections,
    preflight_of,
)
from webdyno.report.card import sureness
from webdyno.report.costs import cost_sections
from webdyno.report.point_facts import ALONE, point_facts, scope
from webdyno.report.show import PointView, RunView, first
from webdyno.report.tables import (
    by_variant_table,
    failed_requests,
    has_valid,
    metrics_table,
    not_shown,
    other_metrics_table,
    ratio_columns,
    reasons,
    variant_rows,
)
from webdyno.report.time_spent import time_sections
from webdyno.report.words import verdict_counts
from webdyno.validity import SHORT_RUN

NOISE_RULES = {"other-work", "steal", "client-cpu-starved", "client-stalled", "exclusion-matters"}
"""Warnings about what others did on the machine."""
FURTHER = re.compile(r"; |, seen in ")
"""Where a warning goes on with what is said elsewhere, or with details."""
CLAUSE_ENDS = (": ", "; ", ", so ", ", in ", ", but ", ", with ", ", more than ")
VARIANT = re.compile(r"\Avariant (.+?): ")
"""How a warning begins that is about one."""
MOST_DIFFERENCES = 8
MOST_NOTES = 3
LINE, LONGEST_NAMES = 90, 40
"""Columns of a line next to its term, and of the names in it."""
FIRST_LINES = 2
"""Of the first note; of others one."""


def brief(view: RunView) -> doc.Document:
    """Return the answer."""
    if view.whole:
        return doc.Document("", "", [outcome(view), *view.whole.blocks()])
    if view.several:
        experiment = view.head.experiment
        blocks = [outcome(view), *_of_points(view), *_notes(view)]
        return doc.Document(experiment.title, scope(experiment), blocks, in_one_line=True)
    facts = [fact for block in _facts(view) for fact in block.facts if fact[0] != ALONE]
    facts += [fact for block in _notes(view, facts) for fact in block.facts]
    listed = [doc.FactList(facts)] if facts else []
    return doc.Document("", "", [_in_short(view), *_figures(view), *listed])


def in_full(view: RunView) -> doc.Document:
    """Return the answer, and all else that there is in words."""
    if view.whole:
        return brief(view)
    experiment = view.head.experiment
    blocks: list[doc.Block]
    if view.several:
        blocks = [outcome(view), *_of_points(view)]
    else:
        blocks = [_in_short(view), *_figures(view), *_facts(view)]
        blocks += _wrong_responses(view.points[0])
        blocks += _details_of_point(view)
    blocks += [*view.warnings, *adjustment_sections(view.points), *difference_sections(view.points)]
    blocks.append(doc.FactList(view.how))
    return doc.Document(experiment.title, scope(experiment), blocks, in_one_line=True)


def summary(view: RunView) -> str:
    """Return the answer, and how it was measured, as Markdown."""
    if view.whole:
        answer = brief(view)
        return markdown(replace(answer, blocks=[*answer.blocks, doc.FactList(view.how)]))
    experiment = view.head.experiment
    if view.several:
        blocks = [outcome(view), *_of_points(view)]
    else:
        blocks = [_in_short(view), *_figures(view), *_facts(view)]
    blocks += [*view.warnings, doc.FactList(view.how)]
    return markdown(doc.Document(experiment.title, scope(experiment), blocks))


def _in_short(view: RunView) -> doc.Headlines:
    """Return the verdicts, and how sure they are."""
    (point,) = view.points
    *others, last = view.answers
    further = " ".join([*last.further, *([] if view.has_ranks else sureness(point))])
    return doc.Headlines([*others, last._replace(further=[further] if further else [])])


def _of_points(view: RunView) -> Iterator[doc.Block]:
    if not view.deciding:
        yield from said_of_deciding(view)
        return
    yield deciding_section(view)
    yield from cost_sections(view.points, view.factors)
    yield doc.FactList([("Failed requests", failed_requests(view.points))])


def _figures(view: RunView) -> Iterator[doc.Block]:
    (point,) = view.points
    if _has_figures(view):
        yield metrics_table(point, point.deciding)
        if not is_invalid(view):
            yield from cost_sections([point])
            yield from found_sections(point)
    elif not view.warnings:
        yield from said_of_deciding(view)
    yield from run_sections(view)


def _has_figures(view: RunView) -> bool:
    (point,) = view.points
    return has_valid(point) if is_invalid(view) else bool(point.deciding)


def _facts(view: RunView) -> Iterator[doc.FactList]:
    (point,) = view.points
    if _has_figures(view):
        yield doc.FactList(point_facts(point))


def _details_of_point(view: RunView) -> Iterator[doc.Block]:
    (point,) = view.points
    if view.deciding:
        yield deciding_section(view)
        yield from said_of_deciding(view)
    yield from doc.said_section(
        "Under load for longer: how things change", how_it_changes(point.judgement.looks)
    )
    yield from time_sections(point.judgement)
    yield from each_request(point)
    yield from other_metrics(replace(point, alongside=not_shown(point)))
    yield from pilot_sections(point.data)


def is_invalid(view: RunView) -> bool:
    """Whether nothing that was asked has an answer that counts."""
    verdicts = [each.verdict for point in view.points for each in point.decisive]
    tones = verdicts or [answer.tone for answer in view.answers]
    return all(tone is Verdict.INVALID for tone in tones)


def _wrong_responses(point: PointView) -> Iterator[doc.Section]:
    wrong = [line for line in preflight_of(point.data).lines if line.wrong]
    if wrong:
        rows = [(line.what, line.by_variant) for line in wrong]
        table = by_variant_table(wrong[0].by_variant, {"": rows}, "preflight")
        yield doc.Section(wrong[0].about, [table])


def _notes(view: RunView, facts: Sequence[tuple[str, str]] = ()) -> Iterator[doc.FactList]:
    """Yield the warnings in a line each, but those that the headline or a fact says.

    What to do about a run that is too short is the next step, and interference is in the line about
    noise.
    """
    answers = [answer.sentence for answer in view.answers]
    said = " ".join([*answers, *(fact for _, fact in facts)]).casefold()
    fixes = {fact for answer in view.answers for _, fact in answer.facts}
    lines: list[str] = []
    for warning in view.warnings:
        noise = warning.name in NOISE_RULES and not view.several
        if warning.name == SHORT_RUN or noise or not warning.lines or warning.fix in fixes:
            continue
        who, what = _who_and_what(warning.lines, view.head.experiment.variants)
        if not _is_in(said, FURTHER.split(what.casefold())[0].rstrip(".")):
            room = LINE if lines else FIRST_LINES * LINE
            lines.append(_shortened(f"{who}: {what}" if who else what, room))
    if len(lines) > MOST_NOTES:
        lines[MOST_NOTES - 1 :] = [f"{len(lines) - MOST_NOTES + 1} more, by `report --verbose`"]
    if lines:
        terms = ["Note", *[""] * (len(lines) - 1)]
        yield doc.FactList(list(zip(terms, lines, strict=True)))


def _who_and_what(lines: Sequence[str], variants: Collection[str]) -> tuple[str, str]:
    """Return of which variants something was found, where these have names, and the last of it."""
    *_, last = about = [_taken_apart(line, variants)[0] for line in lines]
    _, what = _taken_apart(lines[-1].removeprefix("for example: ").splitlines()[0], variants)
    return _names([*filter(None, about)], len(variants)) if last else "", what


def _taken_apart(line: str, variants: Container[str]) -> tuple[str, str]:
    """Return the variant that a line of a warning begins with, if it does, and the rest."""
    begin = VARIANT.match(line)
    return (begin[1], line[begin.end() :]) if begin and begin[1] in variants else ("", line)


def said_once(warning: doc.Callout, variants: Container[str]) -> doc.Callout:
    """Return a warning in which what is so of several variants stands once."""
    about: dict[str, list[str]] = {}
    for line in warning.lines:
        variant, what = _taken_apart(line, variants)
        about.setdefault(what, []).append(variant)
    lines = [
        f"variant{'s' * (len(names) > 1)} {listed(names)}: {what}" if all(names) else what
        for what, names in about.items()
    ]
    return replace(warning, lines=lines)


def _names(variants: Sequence[str], of: int) -> str:
    """Return names, or how many there are where there is no room for them; `of` so many in all."""
    names = listed(variants)
    if len(names) <= LONGEST_NAMES:
        return names
    if len(variants) == 1:
        return f"{names[: LONGEST_NAMES - 1].rstrip()}…"
    if len(variants) == of:
        return "both" if of == 2 else f"all {of} variants"
    return f"{len(variants)} of {of} variants"


def _shortened(said: str, room: int) -> str:
    """Return so much of a sentence as there is room for: whole clauses, where these say enough."""
    if len(said) <= room:
        return said
    clause = max(said.rfind(end, 0, room) for end in CLAUSE_ENDS)
    if clause > room / 2:
        return said[:clause]
    return f"{said[: said.rindex(' ', 0, room - 2)].rstrip(';,:')} …"


def lines_unsaid(view: RunView, warning: doc.Callout) -> list[str]:
    """Return what of a warning the headlines haven't said."""
    said = " ".join(answer.sentence for answer in view.answers).casefold()
    return [line for line in warning.lines if not _is_in(said, line.casefold().rstrip("."))]


def _is_in(said: str, line: str) -> bool:
    """Whether a line was said, with or without whom it is about before it."""
    _, _, what = line.partition(": ")
    return line.removeprefix("variant ") in said or bool(what and what in said)


def deciding_section(view: RunView) -> doc.Section:
    """Return all points and variants on the deciding metric."""
    factors = view.factors if view.several else []
    return doc.Section(view.deciding[0].title, [deciding_table(view.points, factors)])


def outcome(view: RunView) -> doc.Headlines | doc.Counts:
    """Return the verdict, or of several points how often there is each."""
    if view.whole or not view.several:
        return doc.Headlines(view.headlines)
    return verdict_counts(view.counts, view.sentences, view.head.experiment.measure.decide_on)


def deciding_table(points: Sequence[PointView], factors: Sequence[str] = ()) -> doc.Table:
    """Return variants on the deciding metric with both CIs; of several points by `factors`."""
    tables = [point.deciding for point in points if point.deciding]
    ranked = any(table.has_ranks for table in tables)
    return doc.Table(
        columns=[
            *map(doc.Column, factors),
            *([doc.Column("rank", "rank")] if ranked else []),
            *ratio_columns(tables, "verdict"),
        ],
        groups=[
            doc.RowGroup(
                list(variant_rows(point.deciding, decides=True, ranked=ranked)),
                shared=point.level_words if factors else [],
            )
            for point in points
            if point.deciding
        ],
        style="evidence sweep" if factors else "evidence",
    )


def said_of_deciding(view: RunView) -> Iterator[doc.Paragraph]:
    """Yield what the verdicts rest on."""
    own = about_verdicts(view)
    if not view.deciding:
        yield doc.Paragraph(why_no_figures(view.points))
    elif own is not None:
        yield from own
    elif not view.several:
        yield from (doc.Paragraph(why, label=who) for who, why in reasons(view.deciding[0]))


def about_verdicts(view: RunView) -> Sequence[doc.Paragraph] | None:
    """Return what the verdicts rest on, where the question has its own words for that."""
    return first(show.about_verdicts(view) for show in view.shows)


def why_no_figures(points: Sequence[PointView]) -> str:
    """Return why there are no figures."""
    if any(point.judgement.rounds for point in points):
        return "No slot counts for what decides: each broke a rule, as the warnings say."
    return "Nothing was measured: the run ended before its first round was finished."


def found_sections(point: PointView) -> Iterator[doc.Section]:
    """Yield what was found besides comparisons."""
    for show in point.shows:
        yield from show.found(point)


def run_sections(view: RunView, *, to_paste: bool = False) -> Iterator[doc.Section]:
    """Yield what was done before the rounds; `to_paste` also as lines for a file."""
    for show in view.shows:
        yield from show.about_run(view, to_paste=to_paste)


def each_request(point: PointView) -> Iterator[doc.Section]:
    if point.endpoints:
        yield doc.Section(
            "Each request by itself",
            [other_metrics_table(point.endpoints)],
            note="Where the variants differ: the median latency of each. All of them are "
            "judged together, so that the chance of any false difference is 5%.",
            brief="judged together",
            soft=True,
        )


def other_metrics(point: PointView) -> Iterator[doc.Section]:
    """Yield what was measured next to what decides, more quietly than that."""
    if point.alongside:
        yield doc.Section(
            "Other metrics",
            [other_metrics_table(point.alongside, better=True)],
            note="Not part of the verdict. Each CI holds by itself: it isn't adjusted for "
            "their number.",
            brief="not part of the verdict; each CI holds by itself, unadjusted",
            soft=True,
        )


def adjustment_sections(points: Sequence[PointView]) -> Iterator[doc.Section]:
    """Yield what webdyno adjusted automatically, of several points where."""
    adjusted = [(point, line) for point in points for line in adjustments_made(point.data)]
    several = len(points) > 1
    lines = (f"{point.label}: {line}" if several else line for point, line in adjusted)
    yield from doc.said_section("Automatic adjustments", lines)


def difference_sections(points: Sequence[PointView]) -> Iterator[doc.Section]:
    """Yield what the variants answered differently before the load, what is wrong first."""
    differences = {
        (line.about, line.what): line for point in points for line in preflight_of(point.data).shown
    }
    if differences:
        lines = sorted(differences.values(), key=lambda line: not line.wrong)
        more = len(lines) - MOST_DIFFERENCES
        rest = [doc.Paragraph(f"… and {more} more, in the report", look="soft")] if more > 0 else []
        facts = [
            (
                f"{line.about} · {line.what}{' (wrong)' * line.wrong}",
                "; ".join(f"{variant}: {said}" for variant, said in line.by_variant.items()),
            )
            for line in lines[:MOST_DIFFERENCES]
        ]
        yield doc.Section("Differences found in the pre-flight check", [doc.FactList(facts), *rest])
