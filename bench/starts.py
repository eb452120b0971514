"""Gates of equal revisions each of whose starts is in one of two states.

webdyno runs as a user runs it, `webdyno gate` with its defaults, on real processes and sockets:
baseline and head are one server of dialed cost, and each start draws whether all its requests cost
5, 12 or 20 per cent more. Such a gate must never fail, and has to say why it takes long. Each gate
adds a line to the file of results; the table is made of all lines.
"""

import sys
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from rich.console import Console
from rich.table import Table

from gates import BASE_US, Answered, dialed_gate, run_gate
from rig import lab, machine
from rig.lab import Call
from rig.script import Script
from truth import run_cases
from webdyno.core.limits import BASELINE, BASELINE_AGAIN, HEAD, GateAnswer

EXAMPLES = """\
  each case once (some minutes)
    .venv/bin/python bench/starts.py
  twenty gates of states that lie 12% apart
    .venv/bin/python bench/starts.py --cases '12% half' --rounds 20
  only the table of what is there
    .venv/bin/python bench/starts.py --rounds 0
"""

RESULTS = Path("bench/results/starts.jsonl")
REPORTED = ("its starts differ", "each of its starts is in one of two states")


@dataclass(frozen=True)
class Case:
    """How far the states lie apart, and how many starts are in the dear one."""

    times: float
    share: float

    @property
    def asked(self) -> Call:
        """What webdyno is asked."""
        settings = {"cost_us": BASE_US, "dear_times": self.times, "dear_share": self.share}
        return dialed_gate(
            f'variants."{variant}".settings.{setting}={value:g}'
            for variant in (BASELINE, BASELINE_AGAIN, HEAD)
            for setting, value in settings.items()
        )


CASES = {
    "5% half": Case(1.05, 0.5),
    "12% half": Case(1.12, 0.5),
    "12% a fifth": Case(1.12, 0.2),
    "20% half": Case(1.2, 0.5),
}


def script() -> Script:
    """Describe the command line."""
    made = Script(__doc__, EXAMPLES)
    made.add_choice("--cases", list(CASES))
    made.add_growing(RESULTS)
    made.add_argument("--budget", help="webdyno's --budget (its own default)")
    return made


def work(options: Namespace, console: Console) -> None:
    """Run what was requested, then show all that is known."""
    run_cases(
        options,
        lambda name, programs: run_gate(
            name, CASES[name].asked.having(time=options.budget), programs
        ),
        line,
    )
    console.print(table(lab.read_as(options.results, Answered)))


def is_reported(found: Answered) -> bool:
    """Whether a gate says that starts differ."""
    return any(words in note for note in found.notes for words in REPORTED)


def line(found: Answered) -> str:
    """Report one gate."""
    reported = "told" if is_reported(found) else "not told"
    said = found.headline or found.problem
    return (
        f"{found.case}: {found.answer}, starts {reported}, {found.rounds} rounds, "
        f"{found.took_s:.0f} s: {said}"
    )


def table(outcomes: Sequence[Answered]) -> Table:
    """Show what came of all gates, case by case."""
    made = Table(
        title="gates of equal servers whose starts are in one of two states",
        caption=machine.describe(),
        width=lab.TABLE_WIDTH,
    )
    made.add_column("states apart,\ndear starts")
    headings = ("gates", "pass", "fail", "inconclusive", "no answer", "told why", "rounds", "s")
    for heading in headings:
        made.add_column(heading, justify="right")
    answered = (GateAnswer.PASS, GateAnswer.FAIL, GateAnswer.INCONCLUSIVE)
    for name in CASES:
        mine = [it for it in outcomes if it.case == name]
        if not mine:
            continue
        answers = [it.answer for it in mine]
        made.add_row(
            name,
            str(len(mine)),
            *(str(answers.count(answer)) for answer in answered),
            str(sum(answer not in answered for answer in answers)),
            str(sum(map(is_reported, mine))),
            f"{fmean(it.rounds for it in mine):.1f}",
            f"{fmean(it.took_s for it in mine):.0f}",
        )
    return made


if __name__ == "__main__":
    sys.exit(script().run(work))
