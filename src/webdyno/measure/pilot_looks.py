"""What a pilot sees of a variant alone under load, window by window: unbroken, and in bursts.

A load that takes all of the servers' CPU starves what they do next to answering, such as compiling
what is called often: with many busy threads a compiler's one gets next to nothing, and code that
was never compiled looks as steady as any. It shows when the load is over: the servers work on. So a
warm-up in bursts is tried then, with pauses that may make the variant faster.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Self

import numpy as np

from webdyno.core.load_result import LoadResult
from webdyno.core.looks import BURST_PAUSE_S, BURST_S, BurstsLook
from webdyno.measure.planned import PlannedVariant
from webdyno.measure.point import RunningPoint
from webdyno.measure.variant import RunningRound
from webdyno.planning.pilot import HOW, Needs, bursts_may_end, looked_s, worth
from webdyno.statistics.steady import Series, windows_to_join
from webdyno.statistics.steady_starts import Step, next_step

WINDOW_S = 0.025
PIECE_S = 1.0
"""Length by which the load after a fresh start is extended until it is seen to be steady."""
FIRST_SHARE, MOST_FIRST_S = 1 / 225, 4.0
"""Of the budget: the first look, where that is longer. Runtimes that compile what runs often change
after seconds: Fastify with PostgreSQL gave 40% more in a round's second slot than in its first."""
LEAST_LONGER_S = 0.25
"""No look goes on for less: that shows nothing, and the load starts again after each."""
LOAD_STARTS = 2
LOAD_START_S, LOAD_START_RESPONSES = 0.3, 6
PAUSE_S = 0.05
REST_S = 0.1
"""Servers that go to rest after a load do so within this time."""
PERIOD_S = BURST_S + BURST_PAUSE_S


@dataclass
class PilotLook:
    """What was seen of a variant under load, by window of `WINDOW_S`."""

    responses: list[int] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)
    """Empty where the machine has no control groups: walking the tree of processes so often would
    interfere."""
    answered: int = 0
    answered_in_s: float = 0.0
    """Their latencies, added up."""
    failed: bool = False
    """Whether there were failures instead of responses."""

    @property
    def latency_s(self) -> float | None:
        """The mean latency; None without a response."""
        return self.answered_in_s / self.answered if self.answered else None

    @property
    def joined_windows(self) -> int:
        return windows_to_join(self.responses)

    @property
    def length_s(self) -> float:
        return len(self.responses) * WINDOW_S

    def go_on_with(self, later: Iterable[Self]) -> None:
        """Add loads that came after what was seen: a variant warms up in them as well."""
        for load in later:
            self.responses += load.responses
            self.cpu_s += load.cpu_s

    def series(self, joined: int | None = None) -> list[Series]:
        """Return ln of the throughput, and of CPU time per response where that is known."""
        joined = joined or self.joined_windows
        throughput = Series.of_counts(self.responses, WINDOW_S, joined)
        whole = len(throughput.logs) * joined
        if not whole or len(self.cpu_s) < whole or not sum(self.cpu_s):
            return [throughput]
        sums = np.array(self.cpu_s[:whole]).reshape(-1, joined).sum(axis=1)
        least = max(sums.mean() / 100, 1e-9)
        responses = np.exp(throughput.logs) * throughput.window_s
        return [
            throughput,
            Series(throughput.window_s, np.log(np.maximum(sums, least) / responses)),
        ]


