"""An open-loop sweep as the sheet that autobench writes: a row per demanded rate, columns per host.

In the place of a host stands an arm, with the levels of all factors but the rate. Reply rates are
those of slots, where httperf takes a sample every five seconds; network I/O is answers only.
"""

import csv
import io
from collections.abc import Iterable, Sequence
from statistics import fmean, pstdev

from webdyno.judge.point_data import RunData
from webdyno.model.metrics import rate_rps
from webdyno.model.mistake import Mistake
from webdyno.model.point import Point
from webdyno.model.records import SlotRecord

COLUMNS = (
    "req_rate",
    "con_rate",
    "min_rep_rate",
    "avg_rep_rate",
    "max_rep_rate",
    "stddev_rep_rate",
    "resp_time",
    "net_io",
    "errors",
)

Figures = Sequence[float | None]


def autobench_sheet(run: RunData) -> str:
    """Write the finished blocks as CSV; raise Mistake when no rate was demanded."""
    rows: dict[float, dict[str, Figures]] = {}
    for data in run.points:
        for arm in data.experiment.arms:
            demanded = data.experiment.load_of(arm).offered_rps
            if demanded is None:
                raise Mistake(
                    "autobench's sheet has a row for each demanded rate, but this run has a closed "
                    "loop, which demands none; leave --autobench out"
                )
            if own := data.of_arm(arm):
                rows.setdefault(demanded, {})[_host(arm, data.point)] = _figures(own)
    hosts = list(dict.fromkeys(host for row in rows.values() for host in row))
    sheet = io.StringIO()
    writer = csv.writer(sheet, lineterminator="\n")
    writer.writerow(["dem_req_rate", *(f"{name}_{host}" for host in hosts for name in COLUMNS)])
    for demanded, row in sorted(rows.items()):
        cells = [cell for host in hosts for cell in row.get(host, [None] * len(COLUMNS))]
        writer.writerow(
            [f"{demanded:g}", *("" if cell is None else f"{cell:.1f}" for cell in cells)]
        )
    return sheet.getvalue()


def _host(arm: str, point: Point) -> str:
    others = [str(level) for key, level in point.levels.items() if key != "load.rate_per_s"]
    return "-".join([arm, *others])


def _figures(slots: Sequence[SlotRecord]) -> Figures:
    """Give what stands in COLUMNS, in their units: per second, ms, KiB/s, percent."""
    loads = [slot.load for slot in slots]
    measured_s = sum(load.measured_s for load in loads)
    completed = sum(load.requests.completed for load in loads)
    failed = sum(load.failures.total for load in loads)
    sent = _sum(load.requests.sent for load in loads)
    opened = _sum(load.connections.opened for load in loads)
    received = _sum(part for load in loads for part in (load.bytes.head, load.bytes.body))
    means_us = [load.service_time_us.mean for load in loads]
    rates = [rate_rps([slot]) or 0.0 for slot in slots]
    return (
        (completed + failed if sent is None else sent) / measured_s,
        None if opened is None else opened / measured_s,
        min(rates),
        fmean(rates),
        max(rates),
        pstdev(rates),
        _weighted_ms(means_us, [load.requests.completed for load in loads]),
        None if received is None else received / 1024 / measured_s,
        100 * failed / max(completed + failed, 1),
    )


def _sum(counts: Iterable[int | None]) -> int | None:
    """Add up; None when one of them wasn't told."""
    found = list(counts)
    known = [count for count in found if count is not None]
    return sum(known) if len(known) == len(found) else None


def _weighted_ms(means_us: Sequence[float | None], weights: Sequence[int]) -> float | None:
    told = [(mean, n) for mean, n in zip(means_us, weights, strict=True) if mean is not None and n]
    if not told:
        return None
    return sum(mean * n for mean, n in told) / sum(n for _, n in told) / 1000
