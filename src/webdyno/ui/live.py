"""What is told of a run while it goes on, as often as it changes."""

import asyncio
import json
from collections.abc import AsyncIterator
from math import exp, expm1
from typing import Any

from starlette.concurrency import run_in_threadpool

from webdyno.judge import question_of
from webdyno.judge.point_data import PointData
from webdyno.judge.sentences import ratio_words
from webdyno.judge.validity import excluded_words
from webdyno.model.format import duration, percent
from webdyno.model.records import SlotRecord
from webdyno.run.folder import RunFolder
from webdyno.run.records_file import RECORDS_FILE
from webdyno.ui.runs import state_of

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
    run = folder.data()
    slots = [record for record in run.records if isinstance(record, SlotRecord)]
    last = slots[-1] if slots else None
    return {
        "points": [_point(data) for data in run.points],
        "doing": f"round {last.round}, {last.variant}"
        if last
        else "each variant alone, before the rounds",
    }


def _point(data: PointData) -> dict[str, Any]:
    question = question_of(data.experiment)
    told: dict[str, Any] = {
        "label": data.point.label,
        "rounds": len(data.rounds),
        "excluded": excluded_words(data),
        "ratios": ratio_words(question.ratios_so_far(data)),
    }
    foreseen = question.foresee(data)
    if foreseen is None:
        return told
    found = foreseen.found
    return told | {
        "expected": foreseen.rounds,
        "left": duration(round(foreseen.left_s)),
        "known": percent(expm1(found.half_width)),
        "wanted": percent(expm1(foreseen.wanted)),
        "interval": {"low": exp(found.low), "centre": exp(found.centre), "high": exp(found.high)},
        "half_width": found.half_width,
        "wanted_half_width": foreseen.wanted,
    }