@dataclass
class PilotLoad:
    """A variant that is up, and what loads it."""

    running: RunningRound
    variant: PlannedVariant
    works_on: bool = False
    """Whether the servers still worked some time after a load."""

    def until_steady(
        self,
        looks: list[PilotLook],
        most_s: float,
        needs_of: Callable[[float | None], Needs],
        *,
        piece_s: float,
        ends_s: float,
        is_last_start: bool,
    ) -> tuple[Step, list[PilotLook]]:
        """Load the fresh servers until they are steady or have to be started again to report.

        For so long at most, some starts of load included, which are given: they say whether the
        variant is faster later. `needs_of` says by the latency how long these may be. It begins
        with `piece_s`, and doesn't go on where that, and the load's starts after it, would take the
        point beyond `ends_s`. What is seen is added to `looks`, those at earlier fresh starts.
        """
        point = self.running.point
        seen = PilotLook()
        looks.append(seen)
        first_s = min(FIRST_SHARE * point.experiment.measure.budget_s, MOST_FIRST_S)
        while True:
            longer_s = max(piece_s, first_s, seen.length_s)
            self.watch(seen, min(longer_s, max(most_s - seen.length_s, LEAST_LONGER_S)))
            if seen.failed:
                return "enough", []
            starts = self.starts(seen, needs_of(seen.latency_s).most_slot_s)
            step = step_after(looks, starts, is_last_start)
            more_s = LEAST_LONGER_S + total_s(starts)
            has_time = seen.length_s + LEAST_LONGER_S <= most_s and point.used_s + more_s <= ends_s
            if step != "longer" or not has_time:
                return step, starts
            seen.go_on_with(starts)

    def starts(self, seen: PilotLook, most_s: float) -> list[PilotLook]:
        """Begin the load some more times, each after a pause."""
        self.works_on |= not self.running.waits_for_rest(REST_S)
        latency_s = seen.latency_s or 0.0
        wanted_s = max(
            LOAD_START_S, LOAD_START_RESPONSES * latency_s, 4 * seen.joined_windows * WINDOW_S
        )
        load_s = min(wanted_s, most_s)
        begun = [PilotLook() for _ in range(LOAD_STARTS)]
        for start in begun:
            time.sleep(PAUSE_S)
            self.watch(start, load_s)
        return begun

    def watch(self, seen: PilotLook, load_s: float) -> None:
        """Load it for so long, and add what is seen."""
        sampled: Sequence[tuple[float, float]] = ()
        if self.running.up[self.variant.name].is_counted:
            servers = self.running.point.testbed.servers
            servers.sampling_begins(self.variant.name, WINDOW_S)
            try:
                result = self._load(load_s)
            finally:
                sampled = servers.sampling_ends()
        else:
            result = self._load(load_s)
        responses = _responses(result)
        seen.responses += responses
        seen.cpu_s += _by_window(sampled, len(responses))
        completed = result.requests.completed
        seen.answered += completed
        seen.answered_in_s += completed * (result.latency_us.mean or 0.0) / 1e6
        seen.failed = result.failures.total > result.requests.completed

    def _load(self, load_s: float) -> LoadResult:
        name = f"pilot of {self.variant.name}"
        variant = replace(self.variant, load=self.variant.load.one_by_one)
        order = self.running.order(variant, name, load_s, window_s=WINDOW_S)
        testbed = self.running.point.testbed
        result = testbed.load(self.variant.name, order)
        testbed.servers.check_alive(self.variant.name)
        return result


def total_s(looks: Iterable[PilotLook]) -> float:
    return sum(each.length_s for each in looks)


def step_after(
    looks: Sequence[PilotLook], starts: Sequence[PilotLook], is_last_start: bool
) -> Step:
    """Return the next step by what was seen at fresh starts, and at starts of load."""
    return next_step(*series_of(looks, starts), is_last_start=is_last_start)


def series_of(
    looks: Sequence[PilotLook], starts: Sequence[PilotLook]
) -> tuple[list[list[Series]], list[list[Series]]]:
    """Return the series of fresh starts, and of starts of load in windows as long as the last's."""
    joined = looks[-1].joined_windows
    return [each.series() for each in looks], [each.series(joined) for each in starts]


def _responses(result: LoadResult) -> list[int]:
    return [window.completed for window in result.windows if window.length_s > WINDOW_S * 0.9]


def _by_window(sampled: Sequence[tuple[float, float]], windows: int) -> list[float]:
    """Turn CPU time used up to some moments into what each window used; none unless sampled."""
    if len(sampled) < 2:
        return []
    at_s, used_s = zip(*sampled, strict=True)
    edges_s = list(accumulate([WINDOW_S] * windows, initial=0.0))
    return [float(used) for used in np.diff(np.interp(edges_s, at_s, used_s))]


