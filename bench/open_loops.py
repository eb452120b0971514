"""What the load engine costs in open loops: today's, an earlier one, and a bare epoll loop.

Each round runs every case once, in random order, on one core, against the same nginx on the other:
20,000 requests per second over 64 connections, exactly on time and with budgets, with CPUs that
idle as usual and kept awake; and closed loops, TLS and HTTP/2 next to them. Ratios are taken within
a round; tables show medians with an interval of at least 95% confidence. Each sample adds a line to
the file of results; the tables are made of those of one revision of the engine.
"""

import itertools
import json
import random
import statistics
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict
from rich.console import Console
from rich.table import Table

from rig import counts, lab, machine, programs
from rig.nginx import Nginx, running_nginx
from rig.options import seconds
from rig.process import BenchError, run_pinned
from rig.samples import Ratio, median_interval
from rig.script import Script, progress
from webdyno.host.machine import never_idle, polling_when_idle, takes_latency_limits

EXAMPLES = """\
  everything, 15 rounds of a second each (9 minutes), against the engine of a revision
    .venv/bin/python bench/open_loops.py --rounds 15 --against 98451792
  exact open loops only
    .venv/bin/python bench/open_loops.py --rounds 15 --against 98451792 --loads exact
  only the tables of what is there
    .venv/bin/python bench/open_loops.py --rounds 0
"""

RESULTS = Path("bench/results/open_loops.jsonl")
NOW, BEFORE, FLOOR = "now", "before", "floor"
AS_USUAL, POLLING, TASK = "as usual", "polling", "idle-class task"
"""How CPUs idle."""
RATE_RPS, CONNECTIONS = 20_000, 64
LEAST_OF_RATE = 0.97
PATIENCE_S = 20.0


class Work(NamedTuple):
    """What a client does."""

    flags: tuple[str, ...]
    """Of loadgen."""
    path: str = "/100b"
    of_floor: tuple[str, ...] | None = None
    """The same for the bare loop, which can't do all."""
    tls: bool = False
    http2: bool = False
    new: bool = False
    """The earlier engine can't do it."""

    @property
    def is_open(self) -> bool:
        return "--rate" in self.flags


OPEN = ("--rate", str(RATE_RPS), "--connections", str(CONNECTIONS))
LOADS = {
    "exact": Work(OPEN, of_floor=OPEN),
    "exact-kernel-times": Work((*OPEN, "--kernel-times"), new=True),
    "200us": Work((*OPEN, "--send-delay-budget=200us"), of_floor=(*OPEN, "--budget-us=200")),
    "1ms": Work((*OPEN, "--send-delay-budget=1ms"), of_floor=(*OPEN, "--budget-us=1000")),
    "closed": Work(("-c", "64"), of_floor=("-c", "64")),
    "closed-kernel-times": Work(("-c", "64", "--kernel-times"), new=True),
    "tls-100kb": Work(("-c", "16", "--tls-verify=off"), path="/100kb", tls=True),
    "http2": Work(("-c", "8", "--http2", "--streams", "10"), http2=True),
    "http2-one-stream": Work(("-c", "64", "--http2"), http2=True),
}
WITH_TASK_TOO = {"exact", "exact-kernel-times"}
"""Loads that are run next to the task even where CPUs can poll instead."""


class Goal(NamedTuple):
    """Today's engine on a load is to cost at most so many times what another client costs."""

    load: str
    to: str
    highest: float
    kept_awake: bool = False
    """CPUs don't idle as usual while today's engine and the bare loop run."""
    to_load: str | None = None
    """The other's load, where it can't do the same."""


GOALS = (
    Goal("exact", BEFORE, 0.85),
    Goal("exact", BEFORE, 0.85, kept_awake=True),
    Goal("exact-kernel-times", BEFORE, 0.85, kept_awake=True, to_load="exact"),
    Goal("exact-kernel-times", BEFORE, 0.85, to_load="exact"),
    Goal("200us", BEFORE, 0.8, kept_awake=True),
    Goal("1ms", BEFORE, 0.8, kept_awake=True),
    Goal("200us", FLOOR, 1.15, kept_awake=True),
    Goal("1ms", FLOOR, 1.1, kept_awake=True),
    Goal("closed", BEFORE, 1.02),
    Goal("tls-100kb", BEFORE, 0.9),
    Goal("http2", BEFORE, 0.9),
    Goal("http2-one-stream", BEFORE, 0.9),
)


