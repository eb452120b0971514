"""A result in some twenty lines: what a terminal shows unless all is requested.

The verdict first, then one table with names in columns, what limits the figures, and a line each
for why, limit and trust. All the rest has `--verbose` and the page.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import ceil
from pathlib import Path
from statistics import median

from webdyno.judge.judgement import decisive
from webdyno.judge.long_look import warnings_words
from webdyno.judge.point_data import PointData
from webdyno.judge.sentences import verdict_word
from webdyno.judge.time_spent import explanation_in_short, what_waits
from webdyno.judge.validity import SHORT_RUN, excluded_words
from webdyno.model import format as text
from webdyno.model.command import command
from webdyno.model.experiment import Experiment
from webdyno.model.judgement import Comparison, Judgement, Metric, VariantValue, Verdict
from webdyno.model.load import Load
from webdyno.model.metrics import CAPACITY
from webdyno.model.records import SlotRecord
from webdyno.report import document as doc
from webdyno.report.around_rounds import preflight_of
from webdyno.report.gate import gate_document
from webdyno.report.ratio_tables import MetricTable
from webdyno.report.result import cause_sections, deciding_table, outcome, said_of_deciding, tuning
from webdyno.report.view import PointView, RunView
from webdyno.report.words import (
    MICROSECONDS,
    SIGNS,
    metric_title,
    ratio_and_interval,
    sure_bounds,
    verdict_cell,
)

BUSY = 0.9
"""Share of its CPUs' time from which a server or a client counts as saturated."""
SHOWN = (
    *("throughput_rps", "capacity_rps", "server_cpu_us"),
    *("latency_p50_us", "latency_p99_us", "memory_mib"),
)
"""Metrics that are shown beside the deciding one; the page has all."""
MOST_COLUMNS = 2
"""Variants that have columns of their own; more of them have rows."""
MOST_ENDPOINTS = 4
"""Endpoints on which variants differ that are named."""


def brief(view: RunView) -> doc.Document:
    """Give what a terminal shows of a run."""
    if view.gate:
        return gate_document(view.gate)
    experiment = view.head.experiment
    return doc.Document(experiment.title, scope(experiment), list(_blocks(view)), in_one_line=True)


def scope(experiment: Experiment) -> str:
    """Say in one line what was asked of the variants: `GET /a · 64 keep-alive connections`."""
    load = experiment.load_of_slots
    asked = [request.label for request in experiment.asked] or [f"GET {it}" for it in load.paths]
    return " · ".join([text.listed_to(1, asked), *_load(load)])


def _load(load: Load) -> Iterator[str]:
    keep = "keep-alive " if load.keepalive == "always" else ""
    yield text.count(load.connections, f"{keep}connection")
    yield f"{load.rate_per_s:,g} {load.due}s/s" if load.rate_per_s else "full speed"


def _blocks(view: RunView) -> Iterator[doc.Block]:
    yield outcome(view)
    if view.several:
        yield from view.warnings
        yield from _sweep(view)
        return
    point = view.points[0]
    yield from _wrong_responses(point)
    yield from _callouts(view)
    if point.deciding and not _is_invalid(view):
        yield _table(point, point.deciding)
        yield from cause_sections(point.judgement, brief=True)
    elif not view.warnings:
        yield from said_of_deciding(view)
    yield from tuning(view)
    if _is_invalid(view):
        return
    if facts := [*_facts(point)]:
        yield doc.FactList(facts)


def next_steps(view: RunView, run: Path) -> doc.Facts:
    """Give the commands that are worth a thought after this response."""
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
        names = list(wrong[0].by_variant)
        columns = [
            doc.Column("response", "name", obvious=True),
            *(doc.Column(name) for name in names),
        ]
        rows = [
            [line.what, *(line.by_variant.get(name, text.MISSING) for name in names)]
            for line in wrong
        ]
        yield doc.Section(wrong[0].about, [doc.Table(columns, [doc.RowGroup(rows)])])


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
        yield doc.Section(view.deciding[0].title, [deciding_table(view)])
    else:
        yield from said_of_deciding(view)


