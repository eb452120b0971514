"""How well the comparison of equal servers repeats, next to plain runs of wrk.

    .venv/bin/python bench/repeatability.py

First a duel of nginx against itself that takes its whole time. Then wrk asks one nginx on the same
CPUs, over as many connections, one run after the other and as often as the duel had rounds; each
run lasts as long as a variant was measured in a round.
"""

import re
import statistics
import subprocess
import sys
import tempfile
import time
from math import expm1, log, sqrt
from pathlib import Path
from urllib.parse import urlsplit

from rich.console import Console
from rich.table import Table

from rig.lab import Call
from webdyno.comparison import judge
from webdyno.config import Catalogue
from webdyno.core.base import Interval
from webdyno.core.records import SlotRecord
from webdyno.host.this_machine import Testbed
from webdyno.measure.folder import RunFolder
from webdyno.probes.cpu import server_cpu
from webdyno.servers.starting import open_stack
from webdyno.statistics.interval import t_quantile

STACK = "nginx"
BUDGET_S = 60
METRICS = {"throughput_rps": "throughput", "server_cpu_us": "server CPU per request"}
CONFIDENCE = 0.95
TABLE_WIDTH = 110
"""Columns of the table where it isn't printed on a terminal."""
WRK_WARMUP_S = 1
COMPLETED = re.compile(r"^\s+(\d+) requests in ", re.MULTILINE)


def main() -> None:
    """Measure both ways and print the table."""
    with tempfile.TemporaryDirectory(prefix="webdyno-bench-") as scratch:
        run = duel(Path(scratch) / "run")
        judgement = judge(run.data().points[0])
        rounds = judgement.rounds
        runs = wrk_runs(run, rounds, Path(scratch) / STACK)
    ratios = {it.metric: it.ratio for it in judgement.comparisons if it.ratio is not None}
    title = f"{STACK} against itself: {BUDGET_S} s, {rounds} rounds; {rounds} runs of wrk"
    table = Table(title=title)
    table.add_column("metric")
    for heading in ("A/A ratio (95% interval)", "half-width", "wrk: highest", "two runs, 95%"):
        table.add_column(heading, justify="right")
    for metric, label in METRICS.items():
        values = runs[metric]
        table.add_row(
            label,
            *ratio_cells(ratios.get(metric)),
            f"{max(values) / min(values) - 1:.1%} above the lowest",
            f"±{difference_of_two(values):.1%}",
        )
    console = Console(highlight=False, width=None if sys.stdout.isatty() else TABLE_WIDTH)
    console.print(table)
    for warning in judgement.warnings:
        console.print(f"{warning.severity}: {warning.what}", markup=False)


def ratio_cells(ratio: Interval | None) -> tuple[str, str]:
    """Give the A/A ratio with its interval, and half of the interval's width."""
    if ratio is None:
        return "too few valid slots", "–"
    half = sqrt(ratio.high / ratio.low) - 1
    return f"{ratio.estimate:.3f} ({ratio.low:.3f} to {ratio.high:.3f})", f"±{half:.1%}"


def duel(folder: Path) -> RunFolder:
    """Run the duel for all of its time."""
    settings = {"measure.precision": "0.1%", "measure.max_rounds": 100}
    asked = {"system": STACK, "baseline": STACK, "time": BUDGET_S, "output": folder}
    Call("compare", {**asked, "settings": settings}).made()
    return RunFolder.open(folder)


def wrk_runs(run: RunFolder, count: int, folder: Path) -> dict[str, list[float]]:
    """Ask one nginx by wrk again and again; give each run's value of the metrics."""
    records = [record for record in run.records() if isinstance(record, SlotRecord)]
    slots = [slot for slot in records if slot.phase == "measure"]
    turns = {(slot.round, slot.variant) for slot in slots}
    seconds = max(1, round(sum(slot.load.measured_s for slot in slots) / len(turns)))
    catalogue, testbed = Catalogue.load(), Testbed()
    values: dict[str, list[float]] = {metric: [] for metric in METRICS}
    site = catalogue.site("static")
    with open_stack(catalogue.stack(STACK), {}, site, folder=folder, testbed=testbed) as running:
        cpus = testbed.split.client
        url = f"http://127.0.0.1:{running.port}{urlsplit(slots[0].load.target).path}"
        pinned = ["taskset", "-c", ",".join(map(str, cpus)), "wrk", "-t", str(len(cpus))]
        wrk = [*pinned, "-c", str(run.head.experiment.load.connections)]
        subprocess.run([*wrk, f"-d{WRK_WARMUP_S}", url], check=True, stdout=subprocess.DEVNULL)
        for _ in range(count):
            before, began_s = server_cpu(running), time.monotonic()
            done = subprocess.run([*wrk, f"-d{seconds}", url], check=True, capture_output=True)
            took_s, used = time.monotonic() - began_s, server_cpu(running).since(before)
            completed = int(COMPLETED.findall(done.stdout.decode())[0])
            values["throughput_rps"].append(completed / took_s)
            values["server_cpu_us"].append(used.cpu_s / completed * 1e6)
    return values


def difference_of_two(values: list[float]) -> float:
    """By how much two single runs of equal servers differ at most, with 95% confidence.

    t(n - 1) · sd · √2 of the logarithms: what somebody risks who runs wrk once for each variant.
    """
    spread = statistics.stdev(map(log, values))
    return expm1(t_quantile(len(values), CONFIDENCE) * spread * sqrt(2))


if __name__ == "__main__":
    main()