class Sample(BaseModel):
    """One client on one load: a line of the file of results."""

    model_config = ConfigDict(frozen=True)

    at: datetime
    machine: str
    commit: str
    against: str
    round: str
    load: str
    client: str
    idle: str
    cpu_us: float | None = None
    """CPU time of its process per valid response."""
    wake_ups: float | None = None
    """Per valid response."""
    delay_p99_us: float | None = None
    others: float = 0.0
    """Share of the time in which others had its core."""
    problem: str = ""

    @property
    def case(self) -> tuple[str, str, str]:
        return self.load, self.idle, self.client


def script() -> Script:
    """Describe the command line."""
    made = Script(__doc__, EXAMPLES)
    made.add_choice("--loads", list(LOADS))
    made.add_growing(RESULTS)
    made.add_argument("--against", default="HEAD", help="revision of the earlier engine (HEAD)")
    made.add_argument("--duration", type=seconds, default=1.0, help="of a sample in seconds (1)")
    made.add_argument("--revision", help="whose samples to show (that of the last sample)")
    made.add_argument("--seed", type=int, default=1, help="of the random order (1)")
    return made


def ways_to_idle(cpu: int) -> dict[str, Callable[[], AbstractContextManager[object]]]:
    """Give how CPUs can idle on this machine."""
    ways: dict[str, Callable[[], AbstractContextManager[object]]] = {AS_USUAL: nullcontext}
    if takes_latency_limits():
        ways[POLLING] = polling_when_idle
    return ways | {TASK: lambda: never_idle([cpu])}


