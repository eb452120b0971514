"""How often a gate is right on a real machine: gates between servers of dialed cost.

webdyno runs as a user runs it, `webdyno gate` with its defaults: baseline and head cost 100 µs of
CPU per request, or head 3%, 7% or 10% more; no change and 10% more also next to a neighbour that
works in bursts on the servers' CPUs. Each gate adds a line to the file of results; the table is
made of all lines.
"""

import sys
from argparse import Namespace
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from rich.console import Console
from rich.table import Table

from rig import lab, machine
from rig.lab import Call, settings_in
from rig.neighbour import bursts
from rig.options import count
from rig.script import Script, progress
from rig.shares import share_words
from truth import CATALOGUE, own_program
from webdyno import GateRun, open_run
from webdyno.core.limits import BASELINE, BASELINE_AGAIN, HEAD, GateAnswer
from webdyno.host.this_machine import Testbed
from webdyno.questions.gate.settings import DEFAULT_TOLERANCES

EXAMPLES = """\
  all that is still missing of 40, and 15 of each other case (some hours)
    .venv/bin/python bench/gates.py
  those that take half a minute each
    .venv/bin/python bench/gates.py --quiet
  one more of each
    .venv/bin/python bench/gates.py --more 1
  only the table of what is there
    .venv/bin/python bench/gates.py --table
"""

RESULTS = Path("bench/results/gates.jsonl")
BASE_US = 100.0


@dataclass(frozen=True)
class Case:
    """Gates whose answer is known."""

    name: str
    change: float
    gates: int
    neighbour: bool = False

    @property
    def right(self) -> GateAnswer:
        """The answer that is right."""
        is_worse = self.change > DEFAULT_TOLERANCES["server_cpu_us"]
        return GateAnswer.FAIL if is_worse else GateAnswer.PASS

    @property
    def asked(self) -> Call:
        """What webdyno is asked."""
        costs = {BASELINE: BASE_US, BASELINE_AGAIN: BASE_US, HEAD: BASE_US * (1 + self.change)}
        return dialed_gate(
            [f'variants."{variant}".settings.cost_us={it:.6g}' for variant, it in costs.items()]
        )


CASES = (
    Case("no change", 0.0, 40),
    Case("3% more", 0.03, 15),
    Case("7% more", 0.07, 15),
    Case("10% more", 0.1, 15),
    Case("no change next to bursts", 0.0, 30, neighbour=True),
    Case("10% more next to bursts", 0.1, 30, neighbour=True),
)


class Answered(lab.Kept):
    """One gate."""

    answer: GateAnswer | None
    """None where there was none; `problem` says why."""
    notes: list[str] = []


def script() -> Script:
    """Describe the command line."""
    made = Script(__doc__, EXAMPLES)
    made.add_argument("--more", type=count, help="so many of each, instead of what is missing")
    made.add_choice("--cases", [case.name for case in CASES])
    made.add_argument("--quiet", action="store_true", help="none beside a neighbour")
    made.add_argument("--table", action="store_true", help="run nothing")
    made.add_argument("--budget", help="webdyno's --budget (its own default)")
    made.add_argument(
        "--results", type=Path, default=RESULTS, help=f"the file that grows ({RESULTS})"
    )
    return made


def work(options: Namespace, console: Console) -> None:
    """Run what is missing, a gate of each case in turns; then show all that is known."""
    known = lab.read_as(options.results, Answered)
    named = [case for case in CASES if case.name in options.cases]
    cases = [case for case in named if not (options.quiet and case.neighbour)]
    left = {case: options.more or case.gates - _count(known, case) for case in cases}
    if not options.table and any(number > 0 for number in left.values()):
        with own_program() as program:
            for turn in range(max(left.values())):
                for case in (case for case in cases if turn < left[case]):
                    found = run(case, program.parent, options.budget)
                    lab.append(options.results, found)
                    said = found.headline or found.problem
                    progress.print(f"{case.name}: {found.answer}, {said}", markup=False)
    console.print(table(lab.read_as(options.results, Answered)))


def run(case: Case, programs: Path, budget: str | None) -> Answered:
    """Run one gate."""
    with _neighbour(case):
        return run_gate(case.name, case.asked.having(time=budget), programs)


def dialed_gate(dials: Iterable[str]) -> Call:
    """Ask whether one dialed server is worse than another, with their dials."""
    settings = {"load.connections": 16, **settings_in(dials)}
    asked = {"base": "dialed", "head": "dialed", "catalog": [str(CATALOGUE)], "yes": True}
    return Call("gate", {**asked, "settings": settings})


def run_gate(case: str, call: Call, programs: Path) -> Answered:
    """Have a gate answered with a folder of own programs on its PATH; say what it answers."""
    return lab.run_as(Answered, case, call, _seen, programs)


def _seen(folder: Path, problem: str) -> dict[str, object]:
    result = open_run(folder)
    if not isinstance(result, GateRun):
        return {"problem": problem or "webdyno left no answer behind"}
    judged = result.gate.judgement
    return {
        "answer": judged.answer,
        "notes": judged.notes,
        "headline": judged.headline,
        "rounds": max((claim.rounds for claim in judged.claims), default=0),
    }


def _neighbour(case: Case) -> AbstractContextManager[None]:
    return bursts(Testbed().split.servers) if case.neighbour else nullcontext()


def _count(outcomes: Sequence[Answered], case: Case) -> int:
    return sum(it.case == case.name for it in outcomes)


def table(outcomes: Sequence[Answered]) -> Table:
    """Show what came of all gates, case by case."""
    made = Table(
        title="gates between servers of dialed cost, tolerances 5, 5 and 25%",
        caption=machine.describe(),
        width=lab.TABLE_WIDTH,
    )
    made.add_column("case")
    headings = ("gates", "right (95% CI)", "pass", "fail", "inconclusive", "no answer")
    for heading in (*headings, "rounds", "s"):
        made.add_column(heading, justify="right")
    for case in CASES:
        mine = [it for it in outcomes if it.case == case.name]
        if not mine:
            continue
        answers = [it.answer for it in mine]
        reported = (GateAnswer.PASS, GateAnswer.FAIL, GateAnswer.INCONCLUSIVE)
        made.add_row(
            case.name,
            str(len(mine)),
            share_words(answers.count(case.right), len(mine)),
            *(str(answers.count(answer)) for answer in reported),
            str(sum(answer not in reported for answer in answers)),
            f"{fmean(it.rounds for it in mine):.1f}",
            f"{fmean(it.took_s for it in mine):.0f}",
        )
    return made


if __name__ == "__main__":
    sys.exit(script().run(work))
