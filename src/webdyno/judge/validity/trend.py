"""Whether the servers had settled: a trend over a block, or inside its slots, means they hadn't.

A closed loop shows it by its rate. That of an open loop is its timetable's, which rises and falls
in all slots alike: there it is the requests that a second of the servers' CPU time answers.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import expm1, log
from statistics import fmean

import numpy as np

from webdyno.judge.interval import Estimate, estimate
from webdyno.judge.point_data import Block, PointData
from webdyno.model.format import percent
from webdyno.model.judgement import Finding
from webdyno.model.metrics import rate_rps, server_cpu_us
from webdyno.model.records import SlotRecord

ALPHA = 0.01
"""Of "there is a trend" by chance, in any arm: five times as strict as a verdict."""

LARGEST_CHANGE = 20.0
"""Of ln(rate); beyond it a rate is a billion times another, and records are damaged."""

THIRD_IN_RESPONSE_TIMES = 20
"""How long a third of a slot must be to be judged, in mean response times: a slot's first answers
come a service time after its beginning, which takes as much as that off its first third."""


@dataclass(frozen=True)
class Trend:
    """A rule about arms whose rate rises or falls in block after block, one way to look for it."""

    name: str
    change: Callable[[Block, str], float | None]
    """Change of ln(rate), or of `work_rate`, of an arm in a block; None where it can't be told."""
    noted: float
    """Changes of the rate up to this aren't worth a word."""
    over: str
    remedy: str
    seen: float = 1.0
    """Share of the time that the values are of over which the change was seen."""

    def findings(self, data: PointData) -> list[Finding]:
        """Tell the arms that have one.

        Each block gives one change; their t interval tells whether they have a direction in common.
        """
        arms = list(data.experiment.arms)
        found = (self._of_arm(data, arm, ALPHA / len(arms)) for arm in arms)
        return [finding for finding in found if finding is not None]

    def sure_change(self, data: PointData, arm: str, alpha: float = ALPHA) -> Estimate | None:
        """Give the change of ln(rate), or of ln(`work_rate`), where it is sure and worth a word."""
        changes = [d for block in data.blocks if (d := self.change(block, arm)) is not None]
        if len(changes) < 2:
            return None
        mean = estimate(np.array(changes), 1 - alpha)
        large = abs(expm1(min(mean.centre, LARGEST_CHANGE))) > self.noted
        return mean if large and mean.excludes_zero() else None

    def _of_arm(self, data: PointData, arm: str, alpha: float) -> Finding | None:
        mean = self.sure_change(data, arm, alpha)
        if mean is None:
            return None
        change = expm1(min(mean.centre, LARGEST_CHANGE))
        direction = "rises" if change > 0 else "falls"
        return Finding(
            rule=self.name,
            severity="note",
            arm=arm,
            what=f"arm {arm}: {pace(data, arm)} {direction} by {percent(abs(change))} from the "
            f"first to the last {self.over}; how far that can have moved its figures counts "
            "against the verdict",
            remedy=self.remedy,
        )


def pace(data: PointData, arm: str) -> str:
    """Name what a trend of an arm is about."""
    is_open = any(slot.load.loop == "open" for slot in data.of_arm(arm))
    return "what a second of its CPU time answers" if is_open else "its rate"


def work_rate(slot: SlotRecord) -> float | None:
    """Give the rate of a slot, or in an open loop the answers per second of server CPU time."""
    if slot.load.loop == "closed":
        return rate_rps([slot])
    cost_us = server_cpu_us([slot])
    return 1e6 / cost_us if cost_us else None


def _over_the_block(block: Block, arm: str) -> float | None:
    """Change from the arm's first slot in a block to its last, on the fitted line."""
    rates = {slot.slot: work_rate(slot) for slot in block.of(arm)}
    points = [(position, rate) for position, rate in rates.items() if rate is not None]
    if len(points) < 2:
        return None
    position, logs = np.array([p for p, _ in points]), np.log([rate for _, rate in points])
    centred = position - position.mean()
    slope = float(centred @ logs) / float(centred @ centred)
    return slope * float(np.ptp(position))


def _inside_slots(block: Block, arm: str) -> float | None:
    """Change from the first third of a slot to the last, the mean of the arm's slots."""
    changes = [change for slot in block.of(arm) if (change := _inside(slot)) is not None]
    return fmean(changes) if changes else None


def _inside(slot: SlotRecord) -> float | None:
    windows, response_us = slot.load.counted_windows, slot.load.response_time_us.mean
    if slot.load.loop == "open" or len(windows) < 3 or response_us is None:
        return None
    first, last = windows[0], windows[-1]
    short = min(first.length_s, last.length_s) < THIRD_IN_RESPONSE_TIMES * response_us / 1e6
    if short or not all((first.completed, last.completed, first.length_s, last.length_s)):
        return None
    return log(last.completed / last.length_s) - log(first.completed / first.length_s)


RULES = (
    Trend(
        "trend",
        _over_the_block,
        noted=0.02,  # ABBA order cancels what all arms have in common of it
        over="slot of a block",
        remedy="Warm up longer (--set measure.warmup_s=5); a rate that falls on and on points to "
        "a leak, a growing queue or throttled CPUs.",
    ),
    Trend(
        "slot-trend",
        _inside_slots,
        noted=0.05,
        over="third of its slots",
        seen=2 / 3,  # from the middle of the first third to that of the last
        remedy="Make slots longer, so that their beginning weighs less (--set measure.slot_s=2); a "
        "rate that falls points to CPUs that are throttled after a burst.",
    ),
)
