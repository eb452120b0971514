"""The machine: which cores the client and the server get, and what to call it in a table."""

import os
import platform
import time
from dataclasses import dataclass
from pathlib import Path

QUIET_SHARE = 0.05
LOOK_S = 0.2


@dataclass(frozen=True)
class Cores:
    """CPU numbers of the two sides; they are the same where there is only one core."""

    client: int
    server: tuple[int, ...]

    @property
    def shared(self) -> bool:
        """Whether client and server have to share a core, which invalidates every figure."""
        return self.client in self.server


def split_cores(allowed: set[int], server_cores: int = 2) -> Cores:
    """Give the client the last allowed core and the server up to `server_cores` others.

    The first core is left free where there are enough, because it has most interrupts.
    """
    *others, client = sorted(allowed)
    return Cores(client, tuple(others[-server_cores:]) or (client,))


def split_this_machine() -> Cores:
    """Split the cores that this process may use."""
    return split_cores(os.sched_getaffinity(0))


def describe() -> str:
    """One line: processor, cores, kernel, and how busy the machine is."""
    model = "unknown processor"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    load_1_min = os.getloadavg()[0]
    return (
        f"{model}, {len(os.sched_getaffinity(0))} cores, Linux {platform.release()}, "
        f"load average {load_1_min:.2f}"
    )


def busy_s(core: int) -> float:
    """Give the time that a core has spent on anything since the machine started.

    Fields of /proc/stat: user nice system idle iowait irq softirq steal; guests are in user.
    """
    for line in Path("/proc/stat").read_text().splitlines():
        name, *ticks = line.split()
        if name == f"cpu{core}":
            user, nice, system, _, _, irq, softirq, steal = map(int, ticks[:8])
            return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")
    return 0.0


def wait_until_quiet(cores: Cores, patience_s: float) -> None:
    """Wait until other programs leave the cores of both sides alone, but not for ever.

    What counts is only the time before a sample, so that no result decides whether it counts.
    """
    both = (cores.client, *cores.server)
    end_s = time.monotonic() + patience_s
    while time.monotonic() < end_s:
        before_s = [busy_s(core) for core in both]
        time.sleep(LOOK_S)
        used_s = [busy_s(core) - before for core, before in zip(both, before_s, strict=True)]
        if max(used_s) <= QUIET_SHARE * LOOK_S:
            return
