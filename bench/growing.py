"""Are equal servers equivalent while their tables grow? With slots that begin alike, and without.

Both variants are the same program (`rig/notes_server.py`): one request in five leaves a note, the
others wait until all notes are read, so that each slot makes the next one about 2% dearer. With
`state.reset = "slot"` each slot finds the same notes in PostgreSQL; put back once a round, or never
(in a file), the drift should be reported. Each run adds a line to the file of results; the table is
made of all of them.
"""

import sys
import tempfile
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from rig import lab, machine
from rig.lab import Call, Outcome
from rig.options import count
from rig.script import Script, progress
from webdyno.core.judgement import DIFFERENT, Verdict

EXAMPLES = """\
  each case once, 20 rounds (11 minutes)
    .venv/bin/python bench/growing.py
  both with a database (8 minutes)
    .venv/bin/python bench/growing.py --cases 'each slot,each round'
  only the table of what is there
    .venv/bin/python bench/growing.py --rounds 0
"""

RESULTS = Path("bench/results/growing.jsonl")
SERVER = Path(__file__).parent / "rig/notes_server.py"
CASES = {
    "each slot": "slot",
    "each round": "round",
    "never": None,
}
"""When notes are put back: `state.reset` of their database; None where they are in a file."""
REPORTED = "state-grows"
MEASURE = {
    "slots_per_variant": 4,
    "slot_s": 0.7,
    "warmup_s": 0.5,
    "soak_s": 0,
    "budget_s": "30m",
}
CONNECTIONS = 8


def script() -> Script:
    """Describe the command line."""
    made = Script(__doc__, EXAMPLES)
    made.add_choice("--cases", list(CASES))
    made.add_growing(RESULTS)
    made.add_argument(
        "--of-webdyno", type=count, default=20, help="rounds of webdyno in each run (20)"
    )
    return made


def work(options: Namespace, console: Console) -> None:
    """Run what was requested, then show all that is known."""
    for _ in range(options.rounds):
        for name in options.cases:
            found = compare(name, options.of_webdyno)
            lab.append(options.results, found)
            progress.print(line(found), markup=False)
    console.print(table(lab.read(options.results)))


def compare(name: str, rounds: int, measure: dict[str, object] | None = None) -> Outcome:
    """Compare the server with itself for so many rounds."""
    rounds_alone = {"min_rounds": rounds, "max_rounds": rounds}
    with tempfile.TemporaryDirectory(prefix="webdyno-notes-") as folder:
        Path(folder).chmod(0o1777)  # servers of root run as another user
        asked = experiment(
            CASES[name], Path(folder), {**MEASURE, **rounds_alone, **(measure or {})}
        )
        return lab.run_lab(name, Call("run_experiment", {"experiment": asked, "yes": True}))


def experiment(reset: str | None, folder: Path, measure: dict[str, object]) -> dict[str, Any]:
    """Give the experiment, as its file would have it; the folder is for notes in files."""
    variants = ("one", "other")
    asked: dict[str, Any] = {
        "title": "A table that grows",
        "question": "Are two servers that are equal found to be equivalent?",
        "site": "own",
        "load": {"connections": CONNECTIONS},
        "requests": [{"path": "/", "weight": 4}, {"path": "/", "method": "POST"}],
        "measure": measure,
        "variants": {name: _variant(reset, folder / name) for name in variants},
    }
    return asked | ({"state": {"reset": reset}} if reset else {})


def _variant(reset: str | None, notes: Path) -> dict[str, Any]:
    program = f"{sys.executable} {SERVER}"
    of_all = {"stack": f"cmd:{program}", "dir": str(SERVER.parent)}
    if reset is None:
        return of_all | {"environment": {"NOTES": str(notes)}}
    return of_all | {"services": {"db": "postgresql"}, "setup": f"{program} --fill"}


def is_reported(found: Outcome) -> bool:
    """Whether it was reported that the table grew."""
    return any(it.startswith(f"{REPORTED} ") for it in found.warnings)


def line(found: Outcome) -> str:
    """Report one run."""
    if found.verdict is None:
        return f"{found.case}: no judgement: {found.problem}"
    reported = "the growth is told" if is_reported(found) else "no growth is told"
    return (
        f"{found.case}: {found.headline}; {reported}; {found.rounds} rounds, {found.took_s:.0f} s"
    )


def table(outcomes: Sequence[Outcome]) -> Table:
    """Show what came of all runs, case by case."""
    made = Table(title="tables that grow", caption=machine.describe(), width=lab.TABLE_WIDTH)
    made.add_column("put back")
    for heading in ("runs", "equivalent", "inconclusive", "different", "growth"):
        made.add_column(heading, justify="right")
    made.add_column("worst-case CIs", justify="right")
    for name in CASES:
        runs = lab.of_case(outcomes, name)
        if not runs:
            continue
        verdicts = [it.verdict for it in runs]
        differ = sum(it in DIFFERENT for it in verdicts)
        intervals = [it.decisive for it in runs if it.decisive]
        made.add_row(
            name,
            str(len(runs)),
            str(verdicts.count(Verdict.EQUIVALENT)),
            str(verdicts.count(Verdict.INCONCLUSIVE)),
            str(differ),
            str(sum(map(is_reported, runs))),
            ", ".join(f"{it.low:.3f}–{it.high:.3f}" for it in intervals),
        )
    return made


if __name__ == "__main__":
    sys.exit(script().run(work))
