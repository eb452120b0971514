"""The parts of what came out of a run, each made once.

Terminal and Markdown (`brief`) and the page (`result_page`) are composed of them.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

from webdyno.judge.questions.interventions import (
    what_limits,
    what_settings_are_worth,
    what_settings_do,
)
from webdyno.judge.saturation import AT_THE_LIMIT, what_was_full
from webdyno.judge.time_spent import explanation_sentence
from webdyno.judge.waiting import what_waits
from webdyno.model import format as text
from webdyno.model.explain import Overload, OverRounds
from webdyno.model.judgement import Judgement
from webdyno.report import document as doc
from webdyno.report.around_rounds import (
    PreflightRow,
    adjustments_made,
    how_it_changes,
    preflight_of,
)
from webdyno.report.gate import gate_outcome
from webdyno.report.ratio_tables import beside_table, ratio_columns, reasons, variant_rows
from webdyno.report.tuning import settings_toml, tuned_facts, tuning_gains
from webdyno.report.view import PointView, RunView, why_no_figures
from webdyno.report.words import ABOUT_RANKS, verdict_counts

MOST_DIFFERENCES = 8
"""Differences between the responses that are shown; the page has them all."""
ABOUT_OVERLOADS = (
    "The last two of four seconds at a multiple of the capacity; medians of the rounds that tried "
    "it. Goodput: requests within the objectives, then as a share of the capacity. Back: how long "
    "half of the capacity broke the objectives afterwards."
)
OVERLOAD_HEADINGS = ("goodput, req/s", "of capacity", "failed", "p50", "p99", "back after")


def deciding_section(view: RunView) -> doc.Section:
    """Give all points and variants on the deciding metric."""
    factors = view.factors if view.several else []
    return doc.Section(view.deciding[0].title, [deciding_table(view.points, factors)])


def outcome(view: RunView) -> doc.Headlines | doc.Counts:
    """Give the verdict, or of several points how often there is each."""
    if view.gate:
        return doc.Headlines([gate_outcome(view.gate)])
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
    if not view.deciding:
        yield doc.Paragraph(why_no_figures(view.points))
    elif view.ranked:
        yield doc.Paragraph(ABOUT_RANKS, look="soft")
    elif not view.several:
        yield from (doc.Paragraph(why, label=who) for who, why in reasons(view.deciding[0]))


def intervention_sections(judged: Judgement) -> Iterator[doc.Section]:
    """Say what was found by measuring variants with something changed."""
    yield from _said(
        AT_THE_LIMIT,
        what_was_full(judged.saturation),
        note="By all trials from 90% of a round's capacity up to it.",
    )
    yield from overload_section(judged.overloads)
    yield from _said(
        "What each setting does",
        what_settings_do(judged.effects),
        note="Averaged over the other settings, from variants that had them in all combinations or "
        "in a balanced part of these. All CIs hold together with 95%.",
    )
    yield from _said(
        "What limits it",
        what_limits(judged.elasticities),
        note="By how many per cent the throughput falls when there is one per cent less: near 1 "
        "is the limit, near 0 there is more of it than is needed. Each was tried: variants had "
        "less of one thing.",
        brief="by how many % the throughput falls with 1% less of it",
    )
    yield from _said(
        "What other settings are worth",
        what_settings_are_worth(judged.gains),
        note="Known causes of slow servers that this one may have; each was tried, alone, in a "
        "variant of its own.",
    )


def time_sections(judged: Judgement, waits: Iterable[str] = ()) -> Iterator[doc.Section]:
    """Say where time goes; `waits` are further sentences on a response's time."""
    yield from _said("Under load for longer: how things change", how_it_changes(judged.looks))
    yield from _said(
        "Where a response's time goes",
        [*what_waits(judged), *waits],
        note="Means: connections over throughput is the whole (Little's law); the parts add up.",
    )
    yield from _said(
        "Why: where the servers' CPU time goes",
        filter(None, map(explanation_sentence, judged.explanations)),
        note="What the kernel counted of it, for each response. The parts add up.",
    )


