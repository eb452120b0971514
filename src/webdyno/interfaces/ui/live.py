"""What the page shows of a run while it goes on: no verdict, as looking often makes wrong ones."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from math import exp, inf
from typing import Any

from starlette.concurrency import run_in_threadpool

from webdyno.comparison import question_of
from webdyno.comparison.sentences import ratio_words
from webdyno.core.format import DASH, duration, percent, significant
from webdyno.core.judgement import Comparison
from webdyno.core.metrics import METRICS
from webdyno.core.records import SlotRecord
from webdyno.evidence.point_data import PointData
from webdyno.interfaces.ui.runs import Version, state_of, version_of
from webdyno.measure.folder import RunFolder
from webdyno.report.words import metric_title
from webdyno.validity import excluded_words, used_s

LOOKED_AT_S = 1.0


async def events(folder: RunFolder) -> AsyncIterator[str]:
    """Return server-sent events: what is known now, after each change, until the run has ended."""
    sent: Version | None = None
    while True:
        running = state_of(folder.path) == "running"
        version = version_of(folder.path)
        if version != sent or not running:
            sent = version
            state = await run_in_threadpool(snapshot, folder)
            yield f"data: {json.dumps(state | {'running': running})}\n\n"
        if not running:
            return
        await asyncio.sleep(LOOKED_AT_S)


def snapshot(folder: RunFolder) -> dict[str, Any]:
    """Return where a run is, and what its rounds gave so far; no verdict."""
    run = folder.data()
    slots = [record for record in run.records if isinstance(record, SlotRecord)]
    doing = "each variant alone, before the rounds"
    if slots:
        doing = f"round {slots[-1].round}, {slots[-1].variant}"
    return {"points": [_point(data) for data in run.points], "doing": doing}


def _point(data: PointData) -> dict[str, Any]:
    question = question_of(data.experiment)
    metric = METRICS[data.measure.decide_on].metric
    compared = question.ratios_so_far(data)
    measure = data.measure
    known: dict[str, Any] = {
        "label": data.point.label,
        "metric": metric_title(metric),
        "better": "more" if metric.better == "higher" else "less",
        "rounds": len(data.rounds),
        "excluded": excluded_words(data),
        "ratios": ratio_words(compared),
        "curves": _curves(compared),
        "took": duration(round(used_s(data))),
    }
    if measure.limit_s < inf:
        known["left_at_most"] = duration(max(round(measure.limit_s - used_s(data)), 0))
    foreseen = question.foresee(data)
    if foreseen is None:
        return known
    if foreseen.can_be_kept(data):
        known |= {"expected": foreseen.rounds, "left": duration(round(foreseen.left_s))}
    half = exp(foreseen.wanted)
    return known | {"wanted": percent(half - 1)}


def _curves(compared: Sequence[Comparison]) -> list[dict[str, Any]]:
    """Return for each ratio that of each round, and its CI so far."""
    return [
        {
            "name": f"{comparison.a} \u00f7 {comparison.b}",
            "rounds": comparison.by_round,
            "low": comparison.decisive.low,
            "high": comparison.decisive.high,
            "told": f"CI so far {significant(comparison.decisive.low, 3)}{DASH}"
            f"{significant(comparison.decisive.high, 3)}",
        }
        for comparison in compared
        if comparison.ratio and comparison.decisive
    ]
