"""Does tuning find what is there, and only that? Servers whose best settings are known.

webdyno runs as a user runs it, on real processes and sockets. The requests of one server cost the
less CPU time the nearer two of its settings are to their best values; three more have no effect.
It is tuned well where its requests cost at most 5% more than they could. Another server has only
settings without an effect: there "tuned" must not come out as faster. Each run adds a line to the
file of results; the table is made of all of them.
"""

import sys
import tempfile
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from rig import lab, machine
from rig.lab import Call
from rig.script import Script
from truth import CATALOGUE, run_cases
from webdyno.comparison import judge
from webdyno.core.judgement import Verdict
from webdyno.core.setting import SettingValue
from webdyno.measure.folder import RunFolder

EXAMPLES = """\
  the server with best settings ten times (half an hour)
    .venv/bin/python bench/tuning.py --cases planted --rounds 10
  the one without, ten short searches (six minutes)
    .venv/bin/python bench/tuning.py --cases idle --rounds 10 --time 60s
  only the table of what is there
    .venv/bin/python bench/tuning.py --rounds 0
"""

RESULTS = Path("bench/results/tuning.jsonl")
BEST_SIZE, BEST_MODE = 64, "fast"
GOOD = 1.05
"""Of the least cost: what is tuned well."""
TUNED_WITHIN_S = 3600.0


class Tuned(lab.Kept):
    """One call of `webdyno tune`."""

    settings: dict[str, SettingValue] = {}
    cost: float | None = None
    """Of a request with these settings, as a multiple of the least one."""
    verdict: Verdict | None = None
    """On tuned against default, by the final rounds; None where nothing better was found."""
    tried: int = 0


def script() -> Script:
    """Describe the command line."""
    made = Script(__doc__, EXAMPLES)
    made.add_choice("--cases", ["planted", "idle"])
    made.add_growing(RESULTS)
    made.add_argument("--time", default="4m", help="webdyno's --time (4m)")
    return made


def work(options: Namespace, console: Console) -> None:
    """Run what was requested, then show all that is known."""
    run_cases(options, lambda name, programs: tune(name, options, programs), line)
    console.print(table(lab.read_as(options.results, Tuned)))


def tune(name: str, options: Namespace, programs: Path) -> Tuned:
    """Tune a server; say what was found."""
    begun = lab.Begun.now(name)
    with tempfile.TemporaryDirectory(prefix="webdyno-bench-") as scratch:
        folder = Path(scratch) / "tuned"
        asked = {
            "system": name,
            "catalog": [CATALOGUE],
            "output": folder,
            "yes": True,
            "time": options.time,
        }
        problem = Call("tune", asked).made(programs, TUNED_WITHIN_S)
        kept = begun.kept(problem=problem)
        return Tuned(**{**kept, **_found(folder / "final")})


def _found(final: Path) -> dict[str, object]:
    if not (final / "slots.jsonl").exists():
        return {}
    run = RunFolder.open(final)
    judgement = judge(run.data().points[0])
    tuned = run.head.experiment.tuning[0]
    return {
        "settings": tuned.settings,
        "cost": cost_of(tuned.settings),
        "verdict": judgement.verdict,
        "headline": judgement.headline,
        "rounds": judgement.rounds,
        "tried": tuned.tried,
    }


def cost_of(settings: dict[str, SettingValue]) -> float | None:
    """Give what a request costs, as a multiple of the least; as in the service's definition."""
    size = settings.get("size")
    if not isinstance(size, int):
        return None
    off = max(size / BEST_SIZE, BEST_SIZE / size)
    return (0.75 + 0.25 * off) * (1 if settings["mode"] == BEST_MODE else 1.25)


def line(found: Tuned) -> str:
    """Report one run."""
    if found.problem:
        return f"{found.case}: {found.problem}"
    said = found.headline or "nothing better than the default"
    cost = f", {found.cost:.2f} times the least cost" if found.cost else ""
    return f"{found.case}: {said}{cost}, {found.tried} tried, {found.took_s:.0f} s"


def table(outcomes: Sequence[Tuned]) -> Table:
    """Show what came of all runs, server by server."""
    made = Table(title="tuning", caption=machine.describe(), width=lab.TABLE_WIDTH)
    made.add_column("server")
    headings = ("runs", "tuned\nwell", "cost, times\nthe least", "tuned is\nfaster", "tried", "s")
    for heading in headings:
        made.add_column(heading, justify="right")
    for name in ("planted", "idle"):
        runs = [it for it in outcomes if it.case == name]
        if not runs:
            continue
        costs = sorted(it.cost for it in runs if it.cost is not None)
        well = sum(cost <= GOOD for cost in costs)
        tried = [it.tried for it in runs if it.tried]  # it isn't reported where nothing was found
        made.add_row(
            name,
            str(len(runs)),
            str(well) if name == "planted" else "–",
            f"{costs[0]:.2f} to {costs[-1]:.2f}" if costs else "–",
            str(sum(it.verdict is Verdict.FASTER for it in runs)),
            f"{sum(tried) / len(tried):.0f}" if tried else "–",
            f"{sum(it.took_s for it in runs) / len(runs):.0f}",
        )
    return made


if __name__ == "__main__":
    sys.exit(script().run(work))
