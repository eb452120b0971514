"""Does a log's twin give the verdict that its own site gives? Duels with both say.

Of each case a log is made: Apache serves a site of the catalogue to a client that asks for its
paths by Zipf's law, as Poisson. `webdyno traffic` makes a load and a twin of that log. Two stacks
are then compared under that load, once with the original site and once with the twin, as a user
does it, by server CPU time: at a set rate throughput decides nothing. Each comparison adds
a line to the file of results; the table is made of all of them.
"""

import http.client
import random
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from rich.console import Console
from rich.table import Table

from rig import lab, machine
from rig.lab import Call, Outcome
from rig.options import count
from rig.process import BenchError
from rig.script import Script, progress
from webdyno.config import Catalogue
from webdyno.core.judgement import DECIDED
from webdyno.host.this_machine import Testbed
from webdyno.host.workspace import Workspace
from webdyno.servers.starting import open_stack

EXAMPLES = """\
  each case once (half an hour)
    .venv/bin/python bench/twins.py
  one of them three times, with shorter duels
    .venv/bin/python bench/twins.py --cases spin --rounds 3 --budget 60s
  only the table of what is there
    .venv/bin/python bench/twins.py --rounds 0
"""

RESULTS = Path("bench/results/twins.jsonl")
LOG = "run/access.log"
SEED = 1
PHP_STACKS = ("nginx-phpfpm", "apache-prefork-modphp")


@dataclass(frozen=True)
class Case:
    """A log, and the stacks that are compared under its traffic."""

    site: str
    stacks: tuple[str, str]
    """The second has Apache in front, and writes the log."""
    paths: Sequence[str]
    """The most popular first."""
    rate_per_s: float
    """In the log; low, so that its times are those of pages and not of queues."""
    speed: float
    """How many times as fast the load is."""
    settings: dict[str, int] = field(default_factory=dict)
    """Of the original site."""


CASES = {
    case.site: case
    for case in (
        Case(
            "static",
            ("nginx", "apache-event"),
            ["/hello.txt", "/100KB.txt", "/robots.txt", *(f"/many/{n}.txt" for n in range(1, 101))],
            rate_per_s=200,
            speed=10,
        ),
        Case(
            "frontpage",
            PHP_STACKS,
            ["/", "/style.css"],
            rate_per_s=20,
            speed=1,
        ),
        Case(
            "hello-php",
            PHP_STACKS,
            ["/hello.php", "/hello.txt"],
            rate_per_s=200,
            speed=5,
        ),
        Case(
            "spin",
            PHP_STACKS,
            ["/", "/index.php"],
            rate_per_s=20,
            speed=1,
            settings={"turns": 1_000_000},
        ),
    )
}


class Compared(lab.Kept):
    """A log's site and its twin, each with the same two stacks."""

    original: Outcome
    twin: Outcome

    @property
    def is_equal(self) -> bool | None:
        """Whether the verdicts are; None where one of them is no answer."""
        verdicts = {self.original.verdict, self.twin.verdict}
        return len(verdicts) == 1 if verdicts <= DECIDED else None


def script() -> Script:
    """Describe the command line."""
    made = Script(__doc__, EXAMPLES)
    made.add_choice("--cases", list(CASES))
    made.add_growing(RESULTS)
    made.add_argument("--requests", type=count, default=2_000, help="lines of each log (2000)")
    made.add_argument("--budget", default="4m", help="webdyno's --budget, of each duel (4m)")
    return made


def work(options: Namespace, console: Console) -> None:
    """Run what was requested, then show all that is known."""
    for _ in range(options.rounds):
        for name in options.cases:
            found = compare(CASES[name], options.requests, options.budget)
            lab.append(options.results, found)
            progress.print(f"{name}: {found.headline}", markup=False)
    console.print(table(lab.read_as(options.results, Compared)))


