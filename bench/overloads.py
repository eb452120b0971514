"""Does webdyno say what a server does beyond its capacity? Servers whose behaviour is known.

webdyno runs as a user runs it, on real processes and sockets, and asks each server for 1.2 and 2
times its capacity, a round each in turns, then for half of it. One server lets requests queue; one
refuses what is more than it takes; one collapses and serves a tenth from then on; one does so until
some seconds after the load. From that follow goodput, failures and how long each takes to come
back. Each run adds a line to the file of results; the table is made of all of them.
"""

import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from rig import lab, machine
from rig.lab import Call
from rig.script import Script
from truth import CATALOGUE, run_cases
from webdyno.core.findings import Overload, OverRounds
from webdyno.interfaces.python.api import open_run

EXAMPLES = """\
  each case once (half an hour)
    .venv/bin/python bench/overloads.py
  three times the server that recovers
    .venv/bin/python bench/overloads.py --cases recovers --rounds 3
  only the table of what is there
    .venv/bin/python bench/overloads.py --rounds 0
"""

RESULTS = Path("bench/results/overloads.jsonl")
VARIANT = "server"
LIMIT_RPS = 1_000.0
WITHIN_S, TIMEOUT_S = 0.02, 2.0
OVERLOAD_S, WINDOW_S = 4.0, 2.0
"""How long an overload lasts, and its second half, which is counted."""
RECOVERY_S = 3.0
LATE_S = 0.6
"""From one load to the next, and windows of what came back."""
NOTHING, ALL = (0.0, 0.02), (0.98, 1.0)
AT_ONCE = (0.0, LATE_S)


class Truth(NamedTuple):
    """What a server does at a multiple of its capacity; where each figure has to lie."""

    of_capacity: tuple[float, float]
    """Goodput."""
    failed: tuple[float, float]
    back_s: tuple[float, float] | None = None
    """None where it doesn't come back."""
    p50_s: tuple[float, float] | None = None
    """None where that isn't reported."""


@dataclass(frozen=True)
class Case:
    """A server, and what it does by multiple of its capacity."""

    settings: Mapping[str, float]
    truth: Mapping[float, Truth]


def _sheds(times: float) -> Truth:
    """It goes on as at its capacity, and refuses the rest at once."""
    refused = 1 - 1 / times
    return Truth((0.97, 1.03), (refused - 0.03, refused + 0.03), AT_ONCE, (0.0, WITHIN_S))


BACKLOG_S = {1.2: 0.2 * OVERLOAD_S * 1.2, 2.0: OVERLOAD_S + TIMEOUT_S}
"""Of a queue when the load ends, by multiple of the capacity: the load continues until all that was
due in the window is answered or has timed out. The queue is gone after that long where nothing more
comes, and after twice that where half of the capacity does. What has waited too long has failed."""
QUEUED_S = 0.2 * (OVERLOAD_S - WINDOW_S / 2)
"""What half of those that come in the window wait for at most."""
DOWN = Truth(NOTHING, ALL)


def _gone_after(times: float) -> tuple[float, float]:
    return BACKLOG_S[times] - 0.1, 2 * BACKLOG_S[times] + LATE_S


CASES = {
    "queues": Case(
        {"service_us": 1e6 / LIMIT_RPS},
        {
            1.2: Truth(
                NOTHING,
                NOTHING,
                _gone_after(1.2),
                (0.8 * QUEUED_S, 1.2 * QUEUED_S),
            ),
            2.0: Truth(NOTHING, ALL, _gone_after(2.0)),
        },
    ),
    "drops": Case({"shed_rps": LIMIT_RPS}, {1.2: _sheds(1.2), 2.0: _sheds(2.0)}),
    "collapses": Case({"collapse_rps": LIMIT_RPS}, {1.2: DOWN, 2.0: DOWN}),
    "recovers": Case(
        {"collapse_rps": LIMIT_RPS, "recover_s": RECOVERY_S},
        dict.fromkeys((1.2, 2.0), DOWN._replace(back_s=(RECOVERY_S - 0.1, RECOVERY_S + LATE_S))),
    ),
}


class Beyond(lab.Kept):
    """One run of a server."""

    overloads: list[Overload] = []
    capacity_rps: float | None = None
    warnings: list[str] = []


def script() -> Script:
    """Describe the command line."""
    made = Script(__doc__, EXAMPLES)
    made.add_choice("--cases", list(CASES))
    made.add_growing(RESULTS)
    made.add_argument("--budget", default="400s", help="webdyno's --time (400s)")
    return made


def work(options: Namespace, console: Console) -> None:
    """Run what was requested, then show all that is known."""
    run_cases(
        options, lambda name, programs: run(name, asked(name, options.budget), programs), line
    )
    console.print(table(lab.read_as(options.results, Beyond)))


