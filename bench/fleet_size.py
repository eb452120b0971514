"""What a fleet of many hosts costs the machine that gave the orders, without any host.

The rounds of a run of yours are drawn at random, with replacement, into the runs of as many hosts
as are requested. Their pieces come as those of hosts do, each host in a thread of its own; then all
is judged, over processes as `webdyno report` does, and the page made. Printed for each size: CPU
time per round until it is on disk (drawing it included) and that of judging it, CPU time of verdict
and page, size of the page, what lies on disk, the most memory that was needed by who gave the
orders and by a process that judged, and how long all of it took.
"""

import io
import json
import multiprocessing
import os
import resource
import sys
import tempfile
import time
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stdout
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path, PurePosixPath
from random import Random

from rich.console import Console
from rich.table import Table

from rig.options import count
from rig.process import BenchError
from rig.script import Script, progress
from webdyno.cluster.dispatch import Dispatcher, Work, finished_runs, judged_machines
from webdyno.cluster.host import AgentExit, Piece
from webdyno.core.run import RunHead
from webdyno.core.testbed import Machine
from webdyno.fleet import judge_fleet
from webdyno.fleet.show import fleet_page
from webdyno.launch.dispatch import RoundNews
from webdyno.measure.folder import HEAD_FILE, RunFolder
from webdyno.measure.records_file import RECORDS_FILE

EXAMPLES = """\
  of the rounds of a run of some minutes
    ./dyno run --time 2m -o /tmp/run && .venv/bin/python bench/fleet_size.py /tmp/run
  as large as is planned for
    .venv/bin/python bench/fleet_size.py /tmp/run --hosts 1000 --rounds 100
"""
RECORDS = PurePosixPath(RECORDS_FILE)
HEADINGS = (
    "hosts",
    "kept, ms/round",
    "judged, ms/round",
    "verdict, s",
    "page, kB",
    "disk, MB",
    "memory, MB",
    "judging, MB",
    "took, s",
)


@dataclass(frozen=True)
class Template:
    """A run that was measured: the lines of each of its rounds, those before and those after."""

    head: RunHead
    before: list[bytes]
    rounds: dict[int, list[bytes]]
    after: list[bytes]

    @classmethod
    def of(cls, path: Path) -> "Template":
        """Read a run of one point; raise BenchError where it has no round or didn't end."""
        template = cls(RunFolder.open(path).head, [], {}, [])
        for line in (path / RECORDS_FILE).read_bytes().splitlines():
            record = json.loads(line)
            if record["kind"] == "stop":
                template.after.append(line)
            elif record.get("round") is not None:
                template.rounds.setdefault(record["round"], []).append(line)
            else:
                template.before.append(line)
        if not template.rounds or not template.after:
            raise BenchError(f"{path} didn't come to its end: give a run that did")
        return template

    def first_lines(self, machine: Machine) -> list[bytes]:
        """Give what stands before the rounds, as another machine has it."""
        theirs = machine.model_dump(mode="json")
        return [
            json.dumps(record | {"machine": theirs}).encode() if "machine" in record else line
            for line, record in zip(self.before, map(json.loads, self.before), strict=True)
        ]

    def drawn(self, rng: Random, number: int) -> list[bytes]:
        """Give a round that was drawn at random under another number."""
        drawn = rng.choice(list(self.rounds))
        was, now = (b'"round":%d,' % it for it in (drawn, number))
        return [line.replace(was, now, 1) for line in self.rounds[drawn]]


@dataclass
class DrawnHost:
    """A host whose run is drawn from rounds that were measured elsewhere."""

    name: str
    template: Template
    rounds: int

    def replicate(self, parcel: bytes, *, yes: bool) -> Iterator[Piece | AgentExit]:  # noqa: ARG002
        """Say a line at a time, as a host does whose slots take half a second or more."""
        machine = self.template.head.machine.model_copy(update={"identity": self.name})
        head = self.template.head.model_copy(update={"machine": machine})
        yield Piece(PurePosixPath(HEAD_FILE), 0, head.model_dump_json().encode())
        said = 0
        for line in self._lines(machine):
            yield Piece(RECORDS, said, line + b"\n")
            said += len(line) + 1
        yield AgentExit(0, "")

    def _lines(self, machine: Machine) -> Iterator[bytes]:
        rng = Random(self.name)
        yield from self.template.first_lines(machine)
        for number in range(1, self.rounds + 1):
            yield from self.template.drawn(rng, number)
        yield from self.template.after

    def interrupt(self) -> None:
        """Nothing to do."""


