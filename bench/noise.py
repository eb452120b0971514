"""Does webdyno answer on a noisy machine, and is it right? Kinds of noise times kinds of pairs.

webdyno runs as a user runs it, next to neighbours that this script starts. Slots of each run are
kept (`bench/results/noise/`), and the table judges all of them again by today's rules, so that a
rule is tried on what was measured before. Kinds of noise are for tuning or held out; the table in
the docs is of those held out. Truths are dialed; that of different programs is the median of the
quiet runs of the same machine, so that what counts is the interval on a machine alone.
"""

import sys
import tarfile
import tempfile
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import product
from math import sqrt
from pathlib import Path
from statistics import median

from pydantic import BaseModel, ConfigDict
from rich.console import Console
from rich.table import Table

from rig import lab, machine
from rig.lab import Call
from rig.neighbour import following, throttled, working
from rig.script import Script, progress
from truth import WORLDS, dialed, own_program, within
from webdyno.comparison import judge
from webdyno.comparison.judgement import decisive
from webdyno.core.base import Interval
from webdyno.core.judgement import DIFFERENT, Judgement
from webdyno.host.this_machine import Testbed
from webdyno.measure.folder import RunFolder

EXAMPLES = """\
  one run more of each kind and pair (45 minutes)
    .venv/bin/python bench/noise.py
  a neighbour that follows one variant, three times
    .venv/bin/python bench/noise.py --noises follows --pairs closed-1.05 --rounds 3
  only the table, of the kinds that were held out
    .venv/bin/python bench/noise.py --rounds 0 --held-out
"""

RESULTS = Path("bench/results/noise")
MARK = "--recover-s 2"
"""What the second server alone is started with: it does nothing there."""
MARKED = {"variants.other.settings.recover_s": 2.0}
CROWD = 12
"""Processes that want a CPU all the time, for a load of 12."""
BUILDERS = 3
TIME = "45s"
CPU_METRIC, THROUGHPUT = "server_cpu_us", "throughput_rps"

Neighbour = Callable[[Path], AbstractContextManager[object]]


def _servers() -> list[int]:
    return Testbed().split.servers


def _everywhere() -> list[int]:
    split = Testbed().split
    return [*split.servers, *split.client]


@dataclass(frozen=True)
class Noise:
    """A kind of noise."""

    starts: Neighbour
    """With the program of the dialed server."""
    held_out: bool
    """From tuning: no rule was made by looking at it."""
    follows: bool = False
    """Whether it follows one variant, so that a wrong answer is its aim."""


NOISES = {
    "none": Noise(lambda _: nullcontext(), held_out=False),
    "bursts": Noise(lambda _: working("bursts", [[cpu] for cpu in _servers()]), held_out=False),
    "crowd": Noise(lambda _: working("busy", [_everywhere()] * CROWD), held_out=False),
    "disk": Noise(lambda _: working("disk", [_everywhere()]), held_out=False),
    "steady": Noise(lambda _: working("steady", [[cpu] for cpu in _servers()]), held_out=True),
    "build": Noise(lambda _: working("processes", [_everywhere()] * BUILDERS), held_out=True),
    "memory": Noise(lambda _: working("memory", [[cpu] for cpu in _servers()]), held_out=True),
    "throttled": Noise(lambda program: throttled(program, len(_servers())), held_out=True),
    "follows": Noise(
        lambda program: following(program, MARK, _servers()), held_out=True, follows=True
    ),
    "developers": Noise(lambda _: nullcontext(), held_out=True),
}
"""The last one starts nothing: others compile and test on the machine meanwhile."""


@dataclass(frozen=True)
class Pair:
    """Two variants, the second one last."""

    call: Call
    truths: dict[str, float]
    """By metric; empty where only quiet runs say."""


def _dialed(world: str, ratio: float) -> Pair:
    truths = {CPU_METRIC: ratio}
    if WORLDS[world].higher_is_better:
        truths[THROUGHPUT] = 1 / ratio
    return Pair(dialed({**WORLDS[world].settings_at(ratio), **MARKED}), truths)


PAIRS = {
    **{
        f"{world}-{ratio:g}": _dialed(world, ratio)
        for world, ratio in product(("closed", "open", "slow"), (1.0, 1.05))
    },
    "different": Pair(
        Call("compare", {"system": "nginx", "baseline": "apache-event", "yes": True}), {}
    ),
}
"""A loop that keeps servers busy, one at a given rate, one that mostly waits, and two programs: an
event loop, and threads."""


class Kept(BaseModel):
    """What a run was, next to its slots."""

    model_config = ConfigDict(frozen=True)

    noise: str
    pair: str
    at: datetime
    machine: str
    commit: str
    took_s: float


@dataclass(frozen=True)
class Found:
    """A kept run, judged by today's rules."""

    kept: Kept
    judgement: Judgement

    def interval(self, metric: str) -> Interval | None:
        """The deciding interval of the second variant's ratio on a metric.

        Of different programs it is the one of a machine alone, as their truth is.
        """
        is_dialed = bool(PAIRS[self.kept.pair].truths)
        of_metric = (it for it in self.judgement.comparisons if it.metric == metric)
        return next(
            (it.decisive if is_dialed else it.alone or it.decisive for it in of_metric), None
        )

    @property
    def deciding(self) -> str:
        """The metric that the verdict is about."""
        comparisons = self.judgement.comparisons
        return "" if not comparisons else decisive(comparisons, THROUGHPUT)[0].metric

    def finds(self, metric: str) -> bool:
        """Whether a difference on a metric is clear."""
        comparisons = self.judgement.comparisons
        return any(it.metric == metric and it.verdict in DIFFERENT for it in comparisons)


