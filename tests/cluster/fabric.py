"""What a cluster costs a run: the time between slots, and the share of the time that counts.

The same duel takes place on this machine and on hosts of a cluster (network namespaces on it,
servers on its first CPU, client on its last), in turns. And, with --idle: a stack against itself on
this machine, with the processes of an idle Ray node beside it and without, in turns. Root only.

    cd tests && PYTHONPATH=. ../.venv/bin/python cluster/fabric.py --rounds 3
    cd tests && PYTHONPATH=. ../.venv/bin/python cluster/fabric.py --idle --rounds 10
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import pairwise
from math import exp, log, sqrt
from pathlib import Path
from statistics import fmean, median, stdev

from e2e.commands import WEBDYNO
from e2e.hosts import BIN, PORT, TestHost, ray_cluster_of
from webdyno.judge import judge
from webdyno.model.metrics import server_cpu_us
from webdyno.model.records import BlockRecord, SlotRecord
from webdyno.run.folder import RunFolder

DUEL = ("duel", "nginx", "apache-event", "--yes", "--no-report", "--quiet")
SAME = ("duel", "nginx", "nginx", "--yes", "--no-report", "--quiet", "--budget=20s")
LAST_CPU = str((os.cpu_count() or 1) - 1)
TOKEN = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "0123456789abcdef0123456789abcdef"}


def between_slots_ms(run: RunFolder) -> float:
    """Give the median time between a slot's last answer and the next load of its block."""
    slots = [it for it in run.records() if isinstance(it, SlotRecord)]
    return 1e3 * median(
        (after.started_at - before.started_at).total_seconds() - before.load.all_of_it.length_s
        for before, after in pairwise(slots)
        if before.block == after.block
    )


def share_that_counts(run: RunFolder) -> float:
    """Give the share of blocks' time that windows have that count."""
    records = run.records()
    counted_s = sum(
        it.load.measured_s for it in records if isinstance(it, SlotRecord) and it.phase == "measure"
    )
    return counted_s / sum(it.took_s for it in records if isinstance(it, BlockRecord))


def cost_us(run: RunFolder) -> float:
    """Give the servers' CPU time per request over all slots that count."""
    slots = [it for it in run.records() if isinstance(it, SlotRecord) and it.phase == "measure"]
    return server_cpu_us(slots) or 0.0


def show(title: str, runs: Sequence[RunFolder]) -> None:
    """Print the medians of several runs."""
    print(  # noqa: T201
        f"{title:<14} {median(map(between_slots_ms, runs)):6.1f} ms between slots, "
        f"{100 * median(map(share_that_counts, runs)):3.0f} % of blocks' time counts; "
        + "; ".join(judge(run.head, run.records()).headline for run in runs)
    )


def fabric(rounds: int, shared: Path) -> None:
    """Run the duel on this machine and on a cluster, in turns."""
    here, there = list[RunFolder](), list[RunFolder]()
    with ray_cluster_of(3, shared, (LAST_CPU, "0", LAST_CPU)) as hosts:
        for each in range(rounds):
            subprocess.run([WEBDYNO, *DUEL, f"--out={shared}/here{each}"], check=True)
            here.append(RunFolder.open(shared / f"here{each}"))
            there.append(on_cluster(hosts, shared, f"there{each}"))
    show("this machine", here)
    show("cluster", there)


def on_cluster(hosts: Sequence[TestHost], shared: Path, out: str) -> RunFolder:
    """Run the duel with servers on the second host and the client on the third."""
    where = ("--bench=cluster", f"--cluster={hosts[0].address}:{PORT}")
    roles = ("--set=bench.hosts.servers=host2", '--set=bench.hosts.clients=["host3"]')
    log = shared / f"{out}.said"
    process = hosts[0].popen(WEBDYNO, *DUEL, *where, *roles, f"--out={out}", log=log)
    if process.wait(600) not in {0, 1}:
        raise SystemExit(log.read_text())
    return RunFolder.open(shared / out)


def idle(rounds: int, shared: Path) -> None:
    """Hold runs beside an idle Ray node against runs without, in pairs."""
    ratios = []
    for each in range(rounds):
        found = {}
        for beside in (True, False) if each % 2 else (False, True):
            node = ray_node(shared) if beside else None
            out = shared / f"idle{each}-{beside}"
            subprocess.run([WEBDYNO, *SAME, f"--out={out}"], check=True)
            if node is not None:
                node.terminate()
                node.wait(60)
            found[beside] = cost_us(RunFolder.open(out))
        ratios.append(log(found[True] / found[False]))
        print(f"{exp(ratios[-1]):.4f}", flush=True)  # noqa: T201
    error = stdev(ratios) / sqrt(len(ratios)) if len(ratios) > 1 else 0.0
    print(  # noqa: T201
        f"CPU time per request beside an idle Ray node, to that without: {exp(fmean(ratios)):.4f}, "
        f"standard error {error:.4f}, {len(ratios)} pairs"
    )


def ray_node(shared: Path) -> subprocess.Popen[bytes]:
    """Start a head with nothing to do, on the loopback interface; give it when it is up."""
    log = shared / "ray.log"
    log.write_bytes(b"")
    words = ("start", "--block", "--head", f"--port={PORT}", "--node-ip-address=127.0.0.1")
    more = ("--include-dashboard=false", "--object-store-memory=80000000")
    with log.open("ab") as file:
        node = subprocess.Popen(
            [BIN / "ray", *words, *more], env=os.environ | TOKEN, stdout=file, stderr=file
        )
    while "Ray runtime started" not in log.read_text():
        if node.poll() is not None:
            raise SystemExit(log.read_text())
        time.sleep(0.2)
    time.sleep(5)  # until its workers rest
    return node


def main() -> int:
    """Do what the command line asks for."""
    asked = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    asked.add_argument("--rounds", type=int, default=3)
    asked.add_argument("--idle", action="store_true")
    options = asked.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        (idle if options.idle else fabric)(options.rounds, Path(scratch))
    return 0


if __name__ == "__main__":
    sys.exit(main())
