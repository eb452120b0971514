"""Whether the kernel keeps the time of interrupts apart from that of the programs interrupted.

Kernels built with IRQ_TIME_ACCOUNTING don't count as a program's CPU time what its packets cost in
softirqs, a good part of the work of a web server.
"""

import socket
import time
from functools import cache

ROUNDS, ROUND_S = 400, 0.001
"""Short ones, so that some aren't disturbed by other programs."""
PACKET = bytes(1_024)
SURELY_MISSING = 0.05
"""Share of a round that isn't in our CPU time, although we were busy all the time."""


@cache
def kept_apart() -> bool:
    """Tell by trying it once: packets to ourselves, and what of their time is in our CPU time.

    Other programs can only take more from it, so one round that misses little is enough. (From
    what /proc/stat and a slot's load tell, other programs' work can't be told from interrupts.)
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ourselves:
        ourselves.bind(("127.0.0.1", 0))
        ourselves.connect(ourselves.getsockname())
        return all(_missing_share(ourselves) > SURELY_MISSING for _ in range(ROUNDS))


def _missing_share(ourselves: socket.socket) -> float:
    began_s, cpu_s = time.perf_counter(), time.thread_time()
    while (took_s := time.perf_counter() - began_s) < ROUND_S:
        ourselves.send(PACKET)
        ourselves.recv(len(PACKET))
    return 1 - (time.thread_time() - cpu_s) / took_s
