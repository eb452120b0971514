"""What was read of the servers and their CPUs through a stretch of load, as columns over time."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from webdyno.judge.interval import TINY, Logs
from webdyno.model.long_look import ServerSample


@dataclass(frozen=True)
class LookReadings:
    """Columns of samples: times are sums since the beginning of the stretch."""

    at_s: Logs
    cpu_s: Logs
    others_s: Logs
    """For which their CPUs ran something else."""
    stolen_s: Logs
    waited_s: Logs
    client_waited_s: Logs
    stopped: Logs

    @classmethod
    def of(cls, samples: Sequence[ServerSample]) -> Self:
        """Take what was read, in its order."""
        rows = [
            (
                it.at_s,
                it.cpu_s,
                it.busy_s - it.cpu_s,
                it.stolen_s,
                it.waited_s,
                it.client_waited_s,
                it.stopped,
            )
            for it in samples
        ]
        return cls(*np.array(rows, dtype=float).reshape(-1, 7).T)

    @property
    def tell(self) -> bool:
        """Whether there are enough of them to tell what was in between."""
        return len(self.at_s) >= 2

    def grown(self, sums: Logs, edges_s: Logs) -> Logs:
        """Give by how much a column of sums grew from each of some moments to the next."""
        return np.diff(np.interp(edges_s, self.at_s, sums))

    def during(self, sums: Logs, begin_s: float, end_s: float) -> float:
        """Give by how much a column of sums grew between two moments."""
        return float(self.grown(sums, np.array([begin_s, end_s]))[0])

    def waited_during(self, waited_s: Logs, begin_s: float, end_s: float) -> float:
        """Give how much of a waiting for CPUs lies between two moments.

        The kernel counts a wait when it ends: what is more than the time since the reading before
        has begun before that.
        """
        each_s = np.maximum(np.diff(waited_s), 0.0)
        lasted_s = np.maximum(np.diff(self.at_s), each_s)
        ends_s = self.at_s[1:]
        within_s = np.minimum(ends_s, end_s) - np.maximum(ends_s - lasted_s, begin_s)
        shares = np.maximum(within_s, 0.0) / np.maximum(lasted_s, TINY)
        return float(each_s @ shares)

    def longest_gap_s(self, begin_s: float, end_s: float) -> float:
        """Give the longest time from a reading to the next that touches a time."""
        meets = (self.at_s[:-1] < end_s) & (self.at_s[1:] > begin_s)
        return float(np.diff(self.at_s)[meets].max(initial=0.0))

    def stopped_share(self, begin_s: float, end_s: float) -> float:
        """Give in which share of the readings between two moments a server was stopped."""
        within = self.stopped[(begin_s <= self.at_s) & (self.at_s <= end_s)]
        return float(within.mean()) if len(within) else 0.0
