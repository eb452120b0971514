"""What webdyno's own probes cost: CPU time around and inside idle slots, by stack.

    uv run python bench/probe_cost.py [STACK…]

The probes read /proc before and after each slot and sample the host inside it. Their CPU time is
that of this process, since nothing else runs in it. What they do before and after a slot happens
while there is no load.
"""

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from webdyno.config import Catalogue
from webdyno.host.this_machine import Testbed
from webdyno.probes.slot import SlotProbe
from webdyno.servers.running import RunningStack
from webdyno.servers.starting import open_stack

SLOTS = 30
SLOT_S = 0.5
STACKS = ("nginx", "apache-event", "apache-prefork")


def main() -> None:
    """Print a line for each stack."""
    catalogue, testbed = Catalogue.load(), Testbed()
    site = catalogue.site("static")
    table = Table(title=f"{SLOTS} idle slots of {SLOT_S} s; CPU time in ms, medians")
    for heading in ("stack", "processes", "threads", "before", "inside", "after"):
        table.add_column(heading, justify="left" if heading == "stack" else "right")
    table.add_column("share of a core inside", justify="right")
    for name in sys.argv[1:] or STACKS:
        with (
            tempfile.TemporaryDirectory(prefix="webdyno-bench-") as scratch,
            open_stack(
                catalogue.stack(name), {}, site, folder=Path(scratch) / name, testbed=testbed
            ) as stack,
        ):
            table.add_row(name, *cost(name, stack, testbed))
    Console().print(table)


def cost(name: str, stack: RunningStack, testbed: Testbed) -> list[str]:
    """Probe a stack in idle slots, and give the cells of its row."""
    costs = []
    for _ in range(SLOTS):
        begin = time.process_time()
        with SlotProbe(name, {name: stack}, testbed, os.getpid()) as probe:
            entered = time.process_time()
            time.sleep(SLOT_S)
            left = time.process_time()
        readings = probe.readings()
        costs.append((entered - begin, left - entered, time.process_time() - left))
    before, inside, after = (statistics.median(part) for part in zip(*costs, strict=True))
    uses = readings.services.values()
    return [
        str(sum(use.processes for use in uses)),
        str(sum(use.threads for use in uses)),
        *(f"{part * 1e3:.1f}" for part in (before, inside, after)),
        f"{inside / SLOT_S:.2%}",
    ]


if __name__ == "__main__":
    main()