def look_in_bursts(
    point: RunningPoint,
    variant: PlannedVariant,
    needs: Needs,
    looks: Sequence[PilotLook],
    *,
    works_on: bool,
    within_s: float,
) -> BurstsLook | None:
    """Try a warm-up in bursts, if it is asked for, or may matter and there is time.

    `looks`: those at fresh starts under continuous load. `works_on`: whether the servers still
    worked when the first of these was over. Gives None where nothing was tried, or failed.
    """
    most = int(needs.most_warmup_s / PERIOD_S)
    in_bursts = point.experiment.warmup_bursts_of(variant.name)
    is_asked = in_bursts == "on"
    if point.experiment.warmup_s_of(variant.name) is not None or in_bursts == "off":
        return None
    if looks[-1].failed or not (works_on or is_asked):
        return None
    if is_asked:
        most = max(most, 1)
    elif within_s < most * PERIOD_S + looks[-1].length_s:
        return None
    if not most:
        return None
    bursts, after = _in_bursts(point, variant, most, looks)
    if after.failed:
        return None
    if is_asked:
        return _record(bursts, after, HOW)
    if not _worth(after, looks):
        return _record(bursts, after, "")
    continuous = PilotLook()
    with RunningRound(point, 0) as running:
        load_s = len(bursts) * PERIOD_S + after.length_s
        _start(running, variant).watch(continuous, load_s)
    return _record(bursts, after, _worth(after, [*looks, continuous]), continuous)


def series_of_continuous(look: BurstsLook) -> list[Series]:
    return PilotLook(look.continuous, look.continuous_cpu_s).series()


def series_after(look: BurstsLook) -> list[Series]:
    return PilotLook(responses=look.after).series()


def _in_bursts(
    point: RunningPoint, variant: PlannedVariant, most: int, looks: Sequence[PilotLook]
) -> tuple[list[PilotLook], PilotLook]:
    """Start a variant, load it in bursts until more would be in vain, then without a break.

    For long enough then to be held against `looks`.
    """
    bursts, after = list[PilotLook](), PilotLook()
    with RunningRound(point, 0) as running:
        load = _start(running, variant)
        rests = False
        while len(bursts) < most and not bursts_may_end(_rates(bursts), rests=rests):
            bursts.append(PilotLook())
            load.watch(bursts[-1], BURST_S)
            rests = _pause(running)
        load.watch(after, looked_s(min(_rates([*looks, bursts[-1]])), PIECE_S))
    return bursts, after


def _start(running: RunningRound, variant: PlannedVariant) -> PilotLoad:
    running.start(variant)
    running.point.testbed.clients.get_ready(variant.name)
    return PilotLoad(running, variant)


def _pause(running: RunningRound) -> bool:
    """Pause after a burst; return whether the servers rest at its end."""
    ends = time.monotonic() + BURST_PAUSE_S
    time.sleep(BURST_PAUSE_S - REST_S)
    rests = running.waits_for_rest(REST_S)
    time.sleep(max(ends - time.monotonic(), 0.0))
    return rests


def _rates(looks: Sequence[PilotLook]) -> list[float]:
    return [sum(look.responses) / (max(len(look.responses), 1) * WINDOW_S) for look in looks]


def _worth(after: PilotLook, continuous: Sequence[PilotLook]) -> str:
    joined = max(look.joined_windows for look in [after, *continuous])
    return worth(after.series(joined), [look.series(joined) for look in continuous])


def _record(
    bursts: Sequence[PilotLook],
    after: PilotLook,
    sentence: str,
    continuous: PilotLook | None = None,
) -> BurstsLook:
    return BurstsLook(
        bursts=[burst.responses for burst in bursts],
        after=after.responses,
        after_cpu_s=after.cpu_s,
        continuous=continuous.responses if continuous else [],
        continuous_cpu_s=continuous.cpu_s if continuous else [],
        summary=sentence,
    )
