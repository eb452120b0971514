"""Whether other machines on the same hardware took the CPUs while a test measured."""

import os
import time

from webdyno.probes.cpu import Stat
from webdyno.validity.others import STEAL_LIMIT

WOKEN_WITHIN_S = 0.001
"""How late a thread may be woken where nothing else runs; 0.06 ms is usual."""
NAPS = 100


class Neighbours:
    """What they take from now on."""

    def __init__(self) -> None:
        self.first = Stat.read()

    def took(self) -> str | None:
        """Say what they took, if it was too much to measure next to; takes 250 ms."""
        use = Stat.read().use_since(self.first, os.sched_getaffinity(0))
        stolen = use.steal_s / (use.busy_s + use.steal_s)
        if stolen > STEAL_LIMIT:
            return f"the hypervisor gave {stolen:.0%} of the CPU time in demand to others"
        late_s = woken_late_s()
        if late_s > WOKEN_WITHIN_S:
            return f"threads are woken {late_s * 1e3:.1f} ms late where nothing else runs"
        return None


def woken_late_s() -> float:
    """Report how late every tenth nap ends, or later."""
    late_s = []
    for _ in range(NAPS):
        began_s = time.monotonic()
        time.sleep(0.001)
        late_s.append(time.monotonic() - began_s - 0.001)
    return sorted(late_s)[NAPS * 9 // 10]