def asked(name: str, budget: str) -> Call:
    """Give what webdyno is asked: trials are short, since these servers have a clear limit."""
    usual = {"service_us": 0.5e6 / LIMIT_RPS, "cost_us": 0, "workers": 1}
    settings = {**usual, **CASES[name].settings}
    experiment = {
        "title": f"A server that {name}",
        "question": "What does it do beyond its capacity?",
        "site": "dialed",
        "variants": {VARIANT: {"stack": "dialed", "settings": settings}},
        "capacity": {
            "slo": [f"p99<{WITHIN_S * 1e3:g}ms"],
            "arrivals": "constant",
            "longest_trial_s": 0.5,
        },
        # What waits has a connection of its own, so that the server sees all that comes.
        "load": {"connections": 4096, "timeout_s": TIMEOUT_S},
        "measure": {"budget_s": budget},
    }
    of_ours = {"catalog": [str(CATALOGUE)], "yes": True}
    return Call("run_experiment", {"experiment": experiment, **of_ours})


def run(case: str, call: Call, programs: Path) -> Beyond:
    """Make a call, with a folder of own programs on its PATH; say what it found."""
    return lab.run_as(Beyond, case, call, _seen, programs)


def _seen(folder: Path, problem: str) -> dict[str, object]:
    judged = open_run(folder).judgement
    if judged is None:
        return {"problem": problem or "webdyno left no run behind"}
    values = [value.interval for value in judged.variants if value.interval]
    return {
        "headline": judged.headline,
        "rounds": judged.rounds,
        "overloads": judged.overloads,
        "capacity_rps": values[0].estimate if values else None,
        "warnings": [f"{warning.rule}: {warning.what}" for warning in judged.warnings],
    }


def wrong(case: str, found: Overload) -> Iterator[str]:
    """Name what isn't as it is in truth."""
    truth = CASES[case].truth[found.times]
    p50_s = found.p50_us and found.p50_us.median / 1e6
    figures = (
        ("goodput", found.of_capacity, truth.of_capacity),
        ("failures", found.failed, truth.failed),
    )
    yield from (name for name, seen, right in figures if not _lies(seen, right))
    if truth.p50_s and not (p50_s and truth.p50_s[0] <= p50_s <= truth.p50_s[1]):
        yield "p50"
    if found.back != (found.rounds if truth.back_s else 0):
        yield "whether it comes back"
    elif truth.back_s and not _lies(found.back_s, truth.back_s):
        yield "when it comes back"


def _lies(seen: OverRounds | None, right: tuple[float, float]) -> bool:
    return seen is not None and right[0] <= seen.median <= right[1]


def missing(found: Beyond) -> list[float]:
    """Name the multiples that were not tried."""
    return [
        times
        for times in CASES[found.case].truth
        if times not in {beyond.times for beyond in found.overloads}
    ]


def line(found: Beyond) -> str:
    """Report one run."""
    if found.problem:
        return f"{found.case}: no judgement: {found.problem}"
    said = [f"{times:g}×: not tried" for times in missing(found)]
    for beyond in found.overloads:
        bad = list(wrong(found.case, beyond))
        said.append(f"{beyond.times:g}×: {', '.join(bad) + ' wrong' if bad else 'right'}")
    return f"{found.case}: {'; '.join(said)}; {found.took_s:.0f} s"


def table(outcomes: Sequence[Beyond]) -> Table:
    """Show what came of all runs, case by case and multiple by multiple."""
    made = Table(title="beyond capacity", caption=machine.describe(), width=lab.TABLE_WIDTH)
    made.add_column("server")
    headings = (
        "load",
        "runs",
        "right",
        "goodput,\nof capacity",
        "failed",
        "p50, s",
        "back after, s",
    )
    for heading in headings:
        made.add_column(heading, justify="right")
    made.add_column("wrong", overflow="fold")
    for name, case in CASES.items():
        for times, truth in case.truth.items():
            runs = [outcome for outcome in outcomes if outcome.case == name]
            seen = [beyond for found in runs for beyond in found.overloads if beyond.times == times]
            if not runs:
                continue
            bad = [list(wrong(name, beyond)) for beyond in seen]
            made.add_row(
                name,
                f"{times:g}×",
                str(len(runs)),
                str(sum(not each for each in bad)),
                _figure([beyond.of_capacity for beyond in seen], truth.of_capacity, 2),
                _figure([beyond.failed for beyond in seen], truth.failed, 2),
                _figure([beyond.p50_us for beyond in seen], truth.p50_s, 2, per=1e6),
                _figure([beyond.back_s for beyond in seen], truth.back_s, 1),
                ", ".join(dict.fromkeys(name for each in bad for name in each)),
            )
    return made


def _figure(
    seen: Sequence[OverRounds | None],
    right: tuple[float, float] | None,
    digits: int,
    per: float = 1.0,
) -> str:
    """Give the median of all runs, and where it has to lie."""
    known = [spread.median / per for spread in seen if spread]
    reported = f"{median(known):.{digits}f}" if known else "–"
    return f"{reported} ({right[0]:.{digits}f}–{right[1]:.{digits}f})" if right else reported


if __name__ == "__main__":
    sys.exit(script().run(work))
