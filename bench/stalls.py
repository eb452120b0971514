"""Does webdyno see what a server does only later? Servers with stalls and leaks that are known.

webdyno runs as a user runs it, on real processes and sockets. The second server stalls for a
known time in each period, or keeps memory for each request or in each second; the first one
doesn't. From that follow the ratio of throughputs in a closed loop, the 99th percentile in an open
one, that there is no capacity where stalls make more late than the objective allows, and the slope
of the memory. Equal steady servers show how often something is seen that isn't there. Each run adds
a line to the file of results; the table is made of all of them.
"""

import sys
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Literal, NamedTuple

from rich.console import Console
from rich.table import Table

from rig import lab, machine
from rig.lab import Call, Outcome, settings_in
from rig.script import Script
from truth import dialed, run_cases
from webdyno.core.base import Interval
from webdyno.core.judgement import Verdict

EXAMPLES = """\
  each case once (10 minutes)
    .venv/bin/python bench/stalls.py
  six times the stalls of a second in six
    .venv/bin/python bench/stalls.py --cases 'closed 1 s per 6 s' --rounds 6
  only the table of what is there
    .venv/bin/python bench/stalls.py --rounds 0
"""

RESULTS = Path("bench/results/stalls.jsonl")
LATER = ("stalls", "drift", "memory-growth", "no-capacity")
"""Warnings that say what was seen later. Where stalls leave no capacity, they are reported with
it."""
LEAK_BYTES, LEAK_BYTES_PER_S = 10_000, 1e6 / 60
KEPT_BYTES = 10_016 + 24
"""For each request: malloc gives 10,000 bytes by sixteens, and the list of what is kept grows by
an entry."""
LEAK_SOAK_S = 90
"""The second half of a look has to show growth of 512 kB, which that leak takes 31 s for; half as
long again leaves room for what scatters."""


class Leak(NamedTuple):
    """How the second server's memory grows."""

    by: Literal["bytes_per_s", "bytes_per_request"]
    truth: float


@dataclass(frozen=True)
class Case:
    """Two servers, and what the second does later."""

    settings: tuple[str, ...] = ()
    ratio: float | None = None
    """Of the deciding metric, of the second server and the first; None where it isn't computed."""
    p99_us: float | None = None
    """Of the second server over a long time."""
    warning: str | None = None
    """What should be seen; None for nothing."""
    leak: Leak | None = None
    budget: str = "60s"
    soak: str | None = None
    """How long each server is looked at afterwards; None leaves that to webdyno."""


def _stalls(length_s: float, every_s: float) -> tuple[str, ...]:
    return (
        "variants.baseline.settings.cost_us=200",
        "variants.other.settings.cost_us=200",
        f"variants.other.settings.stall_ms={length_s * 1e3:g}",
        f"variants.other.settings.stall_every_s={every_s:g}",
    )


def _capacity(slo: str) -> tuple[str, ...]:
    return (f'capacity.slo=["{slo}"]', "load.connections=256")


OPEN = ("load.loop=open", "load.rate_per_s=500", "load.connections=64", "load.arrivals=constant")
EQUAL = ("variants.baseline.settings.cost_us=200", "variants.other.settings.cost_us=200")

CASES = {
    "closed 1 s per 6 s": Case(_stalls(1, 6), ratio=5 / 6, warning="stalls"),
    "closed 50 ms per 2 s": Case(_stalls(0.05, 2), ratio=1 - 0.025, warning="stalls"),
    "closed 3 s per 60 s": Case(_stalls(3, 60), ratio=0.95, warning="stalls", soak="150s"),
    "open 1 s per 6 s": Case(
        (*_stalls(1, 6), *OPEN, "measure.decide_on=latency_p99_us"),
        p99_us=0.94e6,
        warning="stalls",
    ),
    "capacity 1 s per 6 s": Case(
        (*_stalls(1, 6), *_capacity("p99<50ms")), warning="no-capacity", budget="240s"
    ),
    "capacity 50 ms per 2 s": Case(
        (*_stalls(0.05, 2), *_capacity("p99<20ms")), warning="no-capacity", budget="240s"
    ),
    "leak 10 kB a request": Case(
        (*EQUAL, f"variants.other.settings.leak_bytes={LEAK_BYTES}"),
        ratio=1.0,
        warning="memory-growth",
        leak=Leak("bytes_per_request", KEPT_BYTES),
    ),
    "leak 1 MB a minute": Case(
        (*EQUAL, f"variants.other.settings.leak_bytes_per_s={LEAK_BYTES_PER_S}"),
        ratio=1.0,
        warning="memory-growth",
        soak=f"{LEAK_SOAK_S}s",
        leak=Leak("bytes_per_s", LEAK_BYTES_PER_S),
    ),
    "equal": Case(EQUAL, ratio=1.0),
    "equal open": Case((*EQUAL, *OPEN, "measure.decide_on=latency_p99_us"), ratio=1.0),
}