def cases(loads: Sequence[str], idling: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Give load, way to idle and client of each sample of a round."""
    for load in loads:
        work = LOADS[load]
        clients = [NOW, *([] if work.new else [BEFORE]), *([FLOOR] if work.of_floor else [])]
        for idle in idling if work.is_open else [AS_USUAL]:
            if idle != TASK or POLLING not in idling or load in WITH_TASK_TOO:
                yield from ((load, idle, client) for client in clients)


def work(options: Namespace, console: Console) -> None:
    """Run what was requested, then show all that is known of one revision."""
    if options.rounds:
        measure(options)
    samples = lab.read_as(options.results, Sample)
    if samples:
        revision = options.revision or samples[-1].commit
        samples = [each for each in samples if each.commit.startswith(revision)]
    console.print(table(samples))
    for line in goals(samples):
        console.print(line)


def measure(options: Namespace) -> None:
    """Run all rounds."""
    cores = machine.split_this_machine()
    paths = {BEFORE: programs.build_at(options.against), **_built()}
    ways = ways_to_idle(cores.client)
    order = random.Random(options.seed)
    began = datetime.now(UTC)
    fixed = {"machine": machine.describe(), "commit": lab.commit(), "against": options.against}
    with running_nginx(cores.server, tls=True) as nginx:
        for number in range(options.rounds):
            planned = list(cases(options.loads, list(ways)))
            for load, idle, client in order.sample(planned, len(planned)):
                with ways[idle]():
                    command = command_of(client, paths[client], LOADS[load], nginx, options)
                    found = run(client, LOADS[load], command, cores.client, options.duration)
                sample = Sample(
                    **fixed,
                    **found,
                    at=datetime.now(UTC),
                    round=f"{began:%Y-%m-%d %H:%M:%S} {number}",
                    load=load,
                    client=client,
                    idle=idle,
                )
                lab.append(options.results, sample)
                progress.print(line(sample), markup=False)


def _built() -> dict[str, Path]:
    built = programs.build("loadgen", "floor")
    return {NOW: built["loadgen"], FLOOR: built["floor"]}


def command_of(client: str, path: Path, asked: Work, nginx: Nginx, options: Namespace) -> list[str]:
    """Give the command of a client."""
    if client == FLOOR:
        address = nginx.url("").removeprefix("http://")
        return [str(path), address, asked.path, *(asked.of_floor or ()), f"-d{options.duration:g}"]
    url = nginx.url(asked.path, tls=asked.tls, http2=asked.http2)
    usual = ("run", url, "--threads=1", "--json", f"--time={options.duration:g}s")
    return [str(path), *usual, *asked.flags]


def run(
    client: str, asked: Work, command: Sequence[str], cpu: int, duration_s: float
) -> dict[str, object]:
    """Run a client once, and give what a sample says of it."""
    finished = run_pinned(command, [cpu], duration_s + PATIENCE_S)
    if finished.exit_code not in (0, 3):
        return {"problem": finished.reason}
    try:
        counted = (counts.floor if client == FLOOR else counts.loadgen)(finished.output)
    except BenchError as error:
        return {"problem": str(error)}
    if counted.failed or not counted.completed:
        return {"problem": f"{counted.failed} requests failed, {counted.completed} didn't"}
    if asked.is_open and counted.completed < LEAST_OF_RATE * RATE_RPS * duration_s:
        return {"problem": f"{counted.completed} responses are too few for its rate"}
    reported = json.loads(finished.output)
    its = reported if client == FLOOR else reported["client"]
    delay = (
        reported if client == FLOOR else {"send_delay_p99_us": reported["send_delay_us"].get("p99")}
    )
    return {
        "cpu_us": finished.cpu_s * 1e6 / counted.completed,
        "wake_ups": its["wake_ups"] / counted.completed if asked.is_open else None,
        "delay_p99_us": delay["send_delay_p99_us"] if asked.is_open else None,
        "others": finished.others,
    }


def line(sample: Sample) -> str:
    """Report one sample."""
    reported = sample.problem or f"{sample.cpu_us:.2f} µs"
    return f"{sample.round[-2:]}: {sample.load}, {sample.idle}, {sample.client}: {reported}"


def ratios(
    samples: Sequence[Sample], case: tuple[str, str, str], to: tuple[str, str, str]
) -> list[float]:
    """Give CPU per request relative to another case, of each round that has both."""
    of = {(each.round, each.case): each.cpu_us for each in samples if each.cpu_us}
    rounds = dict.fromkeys(each.round for each in samples)
    both = [(of.get((name, case)), of.get((name, to))) for name in rounds]
    return [one / other for one, other in both if one and other]


def table(samples: Sequence[Sample]) -> Table:
    """Show the cost of each load, by how CPUs idle and by client."""
    made = Table(title="cost of the load engine", caption=machine.describe(), width=150)
    for heading in ("load", "CPUs idle", "client"):
        made.add_column(heading)
    for heading in ("rounds", "CPU µs/request", "wake-ups", "delay p99, µs", "× before", "× floor"):
        made.add_column(heading, justify="right")
    known = {sample.case for sample in samples}
    for case in itertools.product(LOADS, (AS_USUAL, POLLING, TASK), (NOW, BEFORE, FLOOR)):
        own = [each for each in samples if each.case == case and each.cpu_us]
        if case not in known:
            continue
        load, idle, _ = case
        made.add_row(
            *case,
            f"{len(own)}",
            shown([each.cpu_us for each in own if each.cpu_us]),
            shown([each.wake_ups for each in own if each.wake_ups is not None]),
            shown([each.delay_p99_us for each in own if each.delay_p99_us is not None], 0),
            shown(ratios(samples, case, (load, AS_USUAL, BEFORE))),
            shown(ratios(samples, case, (load, idle, FLOOR))),
        )
    return made


def shown(values: Sequence[float], digits: int = 2) -> str:
    """Give the median with its interval."""
    if not values:
        return "-"
    low, high, _ = median_interval(values)
    return f"{statistics.median(values):.{digits}f} ({low:.{digits}f}–{high:.{digits}f})"


def goals(samples: Sequence[Sample]) -> Iterator[str]:
    """Report which goals are reached: the whole interval decides."""
    awake = POLLING if any(each.idle == POLLING for each in samples) else TASK
    for goal in GOALS:
        idle = awake if goal.kept_awake else AS_USUAL
        to_idle = idle if goal.to == FLOOR else AS_USUAL
        found = ratios(
            samples, (goal.load, idle, NOW), (goal.to_load or goal.load, to_idle, goal.to)
        )
        if not found:
            continue
        ratio = Ratio(statistics.median(found), *median_interval(found), len(found))
        yield (
            f"{goal.load}, CPUs {idle}: at most {goal.highest:.2f}× {goal.to} "
            f"({to_idle}): {ratio.verdict(goal.highest)}, {shown(found)}, {len(found)} rounds"
        )


if __name__ == "__main__":
    sys.exit(script().run(work))
