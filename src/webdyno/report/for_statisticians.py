"""What a statistician asks of a point: n, method, stopping rule, adjustment, exclusions."""

from collections.abc import Iterator, Sequence

import numpy as np

from webdyno.judge.comparison import SEQUENTIAL_FACTOR
from webdyno.judge.fleet import intervals_of
from webdyno.judge.questions import question_of
from webdyno.model import format as text
from webdyno.model.judgement import Comparison
from webdyno.report import document as doc
from webdyno.report.conditions import stop_rule
from webdyno.report.point_facts import slots_excluded
from webdyno.report.ratio_tables import reasons
from webdyno.report.result import deciding_table, other_metrics
from webdyno.report.view import PointView

FEWEST_FOR_PREDICTION = 3
METHODS = {"t": "Student's t on log ratios", "hodges-lehmann": "Hodges–Lehmann on log ratios"}


def for_statisticians(point: PointView) -> Iterator[doc.Folded]:
    """Give it folded; nothing of a point where nothing was measured."""
    if point.deciding is None:
        return
    compared = point.deciding.compared
    blocks: list[doc.Block] = [deciding_table([point])]
    if compared:
        blocks += [
            _tests(compared),
            doc.Heading("Ratios by round"),
            doc.FactList(_rounds(compared)),
        ]
    if said := [*reasons(point.deciding)]:
        blocks += [doc.Heading("What the verdict rests on"), doc.FactList(said)]
    blocks += [doc.Heading("Design"), doc.FactList([*_design(point, compared)])]
    for section in other_metrics(point):
        note = doc.Paragraph(section.note, look="soft")
        blocks += [doc.Heading(section.heading), note, *section.blocks]
    yield doc.Folded("n, df, both CIs, p, ratios by round, stopping rule, adjustment", blocks)


def _tests(compared: Sequence[Comparison]) -> doc.Table:
    """Give what each interval and p-value is made of."""
    rows = [
        [
            f"{comparison.a} ÷ {comparison.b}",
            str(len(comparison.by_round)),
            str(len(comparison.by_round) - 1) if comparison.method == "t" else text.MISSING,
            METHODS[comparison.method],
            _another_round(comparison),
            _p(comparison.sign_flip_p),
            _p(2.0 ** (1 - len(comparison.by_round))),
        ]
        for comparison in compared
    ]
    heads: dict[str, doc.Kind] = {
        "ratio": "name",
        "n (paired rounds)": "value",
        "df": "value",
        "CI by": "words",
        "95% prediction interval (one more round)": "range",
        "p (exact sign-flip test)": "value",
        "smallest p for n": "value",
    }
    return doc.simple_table(heads, rows, style="brief")


def _another_round(found: Comparison) -> str:
    """Give where the ratio of one more round would lie; for three or more it says something."""
    if len(found.by_round) < FEWEST_FOR_PREDICTION:
        return text.MISSING
    _, another = intervals_of(np.log(found.by_round), (0.0, 0.0), 0.95)
    return text.ratio_bounds(another.ratio(0.95))


def _p(p: float | None) -> str:
    return text.MISSING if p is None else text.probability(p).removeprefix("p ").lstrip("= ")


def _rounds(compared: Sequence[Comparison]) -> doc.Facts:
    return [
        (
            f"{comparison.a} ÷ {comparison.b}",
            ", ".join(text.significant(ratio, 3) for ratio in comparison.by_round),
        )
        for comparison in compared
    ]


def _design(point: PointView, compared: Sequence[Comparison]) -> Iterator[tuple[str, str]]:
    """Say when it stopped, what intervals are adjusted for, and what doesn't count."""
    data, judged = point.data, point.judgement
    yield "Stopping rule", stop_rule(data.experiment)
    if judged.stopped_because:
        yield "Stopped", judged.stopped_because
    if question_of(data.experiment).stops_by_width:
        wider = text.percent(SEQUENTIAL_FACTOR - 1)
        looks = "Stopping looks at the CI's width, never at significance."
        after = f"After round {data.measure.min_rounds} CIs are {wider} wider to allow for it."
        yield "Looks", f"{looks} {after}"
    if compared and not any(comparison.worst_case for comparison in compared):
        yield "Worst case", "Nothing interfered: the worst-case CI is the sampling CI."
    yield "Adjusted", _adjusted(point, compared)
    yield "Unadjusted", "Other metrics: each CI holds at 95% by itself."
    yield "Excluded", slots_excluded(point)


def _adjusted(point: PointView, compared: Sequence[Comparison]) -> str:
    if point.judgement.ranking:
        return "All ranks hold together at 95%."
    if len(compared) < 2:
        return "Nothing: the verdict rests on a single comparison."
    return f"{len(compared)} comparisons with the baseline on the deciding metric (Holm)."
