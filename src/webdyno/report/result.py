"""The parts of what came out of a run, each made once.

Terminal and Markdown (`brief`) and the page (`result_page`) are composed of them.
"""

from collections.abc import Iterable, Iterator, Sequence

from webdyno.comparison.time_spent import explanation_sentence
from webdyno.comparison.waiting import what_waits
from webdyno.core.judgement import Judgement
from webdyno.media import document as doc
from webdyno.report.around_rounds import (
    PreflightRow,
    adjustments_made,
    how_it_changes,
    preflight_of,
)
from webdyno.report.show import PointView, RunView, first
from webdyno.report.tables import other_metrics_table, ratio_columns, reasons, variant_rows
from webdyno.report.words import verdict_counts

MOST_DIFFERENCES = 8
"""Differences between the responses that are shown; the page has them all."""


def deciding_section(view: RunView) -> doc.Section:
    """Give all points and variants on the deciding metric."""
    factors = view.factors if view.several else []
    return doc.Section(view.deciding[0].title, [deciding_table(view.points, factors)])


def outcome(view: RunView) -> doc.Headlines | doc.Counts:
    """Give the verdict, or of several points how often there is each."""
    if view.whole:
        return doc.Headlines([view.whole.headline])
    if not view.several:
        return doc.Headlines(view.answers)
    return verdict_counts(view.counts, view.sentences, view.head.experiment.measure.decide_on)


def deciding_table(points: Sequence[PointView], factors: Sequence[str] = ()) -> doc.Table:
    """Give variants on the deciding metric, with both intervals; of several points by `factors`."""
    tables = [point.deciding for point in points if point.deciding]
    ranked = any(table.ranked for table in tables)
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
    """Say what the verdicts rest on."""
    own = about_verdicts(view)
    if not view.deciding:
        yield doc.Paragraph(why_no_figures(view.points))
    elif own is not None:
        yield from own
    elif not view.several:
        yield from (doc.Paragraph(why, label=who) for who, why in reasons(view.deciding[0]))


def about_verdicts(view: RunView) -> Sequence[doc.Paragraph] | None:
    """Say what the verdicts rest on, where the question has its own words for that."""
    return first(show.about_verdicts(view) for show in view.shows)


def why_no_figures(points: Sequence[PointView]) -> str:
    """Say why there are no figures."""
    if any(point.judgement.rounds for point in points):
        return "No slot counts for what decides: each broke a rule, as the warnings say."
    return "Nothing was measured: the run ended before its first round was finished."


def found_sections(point: PointView) -> Iterator[doc.Section]:
    """Say what was found besides comparisons."""
    for show in point.shows:
        yield from show.found(point)


def run_sections(view: RunView, *, to_paste: bool = False) -> Iterator[doc.Section]:
    """Say what was done before the rounds; `to_paste` also as lines for a file."""
    for show in view.shows:
        yield from show.about_run(view, to_paste=to_paste)


def time_sections(judged: Judgement, waits: Iterable[str] = ()) -> Iterator[doc.Section]:
    """Say where time goes; `waits` are further sentences on a response's time."""
    yield from doc.said_section(
        "Under load for longer: how things change", how_it_changes(judged.looks)
    )
    yield from doc.said_section(
        "Where a response's time goes",
        [*what_waits(judged), *waits],
        note="Means: connections over throughput is the whole (Little's law); the parts add up.",
    )
    yield from doc.said_section(
        "Why: where the servers' CPU time goes",
        filter(None, map(explanation_sentence, judged.explanations)),
        note="What the kernel counted of it, for each response. The parts add up.",
    )


def each_request(point: PointView) -> Iterator[doc.Section]:
    """Compare the variants on each of several requests."""
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
    """Give what was measured next to what decides, more quietly than that."""
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
    """Say what webdyno adjusted automatically, of several points where."""
    adjusted = [(point, line) for point in points for line in adjustments_made(point.data)]
    several = len(points) > 1
    lines = (f"{point.label}: {line}" if several else line for point, line in adjusted)
    yield from doc.said_section("Automatic adjustments", lines)


def difference_sections(points: Sequence[PointView]) -> Iterator[doc.Section]:
    """Say what the variants answered differently before the load, what is wrong first."""
    differences = {
        (line.about, line.what): line for point in points for line in preflight_of(point.data).shown
    }
    if differences:
        lines = sorted(differences.values(), key=lambda line: not line.wrong)
        more = len(lines) - MOST_DIFFERENCES
        rest = [doc.Paragraph(f"… and {more} more, in the report", look="soft")] if more > 0 else []
        shown = doc.FactList([_difference(line) for line in lines[:MOST_DIFFERENCES]])
        yield doc.Section("Differences found in the pre-flight check", [shown, *rest])


def _difference(line: PreflightRow) -> tuple[str, str]:
    by_variant = "; ".join(f"{variant}: {said}" for variant, said in line.by_variant.items())
    return f"{line.about} · {line.what}{' (wrong)' * line.wrong}", by_variant
