"""How soon is there an answer? The first comparison, as a new user starts it, again and again.

The clock runs from the command to the line that reports the verdict, whatever has to be started and
found out included; the longer look at what happens later comes after it. Each run adds a line to
the file of results; the table is made of all of them.
"""

import subprocess
import sys
import tempfile
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

from rig import lab, machine
from rig.script import Script, progress

EXAMPLES = """\
  twenty first comparisons (15 minutes)
    .venv/bin/python bench/first_answer.py --rounds 20
  only the table of what is there
    .venv/bin/python bench/first_answer.py --rounds 0
"""

RESULTS = Path("bench/results/first_answer.jsonl")
COMMAND = ("run", "--yes")
ANSWER = "of load without restarts"
"""Stands in the line that says what the rounds have shown."""
PROMISED_S = 25.0


class FirstAnswer(lab.Kept):
    """One first comparison."""

    answer_s: float | None = None
    """From the command to the line with the verdict; None where there was none."""


def script() -> Script:
    """Describe the command line."""
    made = Script(__doc__, EXAMPLES)
    made.add_growing(RESULTS)
    return made


def work(options: Namespace, console: Console) -> None:
    """Run what was requested, then show all that is known."""
    for _ in range(options.rounds):
        found = first_comparison()
        lab.append(options.results, found)
        progress.print(f"{found.headline or found.problem} {found.took_s:.1f} s", markup=False)
    console.print(table(lab.read_as(options.results, FirstAnswer)))


def first_comparison() -> FirstAnswer:
    """Run webdyno as a new user does, and watch the lines that it prints."""
    begun = lab.Begun.now("first comparison")
    headline, answer_s, lines = "", None, []
    with tempfile.TemporaryDirectory(prefix="webdyno-bench-") as scratch:
        command = [str(lab.WEBDYNO), *COMMAND, f"--output={scratch}/run"]
        with subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        ) as running:
            for line in running.stderr or ():
                lines.append(line.strip())
                if ANSWER in line:
                    headline, answer_s = line.strip(), begun.took_s
    return FirstAnswer(
        **begun.kept(),
        headline=headline,
        answer_s=answer_s,
        problem="" if answer_s else " ".join(lines)[-500:],
    )


def table(found: Sequence[FirstAnswer]) -> Table:
    """Show how soon there was an answer, commit by commit."""
    made = Table(title="first answers", caption=machine.describe(), width=lab.TABLE_WIDTH)
    made.add_column("commit")
    headings = (
        "runs",
        "median, s",
        "earliest, s",
        "latest, s",
        f"within {PROMISED_S:g} s",
        "end, s",
    )
    for heading in headings:
        made.add_column(heading, justify="right")
    for commit in dict.fromkeys(it.commit for it in found):
        runs = [it for it in found if it.commit == commit]
        answers = [it.answer_s for it in runs if it.answer_s is not None]
        prompt = sum(it <= PROMISED_S for it in answers)
        made.add_row(
            commit,
            str(len(runs)),
            f"{median(answers):.1f}" if answers else "–",
            f"{min(answers):.1f}" if answers else "–",
            f"{max(answers):.1f}" if answers else "–",
            f"{prompt} of {len(runs)}",
            f"{median(it.took_s for it in runs):.1f}",
        )
    return made


if __name__ == "__main__":
    sys.exit(script().run(work))