def _table(point: PointView, deciding: MetricTable) -> doc.Table:
    beside = [it for it in point.beside if it.metric.name in SHOWN]
    if deciding.ranked or len(deciding.rows) > MOST_COLUMNS:
        return _rows_of_variants(point, deciding, beside)
    return _columns_of_variants(point, [deciding, *beside])


def _columns_of_variants(point: PointView, tables: Sequence[MetricTable]) -> doc.Table:
    """Give a row for each metric: names in columns, and of two their ratio."""
    variants = [row.variant for row in tables[0].rows]
    compared = bool(tables[0].rows[0].comparison)
    columns = [doc.Column("metric", "name", obvious=True)]
    columns += [doc.Column(it, "value") for it in variants[:-1]]
    columns.append(doc.Column(f"{variants[-1]} (baseline)" if compared else variants[-1], "value"))
    if compared:
        columns += [
            doc.Column("ratio", "ratio"),
            doc.Column("95% CI", "range"),
            doc.Column("verdict", "verdict", obvious=True),
        ]
    rows = [
        [
            doc.Cell(metric_title(it.metric), strong=number == 0),
            *(_value(it.metric, row.value) for row in it.rows),
            *(_compared(it.rows[0].comparison, decides=number == 0) if compared else ()),
        ]
        for number, it in enumerate(tables)
    ]
    if tables[0].metric.name != CAPACITY:  # the trials of a search fail by intent
        blank = [""] * 3 if compared else []
        rows.insert(1, ["Failed requests", *(_failed(point.data, it) for it in variants), *blank])
    return doc.Table(columns, [doc.RowGroup(rows)], style="brief")


def _rows_of_variants(
    point: PointView, deciding: MetricTable, beside: Sequence[MetricTable]
) -> doc.Table:
    """Give a row for each variant, in a ranking in that of the ranks."""
    columns = [
        *([doc.Column("rank", "rank")] if deciding.ranked else []),
        doc.Column("variant", "name", obvious=True),
        doc.Column(metric_title(deciding.metric), "value"),
        doc.Column("ratio", "ratio"),
        doc.Column("95% CI", "range"),
        doc.Column("verdict", "verdict", obvious=True),
        *(doc.Column(metric_title(it.metric), "value", spare=True) for it in beside),
        doc.Column("Failed", "value"),
    ]
    values = [{row.variant: row.value for row in it.rows} for it in beside]
    rows = [
        [
            *([row.rank] if deciding.ranked else []),
            row.variant,
            _value(deciding.metric, row.value),
            *_compared(row.comparison, decides=True),
            *(
                _value(it.metric, known.get(row.variant))
                for it, known in zip(beside, values, strict=True)
            ),
            _failed(point.data, row.variant),
        ]
        for row in deciding.rows
    ]
    return doc.Table(columns, [doc.RowGroup(rows)], style="brief")


def _value(metric: Metric, value: VariantValue | None) -> str:
    """Give a variant's value; latencies in the unit that suits them."""
    if value is None:
        return text.MISSING
    known = value.interval.estimate if value.interval else next(iter(value.by_round), None)
    if known is None:
        return text.MISSING
    if metric.unit == MICROSECONDS:
        return text.latency(known)
    return text.quantity(value.interval) if value.interval else text.significant(known)


def _failed(data: PointData, variant: str) -> str:
    return text.number(sum(slot.load.failures.total for slot in data.of_variant(variant)))


def _compared(found: Comparison | None, *, decides: bool) -> list[doc.Cell | str]:
    if found is None:
        return ["", "", doc.Cell("baseline", soft=True)]
    ratio, _ = ratio_and_interval(found)
    name = verdict_word(found.verdict, found.metric)
    word = verdict_cell(found.verdict, name) if decides else doc.Cell(_direction(found), soft=True)
    return [doc.Cell(ratio, strong=decides), doc.Cell(sure_bounds(found), soft=True), word]


def _direction(found: Comparison) -> str:
    """Say of what isn't the verdict only which way it goes."""
    if found.verdict in {Verdict.FASTER, Verdict.SLOWER} and found.ratio:
        return "higher" if found.ratio.estimate > 1 else "lower"
    return "same" if found.verdict is Verdict.EQUIVALENT else str(found.verdict)


