"""Whether the kernel keeps time that isn't a program's own apart from that program's CPU time.

Such time is what interrupts took, and what the hypervisor gave to others.
"""

import gzip
import platform
import socket
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

ROUNDS, ROUND_S = 400, 0.001
"""Short ones, so that some aren't disturbed by other programs."""
PACKET = bytes(1_024)
SURELY_MISSING = 0.05
"""Share of a round that isn't in our CPU time, although we were busy all the time."""
BUILT_WITH = b"CONFIG_PARAVIRT_TIME_ACCOUNTING=y"


@cache
def interrupts_kept_apart() -> bool:
    """Tell by trying it once: packets to ourselves, and what of their time is in our CPU time.

    Kernels built with IRQ_TIME_ACCOUNTING don't count as a program's CPU time what its packets cost
    in softirqs, a good part of the work of a web server.

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


@cache
def stolen_time_kept_apart() -> bool:
    """Tell it; False where the kernel's configuration can't be read, as in many containers.

    One built with PARAVIRT_TIME_ACCOUNTING takes stolen time off the clock by which tasks are
    charged (kernel/sched/core.c, update_rq_clock_task), wherever the hypervisor tells it at all.
    Else what ran when its CPU was stolen is charged for all of it. Trying it out, as with
    interrupts, would take load on all CPUs and much of it stolen meanwhile; so it is what the
    kernel says of how it was built.
    """
    return says_so(Path("/"), platform.release())


def says_so(root: Path, release: str) -> bool:
    """Look where kernels and distributions leave the configuration."""
    places = (
        root / "proc/config.gz",
        root / f"boot/config-{release}",
        root / f"lib/modules/{release}/config",
    )
    for place in places:
        with suppress(OSError):
            text = place.read_bytes()
            return BUILT_WITH in (gzip.decompress(text) if place.suffix == ".gz" else text)
    return False
