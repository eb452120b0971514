"""Queues, simulated as the trials of a search would see them."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from webdyno.core.capacity import Trial
from webdyno.core.measure import MOST_DECIDING, CapacitySettings
from webdyno.measure.capacity_search import Ask, Begin, next_trial

Times = NDArray[np.float64]
RAMP_UP = 0.25


@dataclass
class Queue:
    """One server, Poisson arrivals, first come, first served."""

    service_s: float
    exponential: bool
    rng: np.random.Generator
    slower: Callable[[], float] = lambda: 1.0
    """By what factor it is slower in a trial: the noise of its machine."""
    collapses_at: float | None = None
    """Requests per second after which it serves ten times as slowly, until it is started again."""
    collapsed: bool = field(default=False, init=False)

    def sojourns_s(self, rate_rps: float, length_s: float) -> Times:
        """Give latency of the requests that are due in a window, a ramp-up before it."""
        lead_s = RAMP_UP * length_s
        asked = self.rng.poisson(rate_rps * (lead_s + length_s))
        # So many uniform times in order (Devroye 1986, chapter V.3), without the time that sorting
        # takes.
        arrivals = np.cumsum(self.rng.exponential(1, asked + 1))
        arrivals = arrivals[:-1] / arrivals[-1] * (lead_s + length_s)
        if self.collapses_at is not None and rate_rps > self.collapses_at:
            self.collapsed = True
        service = self.rng.exponential(1, asked) if self.exponential else np.ones(asked)
        service *= self.service_s * self.slower() * (10 if self.collapsed else 1)
        # Lindley: each leaves a service after the later of its arrival and the one before's leave.
        done = np.cumsum(service)
        leaves = done + np.maximum.accumulate(arrivals - (done - service))
        counted: Times = (leaves - arrivals)[arrivals > lead_s]
        return counted


def tried(queue: Queue, ask: Ask, settings: CapacitySettings, client_rps: float) -> Trial:
    """Make a trial; from `client_rps` on the load generator is too slow."""
    if ask.fresh:
        queue.collapsed = False
    times = queue.sojourns_s(ask.rate_rps, ask.length_s)
    limited = ask.rate_rps > client_rps
    if limited:
        times += 1e3
    beyond: list[int | None] = [
        int(np.sum(times > it.within_s)) for it in settings.objectives if it.within_s
    ]
    return Trial(
        purpose=ask.purpose,
        rate_rps=ask.rate_rps,
        length_s=ask.length_s,
        asked=len(times),
        beyond=beyond,
        allowed=[it.allowed for it in settings.objectives],
        within_s=[it.within_s for it in settings.objectives],
        client_limited=limited,
    )


def search(
    queue: Queue,
    settings: CapacitySettings,
    closed_rps: float,
    client_rps: float = 1e9,
    near_rps: float | None = None,
    deciding: int = MOST_DECIDING,
) -> list[Trial]:
    """Search once."""
    trials: list[Trial] = []
    begin = Begin(closed_rps, near_rps, deciding)
    while ask := next_trial(trials, settings, begin):
        trials.append(tried(queue, ask, settings, client_rps))
    return trials
