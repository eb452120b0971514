"""Are costs at a given rate right? Servers of dialed cost, and one that looks cheap by queueing.

webdyno runs as a user runs `webdyno compare A B --rate`, on real processes and sockets. Each
request of a server costs a known CPU time, whatever the rate; a thousand times that per second are
its cores per 1,000 requests per second. One server gathers requests, sleeping in between, and needs
less CPU than the other: that it keeps requests waiting has to be reported. One is asked for more
than it can do: it has no cost at that rate.

A dial holds as long as it is larger than the server's own work (waking up, reading, answering),
which spinning fills up. What one request takes beyond it, as on cold caches or while the hypervisor
has the CPU, later ones make up for, by the difference of dial and own work each: the smaller that
is, the less of it within a slot. So servers without a dial show what own work costs at each rate.
Each run adds a line to the file of results; the table is made of all of them.
"""

import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from rich.console import Console
from rich.table import Table

from rig import lab, machine
from rig.lab import Call, Outcome, settings_in
from rig.script import Script
from truth import CPU_METRIC, dialed, run_cases

EXAMPLES = """\
  each case once (4 minutes)
    .venv/bin/python bench/costs.py
  only the table of what is there
    .venv/bin/python bench/costs.py --rounds 0
"""

RESULTS = Path("bench/results/costs.jsonl")
BUDGET = "30s"
TOLERANCE = 0.02
"""By so much a cost may be off."""
REPORTED = ("cheap-by-queueing", "offered-rate")
"""Warnings that say that a server is cheap only at its users' expense, or has no cost."""


@dataclass(frozen=True)
class Case:
    """Two servers at an arrival rate, what their requests cost, and what has to be said of them."""

    rate_rps: int
    baseline_us: float
    other_us: float
    settings: tuple[str, ...] = ()
    reported: str | None = None

    @property
    def asked(self) -> Call:
        """What webdyno is asked."""
        at_rate = (
            *("load.loop=open", f"load.rate_per_s={self.rate_rps}", "load.connections=64"),
            f"measure.decide_on={CPU_METRIC}",
            f"variants.baseline.settings.cost_us={self.baseline_us}",
            f"variants.other.settings.cost_us={self.other_us}",
        )
        return dialed(settings_in([*at_rate, *self.settings])).having(time=BUDGET)

    @property
    def dialed_us(self) -> Mapping[str, float]:
        """CPU time of a request, by variant."""
        return {"baseline": self.baseline_us, "other": self.other_us}


GATHERS = ("variants.other.settings.stall_ms=15", "variants.other.settings.stall_every_s=0.02")
CASES = {
    "own work at 500/s": Case(500, 0, 0),
    "own work at 2000/s": Case(2_000, 0, 0),
    "50 and 100 µs at 500/s": Case(500, 50, 100),
    "200 and 400 µs at 500/s": Case(500, 200, 400),
    "50 and 100 µs at 2000/s": Case(2_000, 50, 100),
    "200 and 300 µs at 2000/s": Case(2_000, 200, 300),
    "gathers for 15 of 20 ms": Case(2_000, 100, 60, GATHERS, reported="cheap-by-queueing"),
    "overloaded": Case(2_000, 100, 1_000, reported="offered-rate"),
}


def script() -> Script:
    """Describe the command line."""
    made = Script(__doc__, EXAMPLES)
    made.add_choice("--cases", list(CASES))
    made.add_growing(RESULTS)
    return made


def work(options: Namespace, console: Console) -> None:
    """Run what was requested, then show all that is known."""
    run_cases(options, lambda name, programs: lab.run_lab(name, CASES[name].asked, programs), line)
    console.print(table(lab.read(options.results)))


def off(found: Outcome) -> dict[str, float]:
    """Give by what share the costs that were found are off, by variant."""
    dialed_us = CASES[found.case].dialed_us
    return {
        name: its.estimate / dialed_us[name] - 1
        for name, its in found.values.items()
        if dialed_us[name]
    }


def own_work_us(outcomes: Sequence[Outcome], rate_rps: int) -> float | None:
    """Give what a request costs at a rate without a dial, in all runs that say."""
    known = [
        its.estimate
        for name, case in CASES.items()
        if case.rate_rps == rate_rps and not any(case.dialed_us.values())
        for found in lab.of_case(outcomes, name)
        for its in found.values.values()
    ]
    return fmean(known) if known else None


def reported(found: Outcome) -> list[str]:
    """Name what was said of servers that aren't as cheap as they look."""
    rules = [warning.partition(" ")[0] for warning in found.warnings]
    return [rule for rule in rules if rule in REPORTED]


def line(found: Outcome) -> str:
    """Report one run."""
    if found.verdict is None:
        return f"{found.case}: no judgement: {found.problem}"
    known = [f"{name} off by {share:+.2%}" for name, share in off(found).items()]
    if not known:
        known = [f"{name} {its.estimate:.1f} µs" for name, its in found.values.items()]
    said = "; ".join([*known, *reported(found)])
    return f"{found.case}: {found.headline}; {said}; {found.took_s:.0f} s"


def table(outcomes: Sequence[Outcome]) -> Table:
    """Show what came of all runs, case by case."""
    made = Table(title="costs at a rate", caption=machine.describe(), width=lab.TABLE_WIDTH)
    made.add_column("servers")
    headings = ("own work,\nµs", "runs", "costs", "within\n2%", "off at\nmost", "told")
    for heading in (*headings, "wrongly\ntold", "s"):
        made.add_column(heading, justify="right")
    for name, case in CASES.items():
        runs = list(lab.of_case(outcomes, name))
        if not runs:
            continue
        shares = [abs(share) for found in runs for share in off(found).values()]
        rightly = sum(case.reported in reported(found) for found in runs) if case.reported else None
        wrongly = sum(any(rule != case.reported for rule in reported(found)) for found in runs)
        own_us = own_work_us(outcomes, case.rate_rps)
        made.add_row(
            name,
            "–" if own_us is None else f"{own_us:.1f}",
            str(len(runs)),
            str(len(shares)),
            str(sum(share <= TOLERANCE for share in shares)),
            f"{max(shares):.2%}" if shares else "–",
            "–" if rightly is None else f"{rightly} of {len(runs)}",
            str(wrongly),
            f"{fmean(found.took_s for found in runs):.0f}",
        )
    return made


if __name__ == "__main__":
    sys.exit(script().run(work))