@dataclass(frozen=True)
class Cost:
    """What a fleet of some size took."""

    hosts: int
    rounds: int
    kept_cpu_s: float
    judged_cpu_s: float
    verdict_cpu_s: float
    page_bytes: int
    disk_bytes: int
    memory_bytes: int
    judging_bytes: int
    """Most memory of a process that judged; 0 where the one that gave the orders did it itself."""
    took_s: float


def cost_of(run: Path, hosts: int, rounds: int) -> Cost:
    """Drive a fleet of so many hosts, each of which measures so many rounds."""
    template = Template.of(run)
    began_s = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="webdyno-bench-") as name:
        out = Path(name)
        drawn = [DrawnHost(f"host{number}", template, rounds) for number in range(hosts)]
        cpu_s = [_cpu_s()]
        with redirect_stdout(io.StringIO()):  # what is said of rounds is made, but not shown
            news = RoundNews(hosts, print, quiet=False)
            dispatcher = Dispatcher(drawn, lambda *_: b"", out)
            dispatcher.measure(Counter({Work(): hosts}), news, yes=False)
        cpu_s.append(_cpu_s())
        machines = judged_machines({run.path.name: run.path for run in finished_runs(out)})
        cpu_s.append(_cpu_s())
        found = judge_fleet(machines)
        page = fleet_page(template.head, found, {}, "webdyno report")
        cpu_s.append(_cpu_s())
        disk = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    kept, judged, verdict = (after - before for before, after in pairwise(cpu_s))
    return Cost(
        hosts=hosts,
        rounds=rounds,
        kept_cpu_s=kept,
        judged_cpu_s=judged,
        verdict_cpu_s=verdict,
        page_bytes=len(page.encode()),
        disk_bytes=disk,
        memory_bytes=_most_memory_bytes(resource.RUSAGE_SELF),
        judging_bytes=_most_memory_bytes(resource.RUSAGE_CHILDREN),
        took_s=time.monotonic() - began_s,
    )


def _cpu_s() -> float:
    """Give the CPU time of this process and of those that it started and that have ended."""
    return sum(os.times()[:4])


def _most_memory_bytes(who: int) -> int:
    return resource.getrusage(who).ru_maxrss * 1024


def work(options: Namespace, console: Console) -> None:
    """Drive fleets of growing size, each in a process whose memory is its own."""
    table = Table(title=f"{options.rounds} rounds on each host", pad_edge=False)
    for heading in HEADINGS:
        table.add_column(heading, justify="right")
    for hosts in options.hosts:
        progress.print(f"{hosts} hosts …")
        # No daemon, as those of multiprocessing's pools: it has to start processes that judge.
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            cost = pool.submit(cost_of, options.folder, hosts, options.rounds).result()
        each = 1e3 / (cost.hosts * cost.rounds)
        table.add_row(
            str(cost.hosts),
            f"{cost.kept_cpu_s * each:.2f}",
            f"{cost.judged_cpu_s * each:.1f}",
            f"{cost.verdict_cpu_s:.1f}",
            f"{cost.page_bytes / 1e3:.0f}",
            f"{cost.disk_bytes / 1e6:.0f}",
            f"{cost.memory_bytes / 1e6:.0f}",
            f"{cost.judging_bytes / 1e6:.0f}",
            f"{cost.took_s:.0f}",
        )
    console.print(table)


def script() -> Script:
    """Give the command line."""
    made = Script(__doc__, EXAMPLES)
    made.add_argument("folder", type=Path, help="of a run without factors")
    made.add_argument("--hosts", type=count, nargs="+", default=[10, 100], help="sizes (10 100)")
    made.add_argument("--rounds", type=count, default=100, help="of each host (100)")
    return made


if __name__ == "__main__":
    sys.exit(script().run(work))
