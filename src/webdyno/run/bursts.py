"""The look of a pilot at a warm-up in bursts, and whether pauses make an arm faster.

A load that takes all of the servers' CPU starves what they do beside answering, such as compiling
what is called often: with many busy threads a compiler's one gets next to nothing, and code that
was never compiled looks as steady as any. It shows when the load is over: the servers work on.
"""

import time
from collections.abc import Sequence

from webdyno.judge.bursts import HOW, bursts_may_end, looked_s, worth
from webdyno.judge.pilot import Needs
from webdyno.judge.steady import Series
from webdyno.model.measure import Measure
from webdyno.model.pilot import BURST_PAUSE_S, BURST_S, BurstsLook
from webdyno.run.arm import RunningBlock
from webdyno.run.planned import PlannedArm
from webdyno.run.point import MeasuredPoint, prepared
from webdyno.run.seen import PIECE_S, WINDOW_S, Loaded, Seen

REST_S = 0.1
"""Servers that rest do so within this time after a load."""
PERIOD_S = BURST_S + BURST_PAUSE_S


def look_in_bursts(
    at: MeasuredPoint, arm: PlannedArm, needs: Needs, looks: Sequence[Seen], *, works_on: bool
) -> BurstsLook | None:
    """Try a warm-up in bursts, if it is asked for, or may matter.

    `looks`: those at fresh starts under continuous load. `works_on`: whether the servers still
    worked when the first of these was over. Gives None where nothing was tried, or failed.
    """
    measure = at.experiment.measure
    most = int(needs.most_warmup_s / PERIOD_S)
    if not _is_tried(measure, works_on=works_on) or looks[-1].failed:
        return None
    is_asked = measure.warmup_bursts == "on"
    if is_asked:
        most = max(most, 1)
    if not most:
        return None
    bursts, after = _in_bursts(at, arm, most, looks)
    if after.failed:
        return None
    if is_asked:
        return _record(bursts, after, HOW)
    if not _worth(after, looks):
        return _record(bursts, after, "")
    continuous = _continuous(at, arm, len(bursts) * PERIOD_S + len(after.answers) * WINDOW_S)
    return _record(bursts, after, _worth(after, [*looks, continuous]), continuous)


def _is_tried(measure: Measure, *, works_on: bool) -> bool:
    """Whether the pilot of an arm whose servers work on after a load, or not, tries bursts."""
    if measure.warmup_s is not None or measure.warmup_bursts == "off":
        return False
    return works_on or measure.warmup_bursts == "on"


def series_after(look: BurstsLook) -> list[Series]:
    """Give the rate that was seen after bursts."""
    return Seen(answers=look.after).series()


def _in_bursts(
    at: MeasuredPoint, arm: PlannedArm, most: int, looks: Sequence[Seen]
) -> tuple[list[Seen], Seen]:
    """Start an arm, load it in bursts until more would be in vain, then without a break.

    For long enough then to be held against `looks`.
    """
    bursts, after = list[Seen](), Seen()
    with prepared(at, 0), RunningBlock(at, 0) as running:
        load = _started(running, arm)
        rests = False
        while len(bursts) < most and not bursts_may_end(_rates(bursts), rests=rests):
            bursts.append(Seen())
            load.watch(bursts[-1], BURST_S)
            rests = _pause(running)
        load.watch(after, looked_s(min(_rates([*looks, bursts[-1]])), PIECE_S))
    return bursts, after


def _continuous(at: MeasuredPoint, arm: PlannedArm, load_s: float) -> Seen:
    """Start an arm, and load it for so long without a break."""
    seen = Seen()
    with prepared(at, 0), RunningBlock(at, 0) as running:
        _started(running, arm).watch(seen, load_s)
    return seen


def _started(running: RunningBlock, arm: PlannedArm) -> Loaded:
    running.start(arm)
    running.at.roles.clients.get_ready(arm.name)
    return Loaded(running, arm)


def _pause(running: RunningBlock) -> bool:
    """Make the pause after a burst; tell whether the servers rest at its end."""
    ends = time.monotonic() + BURST_PAUSE_S
    time.sleep(BURST_PAUSE_S - REST_S)
    rests = running.waits_for_rest(REST_S)
    time.sleep(max(ends - time.monotonic(), 0.0))
    return rests


def _rates(looks: Sequence[Seen]) -> list[float]:
    return [sum(it.answers) / (max(len(it.answers), 1) * WINDOW_S) for it in looks]


def _worth(after: Seen, continuous: Sequence[Seen]) -> str:
    joined = max(it.joined for it in [after, *continuous])
    return worth(after.series(joined), [it.series(joined) for it in continuous])


def _record(
    bursts: Sequence[Seen], after: Seen, told: str, continuous: Seen | None = None
) -> BurstsLook:
    return BurstsLook(
        bursts=[it.answers for it in bursts],
        after=after.answers,
        after_cpu_s=after.cpu_s,
        continuous=continuous.answers if continuous else [],
        continuous_cpu_s=continuous.cpu_s if continuous else [],
        told=told,
    )
