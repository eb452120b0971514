"""Whether the kernel keeps time that the hypervisor gave to others apart from programs' CPU time.

One built with PARAVIRT_TIME_ACCOUNTING takes stolen time off the clock by which tasks are charged
(kernel/sched/core.c, update_rq_clock_task), wherever the hypervisor tells it at all. Else what ran
when its CPU was stolen is charged for all of it. Trying it out, as with interrupts, would take load
on all CPUs and much of it stolen meanwhile; so it is what the kernel says of how it was built.
"""

import gzip
import platform
from contextlib import suppress
from functools import cache
from pathlib import Path

BUILT_WITH = b"CONFIG_PARAVIRT_TIME_ACCOUNTING=y"


@cache
def kept_apart() -> bool:
    """Tell it; False where the kernel's configuration can't be read, as in many containers."""
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