def script() -> Script:
    """Describe the command line."""
    made = Script(__doc__, EXAMPLES)
    made.add_choice("--noises", list(NOISES))
    made.add_choice("--pairs", list(PAIRS))
    made.add_growing(RESULTS)
    made.add_argument("--time", default=TIME, help=f"of each run ({TIME})")
    made.add_argument("--held-out", action="store_true", help="no row of the kinds for tuning")
    made.add_argument("--machine", default="", help="only runs of machines so described: AMD")
    return made


def work(options: Namespace, console: Console) -> None:
    """Run what was requested, in turns; then judge all that is kept."""
    if options.rounds:
        with own_program() as program:
            cases = list(product(options.noises, options.pairs))
            for noise, pair in cases * options.rounds:
                progress.print(f"{noise}, {pair}: {_run(noise, pair, program, options)}")
    judged = _judged(options.results)
    found = [it for it in judged if it.kept.machine.startswith(options.machine)]
    console.print(table(found, held_out=options.held_out))


def _run(noise: str, pair: str, program: Path, options: Namespace) -> str:
    """Measure once and keep it; say what came of it."""
    at = datetime.now(UTC)
    with tempfile.TemporaryDirectory(prefix="webdyno-bench-") as scratch:
        folder = Path(scratch) / "run"
        call = PAIRS[pair].call.having(output=folder, time=options.time)
        with NOISES[noise].starts(program):
            problem = call.made(program.parent)
        took_s = (datetime.now(UTC) - at).total_seconds()
        if not (folder / "slots.jsonl").exists():
            return problem or "webdyno left no run behind"
        kept = Kept(
            noise=noise,
            pair=pair,
            at=at,
            machine=machine.describe(),
            commit=lab.commit(),
            took_s=took_s,
        )
        (folder / "kept.json").write_text(kept.model_dump_json(), encoding="utf-8")
        options.results.mkdir(parents=True, exist_ok=True)
        name = f"{noise}-{pair}-{at:%Y%m%d-%H%M%S}.tar.xz"
        with tarfile.open(options.results / name, "w:xz") as archive:
            for file in ("kept.json", "run.json", "slots.jsonl"):
                archive.add(folder / file, file)
        return judge(RunFolder.open(folder).data().points[0]).headline


def _judged(results: Path) -> Iterator[Found]:
    for archived in sorted(results.glob("*.tar.xz")):
        with tempfile.TemporaryDirectory(prefix="webdyno-bench-") as scratch:
            folder = Path(scratch)
            with tarfile.open(archived) as archive:
                archive.extractall(folder, filter="data")
            kept = Kept.model_validate_json((folder / "kept.json").read_text(encoding="utf-8"))
            yield Found(kept, judge(RunFolder.open(folder).data().points[0]))


def table(found: Sequence[Found], *, held_out: bool) -> Table:
    """Show by kind of noise how often intervals hold the truth, and what they say."""
    made = Table(
        title="noisy machines" + (", held-out kinds" if held_out else ""),
        caption=machine.describe(),
        width=lab.TABLE_WIDTH,
        padding=0,
    )
    for heading in ("noise", "metric"):
        made.add_column(heading)
    headings = ("runs", "hold the\ntruth", "±", "equal: called\ndifferent", "5%:\nfound", "s")
    for heading in headings:
        made.add_column(heading, justify="right")
    for name, noise in NOISES.items():
        if held_out and not noise.held_out:
            continue
        mine = [it for it in found if it.kept.noise == name]
        for metric in (THROUGHPUT, CPU_METRIC):
            if cells := _cells(mine, found, metric):
                made.add_row(name, metric, *cells)
    return made


def _cells(mine: Sequence[Found], every: Sequence[Found], metric: str) -> list[str]:
    """Count the runs of a kind whose truth on a metric is known."""
    known = [
        (it, truth, interval)
        for it in mine
        if (truth := _truth(it.kept, every, metric)) and (interval := it.interval(metric))
    ]
    if not known:
        return []
    halves = [sqrt(interval.high / interval.low) - 1 for _, _, interval in known]
    equal = [it for it, truth, _ in known if truth == 1]
    slower = [it for it, truth, _ in known if 1 < max(truth, 1 / truth) < 1.1]
    return [
        str(len(known)),
        f"{sum(within(interval, truth) for _, truth, interval in known)}",
        f"{median(halves):.1%}",
        f"{sum(it.finds(metric) for it in equal)} of {len(equal)}",
        f"{sum(it.finds(metric) for it in slower)} of {len(slower)}",
        f"{median(it.kept.took_s for it, _, _ in known):.0f}",
    ]


def _truth(kept: Kept, every: Sequence[Found], metric: str) -> float | None:
    """The true ratio: dialed, or the median of quiet runs; None where neither says."""
    truths = PAIRS[kept.pair].truths
    if truths:
        return truths.get(metric)
    quiet = [
        interval.estimate
        for it in every
        if (it.kept.noise, it.kept.pair) == ("none", kept.pair)
        and it.kept.machine.partition(",")[0] == kept.machine.partition(",")[0]
        and (interval := it.interval(metric))
    ]
    return median(quiet) if quiet else None


if __name__ == "__main__":
    sys.exit(script().run(work))
