"""Drifts in a long look: throughput or CPU time per request at another level at the end.

In parts of the stretch, without stalls and what others took part in; only where the change is
beyond 5 % and beyond five standard errors, by how far and how long parts stay off their level.
"""

from collections.abc import Sequence
from math import exp, log, log1p
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from webdyno.judge.interval import TINY, Logs
from webdyno.judge.look_readings import LookReadings
from webdyno.judge.look_windows import Windows, windows_of
from webdyno.judge.steady import MAD_TO_SD, SMALLEST_NOISE, change_points
from webdyno.model.interval import Interval
from webdyno.model.long_look import Drift, Stall
from webdyno.model.records import LongLookRecord

PARTS = 20
CONFIDENCE = 0.95
SMALLEST_DRIFT = log1p(0.05)
DRIFT_SDS = 5.0
DRIFT_PENALTY = 8.0
"""Of a change point, in units of variance · ln n: twice the penalty of pilots."""
DISTURBED_SHARE = 0.05
"""Of a window, which steal and other programs may take before it is left out of drifts."""
HIDDEN_MEMORY, MOST_ALIKE = 0.5, 0.9
"""Of how alike neighbouring parts are, so much is taken out with a step; and what counts at most
(tests/judge/later_simulation.py)."""


def drifts_in(record: LongLookRecord, without: Sequence[Stall]) -> list[Drift] | None:
    """Give what has another level at the end of a stretch than at its beginning.

    None where it is too short for that, or too little of it is left to look at.
    """
    windows, read = windows_of(record), LookReadings.of(record.samples)
    size = len(windows.counts) // PARTS
    if size < 2:
        return None
    kept = _undisturbed(record, windows, read)
    for stall in without:
        first = max(int(stall.at_s / windows.length_s) - 1, 0)
        last = int((stall.at_s + stall.length_s) / windows.length_s) + 2
        kept[first:last] = False
    parts_s: Logs = np.arange(PARTS + 1.0) * size * windows.length_s
    cpu_s = read.grown(read.cpu_s, parts_s) if read.tell else np.zeros(PARTS)
    at_s, rates, work = list[float](), list[float](), list[float]()
    for part in range(PARTS):
        window = slice(part * size, (part + 1) * size)
        looked_at = int(kept[window].sum())
        responses = float(windows.counts[window][kept[window]].sum())
        if looked_at < size / 2 or not responses:
            continue
        at_s.append(part * size * windows.length_s)
        rates.append(log(responses / looked_at))
        if cpu_s[part] > 0:
            work.append(log(cpu_s[part] / float(windows.counts[window].sum())))
    if len(at_s) < PARTS / 2:
        return None
    of_rate = _change("rate_rps", rates, at_s) if record.load.loop == "closed" else None
    of_work = _change("server_cpu_us", work, at_s) if len(work) == len(at_s) else None
    return [found for found in (of_rate, of_work) if found]


def _undisturbed(record: LongLookRecord, windows: Windows, read: LookReadings) -> NDArray[np.bool_]:
    """Tell in which windows the servers had their CPUs: what others take is no drift."""
    if not read.tell:
        return np.ones(len(windows.counts), dtype=bool)
    edges_s: Logs = np.arange(len(windows.counts) + 1.0) * windows.length_s
    others_s = np.minimum(read.grown(read.others_s, edges_s), read.grown(read.waited_s, edges_s))
    most_s = DISTURBED_SHARE * windows.length_s * max(record.server_cpus, 1)
    return np.asarray(read.grown(read.stolen_s, edges_s) + others_s <= most_s)


def _change(
    metric: Literal["rate_rps", "server_cpu_us"], values: Sequence[float], begins_s: Sequence[float]
) -> Drift | None:
    """Compare the last level with the first one, if they differ beyond noise and its memory."""
    levels = np.array(values)
    apart = np.abs(np.diff(levels))
    noise = max(MAD_TO_SD * float(np.median(apart)) / 2**0.5, SMALLEST_NOISE)
    at = change_points(levels, DRIFT_PENALTY * noise**2 * log(len(levels)))
    if not at:
        return None
    first, last = levels[: at[0]], levels[at[-1] :]
    if min(len(first), len(last)) < 2:
        return None
    change = float(last.mean() - first.mean())
    spread = max(noise, float(first.std(ddof=1)), float(last.std(ddof=1)))
    memory = _memory(levels)
    error = spread * (memory / len(first) + memory / len(last)) ** 0.5
    if abs(change) < max(SMALLEST_DRIFT, DRIFT_SDS * error):
        return None
    half = float(stdtrit(len(first) + len(last) - 2, (1 + CONFIDENCE) / 2)) * error
    return Drift(
        metric=metric,
        change=Interval(low=exp(change - half), estimate=exp(change), high=exp(change + half)),
        at_s=begins_s[at[0]] if len(at) == 1 else None,
    )


def _memory(levels: Logs) -> float:
    """Give for how many parts noise remembers, by what is left when the one best step is taken out.

    More steps would take out the memory itself: slow noise looks like many of them.
    """
    rests = [
        np.concatenate([levels[:cut] - levels[:cut].mean(), levels[cut:] - levels[cut:].mean()])
        for cut in range(2, len(levels) - 1)
    ]
    rest = min(rests, key=lambda it: float(it @ it))
    left = float(rest[1:] @ rest[:-1]) / max(float(rest @ rest), TINY)
    alike = min(max(left + HIDDEN_MEMORY * (1 - left), 0.0), MOST_ALIKE)
    return (1 + alike) / (1 - alike)
