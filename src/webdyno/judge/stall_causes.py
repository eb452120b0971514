"""Who else than the servers can have stopped or slowed the responses of a stretch of load."""

import numpy as np

from webdyno.judge.interval import Logs
from webdyno.judge.look_readings import LookReadings
from webdyno.model.long_look import Stall, StallCause
from webdyno.model.records import LongLookRecord

EXCUSING_SHARE = 0.5
"""Of a stall's length, for which another cause has to be seen."""
LONG_GAP = 6
"""Windows between two readings of the servers, which are two windows apart as a rule."""


class Others:
    """What a record tells of the load generator, the hypervisor and other programs."""

    def __init__(self, record: LongLookRecord) -> None:
        self._record = record
        self._cpus = max(record.server_cpus, 1)
        self._read = LookReadings.of(record.samples)

    def cause_of(self, stall: Stall) -> StallCause | None:
        """Name who else was at it for at least half of the stall, or None: the servers themselves.

        Several causes may have come together; then it is the one that took most.
        """
        took_s = self.took_s(stall.at_s, stall.length_s)
        if sum(took_s.values()) < EXCUSING_SHARE * stall.length_s:
            return None
        return max(took_s, key=took_s.__getitem__)

    def took_s(self, at_s: float, length_s: float) -> dict[StallCause, float]:
        """Give for how long of a time each of them can have kept the servers from answering."""
        begin_s, end_s, read = at_s, at_s + length_s, self._read
        paused_s = sum(
            max(0.0, min(end_s, pause.at_s + pause.length_s) - max(begin_s, pause.at_s))
            for pause in self._record.client_pauses
        )
        if not read.tell:
            return {"client": paused_s}
        # Where webdyno itself had no CPU for long, the whole machine stood still.
        gap_s = read.longest_gap_s(begin_s, end_s)
        gap_s = gap_s if gap_s > LONG_GAP * self._record.window_s else 0.0
        client_waited_s = read.waited_during(read.client_waited_s, begin_s, end_s)
        others_s = max(read.during(read.others_s, begin_s, end_s), 0.0) / self._cpus
        stolen_s = max(read.during(read.stolen_s, begin_s, end_s), 0.0) / self._cpus
        return {
            "client": max(paused_s, gap_s, client_waited_s),
            "stopped": length_s * read.stopped_share(begin_s, end_s),
            "hypervisor": stolen_s,
            # Servers that sleep don't mind who has their CPUs.
            "other-programs": min(others_s, read.waited_during(read.waited_s, begin_s, end_s)),
        }

    def take_s(self, edges_s: Logs) -> dict[StallCause, Logs]:
        """Give what each took from each of some moments to the next, with no regard to pauses."""
        read = self._read
        if not read.tell:
            return {}
        others_s = read.grown(read.others_s, edges_s) / self._cpus
        return {
            "client": read.grown(read.client_waited_s, edges_s),
            "hypervisor": read.grown(read.stolen_s, edges_s) / self._cpus,
            "other-programs": np.minimum(others_s, read.grown(read.waited_s, edges_s)),
        }
