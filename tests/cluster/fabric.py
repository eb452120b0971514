"""What a cluster costs a run: the time between slots, and the share of the time that counts.

The same duel takes place on this machine and on hosts of a cluster (network namespaces on it,
servers on its first CPU, client on its last), in turns. And, with --idle: one nginx on this machine
in short slots, the processes of an idle Ray node next to it running or stopped, in turns. Root
only.

    cd tests && PYTHONPATH=. ../.venv/bin/python cluster/fabric.py --rounds 3
    cd tests && PYTHONPATH=. ../.venv/bin/python cluster/fabric.py --idle --rounds 200
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import psutil
from scipy.stats import quantile_test

from e2e.commands import WEBDYNO
from e2e.hosts import BIN, PORT, TOKEN, TestHost, ray_cluster_of
from webdyno.cluster.node import SPARING_OPTIONS, STARTED, environment
from webdyno.comparison import judge
from webdyno.config import Catalogue
from webdyno.core.load import Load
from webdyno.core.records import RoundRecord, SlotRecord
from webdyno.host.this_machine import Testbed
from webdyno.load.interface import Expectation, LoadOrder, Request
from webdyno.load.loadgen import Loadgen
from webdyno.measure.folder import RunFolder
from webdyno.probes.cpu import server_cpu
from webdyno.servers.starting import open_stack

DUEL = ("compare", "nginx", "apache-event", "--yes", "--no-report", "--quiet")
LAST_CPU = str((os.cpu_count() or 1) - 1)
CATCHES_UP_S = 0.5
"""A node that was stopped does at once what it missed, which an idle one doesn't."""


def between_slots_ms(run: RunFolder) -> float:
    """Give the median time between a slot's last answer and the next load of its round."""
    slots = [it for it in run.records() if isinstance(it, SlotRecord)]
    return 1e3 * median(
        (after.started_at - before.started_at).total_seconds() - before.load.all_of_it.length_s
        for before, after in pairwise(slots)
        if before.round == after.round
    )


def share_that_counts(run: RunFolder) -> float:
    """Give the share of rounds' time that windows have that count."""
    records = run.records()
    counted_s = sum(
        it.load.measured_s for it in records if isinstance(it, SlotRecord) and it.phase == "measure"
    )
    return counted_s / sum(it.took_s for it in records if isinstance(it, RoundRecord))


def show(title: str, runs: Sequence[RunFolder]) -> None:
    """Print the medians of several runs."""
    print(  # noqa: T201
        f"{title:<14} {median(map(between_slots_ms, runs)):6.1f} ms between slots, "
        f"{100 * median(map(share_that_counts, runs)):3.0f}% of rounds' time counts; "
        + "; ".join(judge(run.data().points[0]).headline for run in runs)
    )


def fabric(rounds: int, shared: Path) -> None:
    """Run the duel on this machine and on a cluster, in turns."""
    here, there = list[RunFolder](), list[RunFolder]()
    with ray_cluster_of(3, shared, (LAST_CPU, "0", LAST_CPU)) as hosts:
        for each in range(rounds):
            subprocess.run([WEBDYNO, *DUEL, f"--output={shared}/here{each}"], check=True)
            here.append(RunFolder.open(shared / f"here{each}"))
            there.append(on_cluster(hosts, shared, f"there{each}"))
    show("this machine", here)
    show("cluster", there)


def on_cluster(hosts: Sequence[TestHost], shared: Path, out: str) -> RunFolder:
    """Run the duel with servers on the second host and the client on the third."""
    where = ("--testbed=cluster", f"--cluster={hosts[0].address}:{PORT}")
    roles = ("--set=testbed.hosts.servers=host2", '--set=testbed.hosts.clients=["host3"]')
    log = shared / f"{out}.said"
    process = hosts[0].popen(WEBDYNO, *DUEL, *where, *roles, f"--output={out}", log=log)
    if process.wait(600) not in {0, 1}:
        raise SystemExit(log.read_text())
    return RunFolder.open(shared / out)


def idle(rounds: int, shared: Path) -> None:
    """Load one nginx in short slots, an idle node next to it running or stopped, in turns."""
    catalogue, testbed = Catalogue.load(), Testbed()
    stack, site = catalogue.stack("nginx"), catalogue.site("static")
    load = Load(paths=["/"])
    ratios = []
    with (
        ray_node(shared, "--head", f"--port={PORT}", "--include-dashboard=false"),
        ray_node(shared, f"--address=127.0.0.1:{PORT}") as node,
        open_stack(stack, {}, site, folder=shared / "nginx", testbed=testbed) as nginx,
        Loadgen(testbed.split.client) as client,
    ):
        request = Request("/hello.txt", Expectation(200))
        for each in range(rounds):
            cost = {}
            for next_to in (True, False) if each % 2 else (False, True):
                for process in node:
                    process.send_signal(signal.SIGCONT if next_to else signal.SIGSTOP)
                time.sleep(CATCHES_UP_S)
                order = LoadOrder(f"{each}", nginx.url, (request,), load, 0.5, ramp_up_s=0.1)
                before = server_cpu(nginx)
                answers = client.slot(order).all_of_it.completed
                cost[next_to] = server_cpu(nginx).since(before).cpu_s / answers
            ratios.append(cost[True] / cost[False])
    interval: Any = quantile_test(ratios, q=1, p=0.5).confidence_interval()  # stubs: a float
    print(  # noqa: T201
        f"CPU per request beside an idle Ray node, to that beside one that is stopped: "
        f"{median(ratios):.4f} ({interval.low:.4f} to {interval.high:.4f}), the median of "
        f"{len(ratios)} pairs of slots"
    )


@contextmanager
def ray_node(shared: Path, *role: str) -> Iterator[list[psutil.Process]]:
    """Have a node with nothing to do on the loopback interface; give its processes when it is up.

    The host of servers has no more of Ray than a node that is no head.
    """
    log = shared / f"ray{role[0].partition('=')[0]}.log"
    log.write_bytes(b"")
    with log.open("ab") as file:
        node = subprocess.Popen(
            [
                BIN / "ray",
                "start",
                "--block",
                "--node-ip-address=127.0.0.1",
                *role,
                *SPARING_OPTIONS,
            ],
            env=os.environ | environment(TOKEN),
            stdout=file,
            stderr=file,
        )
    there: list[psutil.Process] = []
    try:
        while STARTED not in log.read_text():
            if node.poll() is not None:
                raise SystemExit(log.read_text())
            time.sleep(0.2)
        time.sleep(5)  # until its workers rest
        itself = psutil.Process(node.pid)
        there = [itself, *itself.children(recursive=True)]
        yield there
    finally:
        for process in there:
            process.send_signal(signal.SIGCONT)  # what is stopped doesn't end
        node.terminate()
        node.wait(60)


def main() -> int:
    """Do what the command line asks for."""
    asked = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    asked.add_argument("--rounds", type=int, default=3)
    asked.add_argument("--idle", action="store_true")
    options = asked.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        if options.idle:
            idle(options.rounds, Path(scratch))
        else:
            fabric(options.rounds, Path(scratch))
    return 0


if __name__ == "__main__":
    sys.exit(main())
