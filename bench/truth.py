"""Does the whole lab find the truth? Servers of dialed cost, whose true ratio is known.

webdyno runs as a user runs it, on real processes and sockets. Each request of the second server
costs a known multiple of the CPU time that one of the first costs, so a saturated closed loop has
that ratio of throughputs, and any load that ratio of CPU times per request. Quiet, and next to a
noisy neighbour that this script starts: bursts of work on the servers' CPUs, a control group that
is throttled now and then as a stand-in for steal, or a second server that starts slowly. Each run
adds a line to the file of results; the table is made of all lines. "CPU holds" counts the intervals
of CPU per request that hold the truth, whatever the verdict is about. Intervals are those that
verdicts rest on, worst-case CIs; "sampling" counts those without bias bounds.
"""

import shutil
import statistics
import sys
import tempfile
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from itertools import product
from math import sqrt
from pathlib import Path
from typing import TypeVar

from rich.console import Console
from rich.table import Table

from rig import lab, machine, programs
from rig.lab import Call, Outcome, settings_in
from rig.neighbour import bursts, throttled
from rig.options import some_of
from rig.script import Script, progress
from webdyno.comparison.comparison import DELTA
from webdyno.core.base import Interval
from webdyno.core.judgement import Verdict
from webdyno.host.this_machine import Testbed

EXAMPLES = """\
  everything, once (60 runs: an hour and a half)
    .venv/bin/python bench/truth.py
  every night a bit more
    .venv/bin/python bench/truth.py --ratios 1,1.05 --neighbours quiet,bursts --rounds 5
  only the table of what is there
    .venv/bin/python bench/truth.py --rounds 0
"""

K = TypeVar("K", bound=lab.Kept)

CATALOGUE = Path(__file__).parent / "rig/dialed"
SERVER = "dialed_server"
RESULTS = Path("bench/results/truth.jsonl")
CPU_METRIC = "server_cpu_us"
RATIOS = ("1", "1.02", "1.05", "1.5", "4")
DIAL_ERROR = 5e-4
"""How exact the dial is: the last answer of a slot is written after it was paid for."""


@dataclass(frozen=True)
class World:
    """A load, and what a request of the first server costs under it."""

    base_us: float
    settings: tuple[str, ...]
    higher_is_better: bool
    """Whether the verdict is about the throughput, else about CPU per request."""

    def settings_at(self, ratio: float) -> dict[str, object]:
        """Give the settings of an experiment in which the second server costs `ratio` as much."""
        costs = {"baseline": self.base_us, "other": self.base_us * ratio}
        dials = [
            f"variants.{variant}.settings.cost_us={cost:.6g}" for variant, cost in costs.items()
        ]
        return settings_in([*self.settings, *dials])

    def true_ratio(self, ratio: float) -> float:
        """Give the ratio that the deciding metric has."""
        return 1 / ratio if self.higher_is_better else ratio


WORLDS = {
    "closed": World(100, (), higher_is_better=True),
    "open": World(
        100,
        (
            *("load.loop=open", "load.rate_per_s=1000", "load.connections=64"),
            f"measure.decide_on={CPU_METRIC}",
        ),
        higher_is_better=False,
    ),
    # 16 connections and 50 ms of rest: saturated, so the work alone decides the throughput.
    "slow": World(
        10_000,
        ("variants.baseline.settings.sleep_ms=50", "variants.other.settings.sleep_ms=50"),
        higher_is_better=True,
    ),
}

NEIGHBOURS = ("quiet", "bursts", "throttled", "slow-start")
SLOW_START = {
    "variants.other.settings.slow_start": 0.5,
    "variants.other.settings.slow_start_s": 0.5,
}


@dataclass(frozen=True)
class Case:
    """One question whose answer is known."""

    world: str
    ratio: str
    neighbour: str

    @property
    def name(self) -> str:
        """What results call it."""
        return f"{self.world} {self.ratio} {self.neighbour}"

    @property
    def asked(self) -> Call:
        """What webdyno is asked."""
        slow = SLOW_START if self.neighbour == "slow-start" else {}
        return dialed({**WORLDS[self.world].settings_at(float(self.ratio)), **slow})

    def holds(self, interval: Interval | None) -> bool:
        """Whether an interval of the deciding metric holds the truth."""
        truth = WORLDS[self.world].true_ratio(float(self.ratio))
        return interval is not None and within(interval, truth)

    def cpu_holds(self, outcome: Outcome) -> bool:
        """Whether that of CPU per request does, which any load says."""
        ratio = outcome.worst_case.get(CPU_METRIC, outcome.ratios.get(CPU_METRIC))
        return ratio is not None and within(ratio, float(self.ratio))

    @property
    def right(self) -> set[Verdict]:
        """The verdicts that are true; at δ itself it may be a difference, or none that counts."""
        worse = float(self.ratio) - 1
        if worse == 0:
            return {Verdict.EQUIVALENT}
        return {Verdict.SLOWER, Verdict.EQUIVALENT} if worse <= DELTA else {Verdict.SLOWER}


def within(interval: Interval, truth: float) -> bool:
    """Whether the truth lies in an interval, up to the dial's own error."""
    return interval.low / (1 + DIAL_ERROR) <= truth <= interval.high * (1 + DIAL_ERROR)