def _facts(point: PointView) -> Iterator[tuple[str, str]]:
    judged = point.judgement
    if point.endpoints:
        yield "Endpoints", _endpoints(judged)
    whys = [*filter(None, map(explanation_in_short, judged.explanations)), *what_waits(judged)]
    if whys:
        yield "Why", " ".join(whys)
    if judged.rounds:
        if point.data.measure.decide_on != CAPACITY:  # a search goes up to the limit
            yield "Limit", _limit(point.data)
        yield "Trust", _trust(point)
    if judged.looks:
        yield "Longer load", "; ".join(f"{it.variant}: {warnings_words(it)}" for it in judged.looks)


def _endpoints(judged: Judgement) -> str:
    """Say on how many endpoints the median latency differs, and on which."""
    different = [
        f"{it.endpoint} {SIGNS[found.verdict]} {text.times(found.ratio)}"
        for it in judged.endpoints
        for found in it.comparisons
        if found.ratio and found.verdict in {Verdict.FASTER, Verdict.SLOWER}
    ]
    said = f"{len(judged.endpoints)} measured"
    if not different:
        return f"{said}; no difference in median latency found"
    return f"{said}; median latency differs: {text.listed_to(MOST_ENDPOINTS, different)}"


def _limit(data: PointData) -> str:
    """Say how busy the CPUs of servers and client were: which of them was saturated."""
    slots = [slot for slot in data.slots if slot.phase == "measure"]
    busy = {
        variant: _busy(data, mine)
        for variant in data.experiment.variants
        if (mine := data.of_variant(variant))
    }
    saturated = [variant for variant, share in busy.items() if share >= BUSY]
    if len(saturated) == len(busy):
        of_servers = "server CPU saturated" + (" on all" if len(busy) > 1 else "")
    elif saturated:
        of_servers = f"server CPU saturated on {text.listed(saturated)}"
    else:
        of_servers = f"server CPU {_percents(min(busy.values()), max(busy.values()))} busy"
    client = max((slot.load.client.busy for slot in slots), default=0.0)
    of_client = "client saturated" if client >= BUSY else "client has headroom"
    closed = saturated and all(slot.load.loop == "closed" for slot in slots)
    queueing = ". Latency includes queueing" if closed else ""
    return f"{of_servers}; {of_client} ({text.percent(client)} busy){queueing}"


def _percents(low: float, high: float) -> str:
    shown, most = text.percent(low), text.percent(high)
    return shown if shown == most else f"{shown.removesuffix('%')}{text.DASH}{most}"


def _busy(data: PointData, slots: Sequence[SlotRecord]) -> float:
    """Give the share of its CPUs that a variant's servers used: the median of its slots."""
    cpus = (
        data.experiment.variants[slots[0].variant].cpus or len(data.head.machine.split.servers) or 1
    )
    lengths = [(slot.servers.cpu_s, slot.load.all_of_it.length_s) for slot in slots]
    return median([min(cpu_s / (took_s * cpus), 1.0) for cpu_s, took_s in lengths if took_s] or [0])


def _trust(point: PointView) -> str:
    """Say how often variants were restarted, what interfered, and what was excluded."""
    judged = point.judgement
    each = " each, interleaved" if len(point.data.experiment.variants) > 1 else ""
    said = [f"{text.count(judged.rounds, 'restart')}{each}"]
    asked = decisive(judged.comparisons, point.data.measure.decide_on)
    if asked:
        said.append(_interference(asked))
    slots = {(it.round, it.slot) for it in judged.excluded}
    if slots:
        of = len(point.data.slots)
        said.append(f"{len(slots)} of {of} slots excluded ({excluded_words(point.data)})")
    return "; ".join(filter(None, said))


def _interference(asked: Sequence[Comparison]) -> str:
    """Say how far interference can have shifted the ratio at most."""
    shifts = [
        max(it.worst_case.high / it.ratio.high, it.ratio.low / it.worst_case.low) - 1
        for it in asked
        if it.worst_case and it.ratio and it.worst_case.low > 0
    ]
    if not shifts:
        return "no interference seen"
    most = max(shifts)
    if most > 1:
        return "interference can't be bounded tightly, see the report"
    return f"interference at most {text.percent(most)}, included in the CI"
