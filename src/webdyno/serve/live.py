"""What is told of a run while it goes on, as often as it changes."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from math import exp, expm1
from typing import Any

from starlette.concurrency import run_in_threadpool

from webdyno.judge import foresee, ratios_so_far
from webdyno.judge.measured import Measured
from webdyno.judge.sweep import PointRun, runs_by_point
from webdyno.judge.validity import left_out_slots
from webdyno.model.format import duration, percent, ratio_range, times
from webdyno.model.records import SlotRecord
from webdyno.run.folder import RunFolder
from webdyno.run.records_file import RECORDS_FILE
from webdyno.serve.runs import state_of

LOOKED_AT_S = 1.0


async def events(folder: RunFolder) -> AsyncIterator[str]:
    """Give server-sent events: what is known now, after each change, until the run has ended."""
    size = -1
    while True:
        running = state_of(folder.path) == "running"
        now = _size(folder)
        if now != size or not running:
            size = now
            told = await run_in_threadpool(snapshot, folder)
            yield f"data: {json.dumps(told | {'running': running})}\n\n"
        if not running:
            return
        await asyncio.sleep(LOOKED_AT_S)


def _size(folder: RunFolder) -> int:
    try:
        return (folder.path / RECORDS_FILE).stat().st_size
    except OSError:
        return 0


def snapshot(folder: RunFolder) -> dict[str, Any]:
    """Say where a run is, and how narrow its intervals are; no verdict."""
    records = folder.records()
    slots = [it for it in records if isinstance(it, SlotRecord)]
    last = slots[-1] if slots else None
    return {
        "points": [_point(run) for run in runs_by_point(folder.head, records)],
        "doing": f"block {last.block}, {last.arm}" if last else "each arm alone, before the blocks",
    }


def _point(run: PointRun) -> dict[str, Any]:
    experiment, records = run.head.experiment, run.records
    measured = Measured.of(records)
    told: dict[str, Any] = {"label": run.point.label, "blocks": len(measured.blocks)}
    rules = Counter(slot.rule for slot in left_out_slots(measured))
    told["left_out"] = ", ".join(f"{rule} {many}" for rule, many in rules.most_common())
    if experiment.race is None:
        told["ratios"] = [
            f"{it.a} ÷ {it.b} {times(it.ratio)} ({ratio_range(it.ratio)})"
            for it in ratios_so_far(experiment, records)
            if it.ratio
        ]
    foreseen = foresee(records, experiment)
    if foreseen is None:
        return told
    found = foreseen.found
    return told | {
        "expected": foreseen.blocks,
        "left": duration(round(foreseen.left_s)),
        "known": percent(expm1(found.half_width)),
        "wanted": percent(expm1(foreseen.wanted)),
        "interval": {"low": exp(found.low), "centre": exp(found.centre), "high": exp(found.high)},
        "half_width": found.half_width,
        "wanted_half_width": foreseen.wanted,
    }