def _said(
    heading: str, sentences: Iterable[str], note: str = "", brief: str = ""
) -> Iterator[doc.Section]:
    if said := list(map(doc.Paragraph, sentences)):
        yield doc.Section(heading, said, note, brief)


def each_request(point: PointView) -> Iterator[doc.Section]:
    """Compare the variants on each of several requests."""
    if point.endpoints:
        yield doc.Section(
            "Each request by itself",
            [beside_table(point.endpoints)],
            note="Where the variants differ: the median latency of each. All of them are "
            "judged together, so that the chance of any false difference is 5%.",
            brief="judged together",
            soft=True,
        )


def other_metrics(point: PointView) -> Iterator[doc.Section]:
    """Give what was measured beside what decides, more quietly than that."""
    if point.beside:
        yield doc.Section(
            "Other metrics",
            [beside_table(point.beside, better=True)],
            note="Not part of the verdict. Each CI holds by itself: it isn't adjusted for "
            "their number.",
            brief="not part of the verdict; each CI holds by itself, unadjusted",
            soft=True,
        )


def tuning(view: RunView, *, to_paste: bool = False) -> Iterator[doc.Section]:
    """Say what tuning was worth, and what was done for it; `to_paste` also as lines for a file."""
    tuning = view.head.experiment.tuning
    if tuning:
        gains = (line for point in view.points for line in tuning_gains(point))
        yield from _said("What tuning was worth", gains)
    for tuned in tuning:
        code = [doc.Code(settings_toml(tuned))] if to_paste and tuned.settings else []
        yield doc.Section(f"How {tuned.name} was tuned", [doc.FactList(tuned_facts(tuned)), *code])


def adjustment_sections(points: Sequence[PointView]) -> Iterator[doc.Section]:
    """Say what webdyno adjusted automatically, of several points where."""
    adjusted = [(point, line) for point in points for line in adjustments_made(point.data)]
    several = len(points) > 1
    lines = (f"{point.label}: {line}" if several else line for point, line in adjusted)
    yield from _said("Automatic adjustments", lines)


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


def overload_section(overloads: Sequence[Overload]) -> Iterator[doc.Section]:
    """Give a table of what came of asking for more than the capacity, where that was tried."""
    if overloads:
        columns = [
            doc.Column("variant", "name", obvious=True),
            doc.Column("load", "value"),
            *(
                doc.Column(heading, "value", spare=heading == "p50")
                for heading in OVERLOAD_HEADINGS
            ),
        ]
        rows = [doc.RowGroup(list(map(_overload_row, overloads)))]
        table = doc.Table(columns, rows, style="brief")
        yield doc.Section(
            "Beyond capacity", [table], ABOUT_OVERLOADS, "goodput is what meets the objectives"
        )


def _overload_row(overload: Overload) -> list[doc.Cell | str]:
    return [
        overload.variant,
        f"{overload.times:g}{text.TIMES}",
        _median(overload.goodput_rps, _rate),
        _median(overload.of_capacity, text.percent),
        _median(overload.failed, text.percent),
        _median(overload.p50_us, text.latency),
        _median(overload.p99_us, text.latency),
        back_words(overload),
    ]


def _median(spread: OverRounds | None, written: Callable[[float], str]) -> str:
    return written(spread.median) if spread else text.MISSING


def _rate(rps: float) -> str:
    return text.significant(rps) if rps else "0"


def back_words(overload: Overload) -> str:
    """Say how long it took to come back, and in how many rounds it didn't."""
    if overload.died:
        return f"it died ({overload.died} of {overload.rounds})"
    if not overload.back_s:
        return "not in 10 s"
    said = text.duration(float(f"{overload.back_s.median:.2g}"))
    return (
        said
        if overload.back == overload.rounds
        else f"{said} ({overload.back} of {overload.rounds})"
    )
