"""The rows behind the charts."""

from collections.abc import Iterator
from math import ceil, log10
from typing import Any

from webdyno.judge.measured import Measured
from webdyno.model.histogram import Histogram, merge
from webdyno.model.judgement import Judgement
from webdyno.model.metrics import rate_rps
from webdyno.model.records import Record, SlotRecord
from webdyno.report import text
from webdyno.report.evidence import SIGNS, MetricEvidence, verdict_word
from webdyno.report.facts import measured_slots

Rows = list[dict[str, Any]]

TAIL_SAMPLES = 10
"""A percentile is drawn when at least so many answers lie beyond it."""
POINTS_PER_DECADE = 20


def ratios(metrics: list[MetricEvidence]) -> Rows:
    """Give one row per comparison, in the order of the table."""
    return [
        {
            "metric": metric.label,
            "better": f"{metric.metric.better} is better",
            "arm": found.a,
            "against": found.b,
            "ratio": found.ratio.estimate,
            "low": found.ratio.low,
            "high": found.ratio.high,
            "told": f"{text.ratio(found.ratio)}  ({text.ratio_bounds(found.ratio)})",
            "verdict": verdict_word(found.verdict, decides=metric.decides),
            "sign": SIGNS[found.verdict],
            "tone": str(found.verdict),
        }
        for metric in metrics
        for found in metric.compared
        if found.ratio
    ]


def latency(records: list[Record], arms: list[str]) -> Rows:
    """Give each arm's response time at percentiles evenly spaced on the scale 1/(1 − p).

    All measured slots of finished blocks are merged; the curve ends where fewer than ten answers
    are left beyond it.
    """
    slots = Measured.of(records).slots
    return [row for arm in arms for row in _curve(arm, [slot for slot in slots if slot.arm == arm])]


def _curve(arm: str, slots: list[SlotRecord]) -> Iterator[dict[str, Any]]:
    encoded = [slot.load.response_time_us.histogram for slot in slots]
    merged = merge(Histogram.decode(each) for each in encoded if each)
    for beyond in _percentile_grid(merged.total):
        time_us = merged.quantile(1 - beyond)
        if time_us:
            yield {
                "arm": arm,
                "beyond": float(f"{beyond:.4g}"),
                "ms": float(f"{time_us / 1000:.4g}"),
                "percentile": _percentile(beyond),
            }


def _percentile_grid(answers: int) -> list[float]:
    """Give shares of answers that lie beyond a percentile, the same for all arms where they can."""
    grid = [10 ** (-step / POINTS_PER_DECADE) for step in range(9 * POINTS_PER_DECADE)]
    return sorted(
        (share for share in [*grid, 0.5] if share * answers >= TAIL_SAMPLES), reverse=True
    )


def _percentile(beyond: float) -> str:
    """Name a percentile with the digits that tell it from 100."""
    return f"p{100 * (1 - beyond):.{max(0, ceil(-log10(beyond) - 1e-9) - 2)}f}"


def slot_rates(records: list[Record], judgement: Judgement) -> Rows:
    """Give one row per measured slot: when it began, what it achieved, what was wrong with it."""
    slots = measured_slots(records)
    if not slots:
        return []
    counted = {(slot.block, slot.slot) for slot in Measured.of(records).slots}
    broken: dict[tuple[int, int], set[str]] = {}
    for left_out in judgement.left_out:
        broken.setdefault((left_out.block, left_out.slot), set()).add(left_out.rule)
    start = min(slot.started_at for slot in slots)
    return [
        {
            "arm": slot.arm,
            "s": round((slot.started_at - start).total_seconds(), 2),
            "rate": round(rate_rps([slot]) or 0.0, 1),
            "block": slot.block,
            "trouble": ", ".join(sorted(broken.get((slot.block, slot.slot), [])))
            or ("" if (slot.block, slot.slot) in counted else "block not finished"),
        }
        for slot in slots
    ]


def highest_ceiling_rps(records: list[Record]) -> float | None:
    """Give the most that the client could have reached, with the lightest of the answers."""
    readings = [slot.readings for slot in measured_slots(records) if slot.readings]
    return max((each.ceiling.rate_rps for each in readings if each.ceiling), default=None)


def block_spans(records: list[Record]) -> Rows:
    """Give begin and end of each block's measured slots, in seconds since the first slot."""
    slots = measured_slots(records)
    if not slots:
        return []
    start = min(slot.started_at for slot in slots)
    spans: dict[int, list[float]] = {}
    for slot in slots:
        begin = (slot.started_at - start).total_seconds()
        spans.setdefault(slot.block, []).extend([begin, begin + slot.load.measured_s])
    return [{"from": round(min(ends), 2), "to": round(max(ends), 2)} for ends in spans.values()]


def by_block(judgement: Judgement, metric: str) -> Rows:
    """Give one row per arm and block that counted."""
    return [
        {"arm": value.arm, "block": block, "value": float(f"{each:.5g}")}
        for value in judgement.arms
        if value.metric == metric
        for block, each in zip(value.blocks, value.by_block, strict=True)
    ]
