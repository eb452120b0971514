"""Percentiles of latency over all slots of a variant: what the mean of rounds can't show."""

from webdyno.core import format as text
from webdyno.core.histogram import Histogram, merge_encoded
from webdyno.evidence.point_data import PointData
from webdyno.media import document as doc

FEWEST_BEYOND = 10
"""A percentile is known when at least so many responses lie beyond it."""
BEYOND = {"p50": 0.5, "p90": 0.1, "p95": 0.05, "p99": 0.01, "p99.9": 0.001, "p99.99": 0.0001}
"""By name: the share of the responses that take longer."""
ALL_SLOTS = (
    "All slots of a variant merged. The means of rounds, with their CIs, are in the table on top. "
    f"{text.MISSING}: fewer than ten responses took longer."
)


def merged_latency(data: PointData, variant: str) -> Histogram:
    """Give the latencies of all slots of a variant in finished rounds."""
    slots = data.of_variant(variant)
    return merge_encoded(slot.load.latency_us.histogram for slot in slots)


def percentile(merged: Histogram, name: str) -> str:
    """Give one of `BEYOND` in words."""
    share = BEYOND[name]
    us = merged.quantile(1 - share) if merged.total * share >= FEWEST_BEYOND else None
    return text.latency(us) if us else text.MISSING


def latency_table(data: PointData) -> doc.Table | None:
    """Give all percentiles of each variant, whose slots have one load; None where none is known."""
    merged = {variant: merged_latency(data, variant) for variant in data.experiment.variants}
    rows = [
        [variant, *(percentile(times, name) for name in BEYOND)]
        for variant, times in merged.items()
        if times.total
    ]
    columns: dict[str, doc.Kind] = {"variant": "name", **dict.fromkeys(BEYOND, "value")}
    return doc.simple_table(columns, rows, "brief") if rows else None
