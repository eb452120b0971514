"""What a fleet of many hosts costs the machine that gave the orders, without any host.

The blocks of a run of yours are drawn at random, with replacement, into the runs of as many hosts
as are asked for. Their pieces come as those of hosts do, each host in a thread of its own; then all
is judged, and the page made. Printed for each size: CPU time per block until it is on disk (drawing
it included), until it is judged, that of verdict and page, what lies on disk, and the most memory
that was needed.
"""

import json
import multiprocessing
import resource
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from random import Random

from rich.console import Console
from rich.table import Table

from rig.options import count
from rig.process import BenchError
from rig.script import Script, progress
from webdyno.cluster.replicates import Fleet
from webdyno.judge.fleet import judge_fleet, judge_machine
from webdyno.model.cluster import Ended, Piece
from webdyno.model.run import RunHead
from webdyno.report.fleet import fleet_page
from webdyno.run.folder import HEAD_FILE, RECORDS_FILE, RunFolder

EXAMPLES = """\
  of the blocks of a run of some minutes
    ./dyno run --budget 2m --out /tmp/run && .venv/bin/python bench/fleet_size.py /tmp/run
  as large as is planned for
    .venv/bin/python bench/fleet_size.py /tmp/run --hosts 1000 --blocks 100
"""
RECORDS = PurePosixPath(RECORDS_FILE)


@dataclass(frozen=True)
class Template:
    """A run that was measured: what its first lines are, and those of each block."""

    head: RunHead
    before: list[bytes]
    blocks: list[list[dict[str, object]]]

    @classmethod
    def of(cls, path: Path) -> "Template":
        """Read a run of one point; raise BenchError where it has no block."""
        blocks: dict[int, list[dict[str, object]]] = {}
        before: list[bytes] = []
        lines = (path / RECORDS_FILE).read_bytes().splitlines()
        for line, record in zip(lines, map(json.loads, lines), strict=True):
            if record.get("block"):
                blocks.setdefault(record["block"], []).append(record)
            elif record["kind"] != "stop":
                before.append(line)
        if not blocks:
            raise BenchError(f"{path} has no block: give a run that measured some")
        return cls(RunFolder.open(path).head, before, list(blocks.values()))


@dataclass
class DrawnHost:
    """A host whose run is drawn from blocks that were measured elsewhere."""

    name: str
    template: Template
    blocks: int

    def replicate(self, parcel: bytes, *, yes: bool) -> Iterator[Piece | Ended]:  # noqa: ARG002
        """Say a block at a time."""
        rng = Random(self.name)
        machine = self.template.head.machine.model_copy(update={"identity": self.name})
        head = self.template.head.model_copy(update={"machine": machine})
        yield Piece(PurePosixPath(HEAD_FILE), 0, head.model_dump_json().encode())
        said = 0
        for number in range(self.blocks + 1):
            lines = self._block(rng, number) if number else self.template.before
            data = b"".join(line + b"\n" for line in lines)
            yield Piece(RECORDS, said, data)
            said += len(data)
        yield Ended(0, "")

    def _block(self, rng: Random, number: int) -> list[bytes]:
        drawn = rng.choice(self.template.blocks)
        return [json.dumps(record | {"block": number}).encode() for record in drawn]

    def interrupt(self) -> None:
        """Nothing to do."""


@dataclass(frozen=True)
class Cost:
    """What a fleet of some size took."""

    hosts: int
    blocks: int
    kept_cpu_s: float
    judged_cpu_s: float
    verdict_s: float
    disk_bytes: int
    memory_bytes: int


def cost_of(run: Path, hosts: int, blocks: int) -> Cost:
    """Drive a fleet of so many hosts, each of which measures so many blocks."""
    template = Template.of(run)
    with tempfile.TemporaryDirectory(prefix="webdyno-bench-") as name:
        out = Path(name)
        drawn = [DrawnHost(f"host{number}", template, blocks) for number in range(hosts)]
        began_s = time.process_time()
        Fleet(drawn, lambda _: b"", out).measure(hosts, lambda *_: None, yes=False)
        kept_s = time.process_time()
        machines = {}
        for host in drawn:
            folder = RunFolder.open(out / host.name)
            machines[host.name] = judge_machine(folder.head, folder.records())
        judged_s = time.process_time()
        found = judge_fleet(machines)
        fleet_page(template.head, found, {}, "webdyno fleet")
        verdict_s = time.process_time() - judged_s
        disk = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    memory_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return Cost(
        hosts, blocks, kept_s - began_s, judged_s - kept_s, verdict_s, disk, memory_kib * 1024
    )


def work(options: Namespace, console: Console) -> None:
    """Drive fleets of growing size, each in a process whose memory is its own."""
    table = Table(title=f"{options.blocks} blocks on each host", pad_edge=False)
    for heading in (
        "hosts",
        "kept, ms/block",
        "judged, ms/block",
        "verdict, s",
        "disk, MB",
        "memory, MB",
    ):
        table.add_column(heading, justify="right")
    spawn = multiprocessing.get_context("spawn")
    for hosts in options.hosts:
        progress.print(f"{hosts} hosts …")
        with spawn.Pool(1) as pool:
            cost = pool.apply(cost_of, (options.folder, hosts, options.blocks))
        each = 1e3 / (cost.hosts * cost.blocks)
        table.add_row(
            str(cost.hosts),
            f"{cost.kept_cpu_s * each:.2f}",
            f"{cost.judged_cpu_s * each:.1f}",
            f"{cost.verdict_s:.1f}",
            f"{cost.disk_bytes / 1e6:.0f}",
            f"{cost.memory_bytes / 1e6:.0f}",
        )
    console.print(table)


def script() -> Script:
    """Give the command line."""
    made = Script(__doc__, EXAMPLES)
    made.add_argument("folder", type=Path, help="of a run without factors")
    made.add_argument("--hosts", type=count, nargs="+", default=[10, 100], help="sizes (10 100)")
    made.add_argument("--blocks", type=count, default=100, help="of each host (100)")
    return made


if __name__ == "__main__":
    sys.exit(script().run(work))
