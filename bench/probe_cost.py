"""What webdyno's own probes cost: CPU time around and inside idle slots, by stack.

    uv run python bench/probe_cost.py [STACK…]

The probes read /proc before and after each slot and sample the host inside it. Their CPU time is
that of this process, since nothing else runs in it. The share is of one core over the slot.
"""

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from webdyno.bench import Bench
from webdyno.definitions import Catalogue
from webdyno.probe import SlotProbe
from webdyno.stack import start_stack

SLOTS = 30
SLOT_S = 0.5
STACKS = ("nginx", "apache-event", "apache-prefork")


def main() -> None:
    """Print a line for each stack."""
    catalogue, bench = Catalogue.load(), Bench()
    site = catalogue.site("static")
    print(f"{SLOTS} idle slots of {SLOT_S} s; CPU time in milliseconds, medians")  # noqa: T201
    print(
        f"{'stack':16} {'processes':>9} {'threads':>8} {'before':>8} {'inside':>8} {'after':>8}"  # noqa: T201
        f" {'share of a core':>16}"
    )
    for name in sys.argv[1:] or STACKS:
        with (
            tempfile.TemporaryDirectory(prefix="webdyno-bench-") as scratch,
            start_stack(
                catalogue.stack(name), {}, site, folder=Path(scratch) / name, bench=bench
            ) as stack,
        ):
            costs = []
            for _ in range(SLOTS):
                begin = time.process_time()
                probe = SlotProbe(name, {name: stack}, bench.split, os.getpid())
                with probe:
                    entered = time.process_time()
                    time.sleep(SLOT_S)
                    left = time.process_time()
                readings = probe.readings()
                costs.append((entered - begin, left - entered, time.process_time() - left))
            before, inside, after = (statistics.median(part) for part in zip(*costs, strict=True))
            use = readings.services.values()
            print(  # noqa: T201
                f"{name:16} {sum(u.processes for u in use):9} {sum(u.threads for u in use):8}"
                f" {before * 1e3:8.2f} {inside * 1e3:8.2f} {after * 1e3:8.2f}"
                f" {(before + inside + after) / SLOT_S:16.2%}"
            )


if __name__ == "__main__":
    main()