def script() -> Script:
    """Describe the command line."""
    made = Script(__doc__, EXAMPLES)
    made.add_choice("--cases", list(CASES))
    made.add_growing(RESULTS)
    return made


def work(options: Namespace, console: Console) -> None:
    """Run what was requested, then show all that is known."""
    run_cases(options, lambda name, programs: lab.run_lab(name, asked(name), programs), line)
    console.print(table(lab.read(options.results)))


def asked(name: str) -> Call:
    """Give what webdyno is asked."""
    case = CASES[name]
    soak = {"measure.soak_s": case.soak} if case.soak else {}
    return dialed({**settings_in(case.settings), **soak}).having(time=case.budget)


def seen(found: Outcome) -> list[str]:
    """Name what was seen later, of any server."""
    rules = [it.partition(" ")[0] for it in found.warnings]
    return [rule for rule in rules if rule in LATER]


def holds(found: Outcome) -> bool | None:
    """Whether the interval that the verdict rests on holds the truth; None where it isn't known."""
    case = CASES[found.case]
    if case.ratio is not None and found.decisive is not None:
        return found.decisive.low <= case.ratio <= found.decisive.high
    if case.p99_us is not None and (value := found.values.get("other")) is not None:
        return value.low <= case.p99_us <= value.high
    return None


def slope(found: Outcome) -> Interval | None:
    """Give how fast the second server's memory grew, as a share of how fast it did in truth."""
    leak, growth = CASES[found.case].leak, found.growths.get("other")
    if leak is None or growth is None:
        return None
    of = growth.bytes_per_s if leak.by == "bytes_per_s" else growth.bytes_per_request
    return Interval(
        low=of.low / leak.truth, estimate=of.estimate / leak.truth, high=of.high / leak.truth
    )


def line(found: Outcome) -> str:
    """Report one run."""
    if found.verdict is None:
        return f"{found.case}: no judgement: {found.problem}"
    held = {True: "holds the truth", False: "misses the truth", None: ""}[holds(found)]
    later = ", ".join(seen(found)) or "nothing seen later"
    grew = slope(found)
    slopes = f"; slope {grew.low:.3f} to {grew.high:.3f} of the true one" if grew else ""
    return f"{found.case}: {found.headline}; {held}; {later}{slopes}; {found.took_s:.0f} s"


def table(outcomes: Sequence[Outcome]) -> Table:
    """Show what came of all runs, case by case."""
    made = Table(title="what happens later", caption=machine.describe(), width=lab.TABLE_WIDTH)
    made.add_column("server")
    headings = ("runs", "holding\nthe truth", "seen", "wrongly\nseen", "wrongly\nequivalent")
    for heading in (*headings, "slope found,\nof the true one", "s"):
        made.add_column(heading, justify="right")
    for name, case in CASES.items():
        runs = list(lab.of_case(outcomes, name))
        if not runs:
            continue
        held = [it for found in runs if (it := holds(found)) is not None]
        rightly = sum(case.warning in seen(found) for found in runs)
        wrongly = sum(any(it != case.warning for it in seen(found)) for found in runs)
        differs = case.ratio != 1.0
        equal = sum(found.verdict is Verdict.EQUIVALENT for found in runs) if differs else None
        made.add_row(
            name,
            str(len(runs)),
            f"{sum(held)} of {len(held)}",
            str(rightly) if case.warning else "–",
            str(wrongly),
            "–" if equal is None else str(equal),
            _slopes([grew for found in runs if (grew := slope(found))]),
            f"{sum(found.took_s for found in runs) / len(runs):.0f}",
        )
    return made


def _slopes(found: Sequence[Interval]) -> str:
    """Give all slopes in one, and how many of their intervals hold the truth."""
    if not found:
        return "–"
    held = sum(it.low <= 1 <= it.high for it in found)
    return f"{fmean(it.estimate for it in found):.3f} ({held} of {len(found)})"


if __name__ == "__main__":
    sys.exit(script().run(work))