def compare(
    case: Case, requests: int, budget: str, overrides: Mapping[str, object] | None = None
) -> Compared:
    """Make a log and its twin, and compare the two stacks with the original and with the twin."""
    begun = lab.Begun.now(case.site)
    with tempfile.TemporaryDirectory(prefix="webdyno-bench-") as scratch:
        folder = Path(scratch)
        (folder / "access.log").write_bytes(made_log(case, requests))
        load = ["traffic", "access.log", f"--speed={case.speed:g}"]
        _webdyno([*load, "--output=original.toml"], folder)
        _webdyno([*load, "--output=twin.toml", "--twin=copy"], folder)
        settings = {
            f"variants.{stack}.settings.{setting}": value
            for stack in case.stacks
            for setting, value in case.settings.items()
        }
        decided = {"measure.decide_on": "server_cpu_us", **(overrides or {})}
        system, baseline = case.stacks
        asked = Call(
            "compare", {"system": system, "baseline": baseline, "time": budget, "yes": True}
        )
        original, twin = (
            lab.run_lab(
                f"{case.site}, {name}", asked.having(traffic=folder / f"{name}.toml", **more)
            )
            for name, more in (
                ("original", {"site": case.site, "settings": {**decided, **settings}}),
                ("twin", {"site": "twin", "settings": decided, "catalog": [folder / "copy"]}),
            )
        )
    return Compared(
        **begun.kept(),
        headline=f"{_said(original)}; its twin {_said(twin)}",
        rounds=original.rounds + twin.rounds,
        original=original,
        twin=twin,
    )


def made_log(case: Case, requests: int) -> bytes:
    """Serve the site to one client, and give the log of it."""
    catalogue, testbed = Catalogue.load(), Testbed()
    with (
        Workspace() as scratch,
        open_stack(
            catalogue.stack(case.stacks[1]),
            {"access_log": True, **case.settings},
            catalogue.site(case.site),
            folder=scratch.path / "kept",
            testbed=testbed,
        ) as running,
    ):
        _ask(running.url, case, requests)
        return (running.services()["apache"].home / LOG).read_bytes()


def _ask(url: str, case: Case, requests: int) -> None:
    """Ask for paths by Zipf's law at random times, over one connection."""
    draw = random.Random(SEED)
    weights = [1 / rank for rank in range(1, len(case.paths) + 1)]
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=10)
    due_s = time.monotonic()
    for path in draw.choices(case.paths, weights, k=requests):
        due_s += draw.expovariate(case.rate_per_s)
        time.sleep(max(due_s - time.monotonic(), 0))
        try:
            connection.request("GET", path)
            connection.getresponse().read()
        except (OSError, http.client.HTTPException) as error:
            raise BenchError(f"the log of {case.site}: {path} wasn't answered: {error}") from None
    connection.close()


def _webdyno(arguments: Sequence[str], folder: Path) -> None:
    done = subprocess.run(
        [str(lab.WEBDYNO), *arguments],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise BenchError(f"webdyno {arguments[0]}: {done.stderr.strip()[-500:]}")


def _said(found: Outcome) -> str:
    return found.verdict or found.problem


def table(outcomes: Sequence[Compared]) -> Table:
    """Show each comparison, and of how many logs the verdicts are equal."""
    shown = [found for found in outcomes if found.is_equal is not None]
    made = Table(
        title=f"the twin's verdict is the original's in {sum(map(_equal, shown))} of {len(shown)} "
        f"comparisons; in {len(outcomes) - len(shown)} more one had no answer",
        caption=machine.describe(),
        width=lab.TABLE_WIDTH,
    )
    made.add_column("site")
    made.add_column("stacks", overflow="fold")
    for heading in ("original", "CPU time", "twin", "CPU time", "equal", "s"):
        made.add_column(heading, justify="right")
    for found in outcomes:
        made.add_row(
            found.case,
            " ".join(CASES[found.case].stacks) if found.case in CASES else "",
            _said(found.original),
            _ratio(found.original),
            _said(found.twin),
            _ratio(found.twin),
            {True: "yes", False: "no", None: "–"}[found.is_equal],
            f"{found.took_s:.0f}",
        )
    return made


def _equal(found: Compared) -> bool:
    return found.is_equal is True


def _ratio(found: Outcome) -> str:
    decisive = found.decisive
    return (
        f"{decisive.estimate:.2f} ({decisive.low:.2f} to {decisive.high:.2f})" if decisive else "–"
    )


if __name__ == "__main__":
    sys.exit(script().run(work))
