"""Does webdyno find the capacity? Queues whose capacity under an objective can be computed.

webdyno runs as a user runs it, on real processes and sockets. A server answers one request after
the other, each after a known time by the clock: fixed (M/D/1) or exponentially distributed (M/M/1),
under Poisson arrivals. From that follows the rate at which exactly 1% of the responses take longer
than the objective allows. One server collapses at a known rate and doesn't come back by itself; and
one is too fast for the load generator. Each run adds a line to the file of results; the table is
made of all of them.
"""

import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from rig import lab, machine
from rig.lab import Call, Outcome, settings_in
from rig.queues import capacity_of_md1, capacity_of_mm1
from rig.script import Script
from truth import dialed, run_cases

EXAMPLES = """\
  each case once (half an hour)
    .venv/bin/python bench/capacity.py
  five times the queues
    .venv/bin/python bench/capacity.py --cases M/D/1,M/M/1 --rounds 5
  only the table of what is there
    .venv/bin/python bench/capacity.py --rounds 0
"""

RESULTS = Path("bench/results/capacity.jsonl")
WITHIN_S, ALLOWED = 0.005, 0.01
SERVICE_US = {"baseline": 100.0, "other": 80.0}
COLLAPSE_RPS = 6000.0

Truth = Callable[[float], float]
"""Microseconds of service -> requests per second."""


@dataclass(frozen=True)
class Case:
    """Two servers whose capacities are known."""

    settings: tuple[str, ...]
    truth: Truth | None
    """None where it lies beyond what the load generator can ask for."""


def _queue(service: str, *more: str) -> tuple[str, ...]:
    variants = [
        f"variants.{variant}.settings.{setting}={value}"
        for variant, service_us in SERVICE_US.items()
        for setting, value in {
            "service_us": service_us,
            "service": service,
            "cost_us": 0,
            "workers": 1,
        }.items()
    ]
    return (*variants, "load.connections=256", *more)


CASES = {
    "M/D/1": Case(_queue("fixed"), lambda us: capacity_of_md1(us / 1e6, WITHIN_S, ALLOWED)),
    "M/M/1": Case(_queue("exponential"), lambda us: capacity_of_mm1(us / 1e6, WITHIN_S, ALLOWED)),
    "collapse": Case(
        _queue(
            "fixed",
            *(
                f"variants.{variant}.settings.collapse_rps={COLLAPSE_RPS:g}"
                for variant in SERVICE_US
            ),
            "capacity.arrivals=constant",
        ),
        lambda _: COLLAPSE_RPS,
    ),
    "client": Case(
        ("variants.baseline.settings.cost_us=0", "variants.other.settings.cost_us=0"), None
    ),
}


def script() -> Script:
    """Describe the command line."""
    made = Script(__doc__, EXAMPLES)
    made.add_choice("--cases", list(CASES))
    made.add_growing(RESULTS)
    made.add_argument("--budget", default="5m", help="webdyno's --budget (5m)")
    return made


def work(options: Namespace, console: Console) -> None:
    """Run what was requested, then show all that is known."""
    run_cases(
        options,
        lambda name, programs: lab.run_lab(name, asked(name, options.budget), programs),
        line,
    )
    console.print(table(lab.read(options.results)))


def asked(name: str, budget: str) -> Call:
    """Give what webdyno is asked."""
    objective = f"p{100 * (1 - ALLOWED):g}<{WITHIN_S * 1e3:g}ms"
    settings = {"capacity.slo": [objective], **settings_in(CASES[name].settings)}
    return dialed(settings).having(time=budget)


def errors(found: Outcome) -> list[float]:
    """Give by how much the capacities of the variants are off, as shares of the truth."""
    truth = CASES[found.case].truth
    if truth is None:
        return []
    return [it.estimate / truth(SERVICE_US[variant]) - 1 for variant, it in found.values.items()]


def held(found: Outcome) -> list[bool]:
    """Report for each variant whether the interval of its capacity holds the truth."""
    truth = CASES[found.case].truth
    if truth is None:
        return []
    return [it.low <= truth(SERVICE_US[variant]) <= it.high for variant, it in found.values.items()]


def line(found: Outcome) -> str:
    """Report one run."""
    if found.verdict is None:
        return f"{found.case}: no judgement: {found.problem}"
    off = ", ".join(f"{error:+.1%}" for error in errors(found))
    return f"{found.case}: {found.verdict}, {off or found.headline}, {found.took_s:.0f} s"


def table(outcomes: Sequence[Outcome]) -> Table:
    """Show what came of all runs, case by case."""
    made = Table(title="capacities", caption=machine.describe(), width=lab.TABLE_WIDTH)
    made.add_column("server")
    for heading in ("runs", "capacities", "holding\nthe truth", "within 3%", "mean error", "s"):
        made.add_column(heading, justify="right")
    made.add_column("warnings", overflow="fold")
    for name in CASES:
        runs = list(lab.of_case(outcomes, name))
        if not runs:
            continue
        off = [error for found in runs for error in errors(found)]
        holding = [each for found in runs for each in held(found)]
        rules = [it.partition(":")[0] for found in runs for it in found.warnings]
        made.add_row(
            name,
            str(len(runs)),
            str(len(off)),
            f"{sum(holding)} of {len(holding)}" if holding else "–",
            f"{sum(abs(error) <= 0.03 for error in off)} of {len(off)}" if off else "–",
            f"{sum(off) / len(off):+.1%}" if off else "–",
            f"{sum(found.took_s for found in runs) / len(runs):.0f}",
            ", ".join(dict.fromkeys(rules)),
        )
    return made


if __name__ == "__main__":
    sys.exit(script().run(work))