def script() -> Script:
    """Describe the command line."""
    made = Script(__doc__, EXAMPLES)
    made.add_choice("--loads", list(WORLDS))
    made.add_argument(
        "--ratios", type=some_of(RATIOS), default=list(RATIOS), help=f"some of {','.join(RATIOS)}"
    )
    made.add_choice("--neighbours", NEIGHBOURS)
    made.add_growing(RESULTS)
    made.add_argument("--budget", help="webdyno's --budget (its own default)")
    return made


def work(options: Namespace, console: Console) -> None:
    """Run what was requested, then show all that is known."""
    cases = [Case(*each) for each in product(options.loads, options.ratios, options.neighbours)]
    if options.rounds:
        with own_program() as program:
            for _ in range(options.rounds):
                for case in cases:
                    with neighbour(case.neighbour, program):
                        call = case.asked.having(time=options.budget)
                        found = lab.run_lab(case.name, call, program.parent)
                    lab.append(options.results, found)
                    progress.print(line(case, found), markup=False)
    console.print(table(lab.read(options.results)))


def dialed(settings: Mapping[str, object]) -> Call:
    """Ask for the comparison of two dialed servers, with these settings of its experiment."""
    of_ours = {"catalog": [str(CATALOGUE)], "yes": True}
    return Call("run_experiment", {"experiment": "dialed", "settings": settings, **of_ours})


@contextmanager
def own_program() -> Iterator[Path]:
    """Build the server and put it where every user may run it."""
    built = programs.build(SERVER)[SERVER]
    with tempfile.TemporaryDirectory(prefix="bench-dialed-") as folder:
        Path(folder).chmod(0o755)
        yield Path(shutil.copy(built, folder))


def run_cases(options: Namespace, run: Callable[[str, Path], K], line: Callable[[K], str]) -> None:
    """Run each case so many times as was requested; keep and say what came of each at once.

    `run` gets a case's name, and the folder with the server of dialed cost.
    """
    if not options.rounds:
        return
    with own_program() as program:
        for _ in range(options.rounds):
            for name in options.cases:
                found = run(name, program.parent)
                lab.append(options.results, found)
                progress.print(line(found), markup=False)


def neighbour(name: str, program: Path) -> AbstractContextManager[None]:
    """Start the neighbour of this name."""
    servers = Testbed().split.servers
    next_to: dict[str, Callable[[], AbstractContextManager[None]]] = {
        "bursts": lambda: bursts(servers),
        "throttled": lambda: throttled(program, len(servers)),
    }
    return next_to.get(name, nullcontext)()


def line(case: Case, found: Outcome) -> str:
    """Report one run."""
    if found.verdict is None:
        return f"{case.name}: no judgement: {found.problem}"
    shown = "no interval"
    if found.decisive:
        held = "holds" if case.holds(found.decisive) else "misses"
        shown = f"{found.decisive.low:.4f} to {found.decisive.high:.4f}, {held} the truth"
    return f"{case.name}: {found.verdict}, {shown}, {found.took_s:.0f} s"


def table(outcomes: Sequence[Outcome]) -> Table:
    """Show what came of all runs, case by case and together."""
    made = Table(
        title="servers of dialed cost",
        caption=machine.describe(),
        width=lab.TABLE_WIDTH,
        padding=0,
    )
    for heading in ("load", "true\nratio", "neighbour"):
        made.add_column(heading)
    columns = (
        "runs",
        "hold\nthe truth",
        "as\nmeasured",
        "right",
        "wrong",
        "inconclusive",
        "invalid",
        "±",
        "CPU\nholds",
        "s",
    )
    for heading in columns:
        made.add_column(heading, justify="right")
    every: list[tuple[Case, Outcome]] = []
    for case in (Case(*each) for each in product(WORLDS, RATIOS, NEIGHBOURS)):
        mine = [(case, found) for found in lab.of_case(outcomes, case.name)]
        if mine:
            made.add_row(case.world, case.ratio, case.neighbour, *cells(mine))
        every += mine
    made.add_section()
    for name in NEIGHBOURS:
        if mine := [each for each in every if each[0].neighbour == name]:
            made.add_row("all", "", name, *cells(mine))
    if every:
        made.add_row("all", "", "", *cells(every))
    return made


def cells(runs: Sequence[tuple[Case, Outcome]]) -> list[str]:
    """Count what came of these runs; what has no judgement counts as invalid."""
    judged = [(case, it) for case, it in runs if it.verdict not in {None, Verdict.INVALID}]
    known = [(case, it) for case, it in judged if it.decisive is not None]
    right = sum(it.verdict in case.right for case, it in judged)
    inconclusive = sum(it.verdict is Verdict.INCONCLUSIVE for _, it in judged)
    halves = [sqrt(it.decisive.high / it.decisive.low) - 1 for _, it in known if it.decisive]
    return [
        f"{len(runs)}",
        f"{sum(case.holds(it.decisive) for case, it in known)} of {len(known)}",
        f"{sum(case.holds(it.ratio) for case, it in known)} of {len(known)}",
        f"{right}",
        f"{len(judged) - right - inconclusive}",
        f"{inconclusive}",
        f"{len(runs) - len(judged)}",
        f"{statistics.median(halves):.1%}" if halves else "–",
        f"{sum(case.cpu_holds(it) for case, it in runs)} of {len(runs)}",
        f"{statistics.fmean(it.took_s for _, it in runs):.0f}",
    ]


if __name__ == "__main__":
    sys.exit(script().run(work))
