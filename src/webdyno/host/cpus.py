"""Which CPUs serve, which make load, and which are left for everything else."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from webdyno.model.machine import CpuSplit
from webdyno.model.mistake import Mistake

SYSFS = Path("/sys/devices/system/cpu")

CORES_WITH_REST = 6
"""From this many cores on, some are kept free of servers and client."""
CORES_PER_REST_CORE = 16
CORES_WITH_A_REST = 4
"""The same for a host that has only servers, or only a client."""


def split_cpus(
    allowed: Iterable[int], cores: Iterable[Sequence[int]], server_cores: int | None = None
) -> CpuSplit:
    """Split the CPUs that this process may use; `cores` are the CPUs of each physical core.

    Servers and client get half each, the client the larger one: a client that is short of CPU
    measures itself. CPUs of one core are never split between the two, since they share its
    execution units. With six cores and more, one in sixteen (at least one) is left for the rest,
    such as probes and the kernel's own work; with fewer the rest shares the client's CPUs. A
    single core has to do for all. With `server_cores` the servers get so many cores instead; raise
    Mistake where that leaves the client none.
    """
    usable = set(allowed)
    mine = sorted(sorted(usable.intersection(core)) for core in cores if usable.intersection(core))
    mine += [[cpu] for cpu in sorted(usable.difference(*mine))]
    if len(mine) == 1:
        everything = mine[0]
        return CpuSplit(servers=everything, client=everything, rest=everything, shared=True)
    # The first core also has most of a machine's interrupts and housekeeping: best for the rest.
    for_rest = -(-len(mine) // CORES_PER_REST_CORE) if len(mine) >= CORES_WITH_REST else 0
    rest, loaded = mine[:for_rest], mine[for_rest:]
    if server_cores is not None and server_cores >= len(loaded):
        raise Mistake(
            f"{server_cores} cores for the servers leave the client none: there are {len(loaded)} "
            "for both"
        )
    boundary = server_cores or len(loaded) // 2
    servers, client = loaded[:boundary], loaded[boundary:]
    return CpuSplit(
        servers=_flat(servers), client=_flat(client), rest=_flat(rest or client), shared=False
    )


def whole_split(allowed: Iterable[int], cores: Iterable[Sequence[int]]) -> CpuSplit:
    """Split the CPUs of a host that only serves, or only makes load: whichever it does has them.

    From four cores on the first is left for the rest: what gives this host its orders, too.
    """
    usable = set(allowed)
    mine = sorted(sorted(usable.intersection(core)) for core in cores if usable.intersection(core))
    mine += [[cpu] for cpu in sorted(usable.difference(*mine))]
    rest, loaded = (mine[:1], mine[1:]) if len(mine) >= CORES_WITH_A_REST else (mine[-1:], mine)
    working = _flat(loaded)
    return CpuSplit(servers=working, client=working, rest=_flat(rest), shared=False)


def allowed_cpus() -> set[int]:
    """CPUs that this process may run on."""
    return os.sched_getaffinity(0)


def physical_cores() -> list[list[int]]:
    """CPUs of each physical core, as the kernel tells it; empty where it doesn't."""
    lists = SYSFS.glob("cpu[0-9]*/topology/thread_siblings_list")
    return [list(core) for core in sorted({tuple(_cpu_list(path.read_text())) for path in lists})]


def _cpu_list(text: str) -> list[int]:
    """Read the kernel's notation for CPUs: `0-3,8`."""
    cpus: list[int] = []
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        cpus.extend(range(int(first), int(last or first) + 1))
    return cpus


def _flat(cores: list[list[int]]) -> list[int]:
    return sorted(cpu for core in cores for cpu in core)
