"""Does `webdyno explain` name what limits a server? Servers with one bottleneck made on purpose.

For each case webdyno measures two variants that are alike, for the sake of a run to ask about, then
what limits the first. The bottleneck is named where its elasticity is the largest and surely the
limit; in a balanced system two things have to limit in part. A backend that takes its time is
reported by the connections: fewer ask less often. Each run adds a line to the file of results; the
table shows the last one of each case.
"""

import sys
import tempfile
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from causes import measured
from rig import lab, machine
from rig.lab import Call
from rig.script import Script, progress
from webdyno.comparison import judge
from webdyno.core.findings import Elasticity
from webdyno.core.run import variant_folder
from webdyno.measure.folder import RunFolder
from webdyno.questions.explain.show import LIMITS, SLACK

EXAMPLES = """\
  all cases, once (20 minutes)
    .venv/bin/python bench/bottlenecks.py
  one of them
    .venv/bin/python bench/bottlenecks.py --cases link
  only the table of what is there
    .venv/bin/python bench/bottlenecks.py --rounds 0
"""

RESULTS = Path("bench/results/bottlenecks.jsonl")
VARIANT = "limited"


@dataclass(frozen=True)
class Case:
    """A server, and what limits it."""

    stack: str
    site: str
    expected: Sequence[str]
    """The resource that limits it, or those that do in part."""
    settings: Sequence[str] = ()
    """Lines of the experiment, [load] and [testbed]."""
    variant: Sequence[str] = ()
    """Lines of each variant."""


NETNS = ("[testbed]", 'kind = "netns"', 'link = "100mbit"')

# The last one: a worker that takes 5 ms, and pauses of 25 ms. Six connections would just keep it
# busy; of eight one waits for it some of the time, and for its own pause the rest.
CASES: dict[str, Case] = {
    "a CPU quota": Case(
        "apache-event",
        "static",
        ["servers' CPU"],
        ["[load]", 'paths = ["/hello.txt"]'],
        ["cpus = 0.5"],
    ),
    "a link of 100 Mbit/s": Case(
        *("nginx", "static", ["link"]),
        ["[load]", 'paths = ["/100KB.txt"]', "connections = 8", *NETNS],
    ),
    "one worker": Case("nginx-phpfpm", "waiting", ["workers"], (), ["settings.children = 1"]),
    "a slow client": Case(
        *("nginx", "static", ["client's CPU"]),
        ["[load]", 'paths = ["/hello.txt"]', "[testbed]", "client_cpus = 0.2"],
    ),
    "a slow backend": Case(
        "nginx-phpfpm",
        "waiting",
        ["connections"],
        ["[load]", "connections = 8"],
        ["settings.children = 64"],
    ),
    "two in turns": Case(
        *("nginx-phpfpm", "waiting", ["workers", "connections"]),
        ["[load]", "connections = 8", 'think_s = "25ms"'],
        ["settings.children = 1"],
    ),
}


class Limited(lab.Kept):
    """What was found to limit it."""

    found: list[Elasticity] = []

    @property
    def is_right(self) -> bool:
        """Whether what limits it was named, and nothing else was."""
        expected = CASES[self.case].expected
        if self.problem or not self.found:
            return False
        if len(expected) == 1:
            first = max(self.found, key=lambda it: it.found.estimate)
            return first.resource == expected[0] and first.found.low > LIMITS
        in_part = {it.resource for it in self.found if it.found.low > 0}
        limits = {it.resource for it in self.found if it.found.low > LIMITS}
        return in_part == set(expected) and not limits


def script() -> Script:
    """Describe the command line."""
    made = Script(__doc__, EXAMPLES)
    made.add_choice("--cases", list(CASES))
    made.add_argument("--budget", default="3m", help="of `webdyno explain`, for each case (3m)")
    made.add_growing(RESULTS)
    return made


def work(options: Namespace, console: Console) -> None:
    """Run what was requested, then show the last result of each case."""
    for _ in range(options.rounds):
        for name in options.cases:
            found = look(name, options.budget)
            lab.append(options.results, found)
            progress.print(f"{name}: {found.problem or reported(found)}", markup=False)
    console.print(table(lab.read_as(options.results, Limited)))


def look(name: str, budget: str) -> Limited:
    """Measure a case, and ask what limits it."""
    begun = lab.Begun.now(name)
    with tempfile.TemporaryDirectory(prefix="webdyno-bench-") as scratch:
        experiment, folder = Path(scratch) / "case.toml", Path(scratch) / "run"
        experiment.write_text(written(name, CASES[name]), encoding="utf-8")
        problem = measured(experiment, folder, budget="5s").made()
        if not problem:
            of_it = {"folder": folder, "variants": [VARIANT], "time": budget, "yes": True}
            problem = Call("explain", of_it).made()
        kept = begun.kept(problem=problem)
        asked = folder / "explain" / variant_folder(VARIANT)
        if not (asked / "slots.jsonl").exists():
            return Limited(**kept)
        found = RunFolder.open(asked)
        return Limited(**kept, found=judge(found.data().points[0]).elasticities)


def written(name: str, case: Case) -> str:
    """Give the experiment: the server, twice."""
    lines = [f'title = "Limited by {name}"', 'question = "By what?"', f'site = "{case.site}"']
    lines += case.settings
    for variant in (VARIANT, "the same"):
        lines += [f'[variants."{variant}"]', f'stack = "{case.stack}"', *case.variant]
    return "\n".join(lines) + "\n"


def reported(found: Limited) -> str:
    """Write the elasticities, the largest first."""
    ordered = sorted(found.found, key=lambda it: -it.found.estimate)
    return "; ".join(
        f"{it.setting or it.resource} {it.found.estimate:.2f} ({it.found.low:.2f} to "
        f"{it.found.high:.2f}){'' if it.found.low <= LIMITS else ' limits'}"
        f"{' does not' if it.found.high < SLACK else ''}"
        for it in ordered
    )


def table(outcomes: Sequence[Limited]) -> Table:
    """Show the last run of each case."""
    last = {found.case: found for found in outcomes if found.case in CASES}
    right = sum(found.is_right for found in last.values())
    made = Table(
        title=f"{right} of {len(last)} bottlenecks named",
        caption=machine.describe(),
        width=lab.TABLE_WIDTH,
    )
    made.add_column("bottleneck")
    made.add_column("elasticities of the throughput", overflow="fold")
    made.add_column("right")
    made.add_column("s", justify="right")
    for name in CASES:
        if (found := last.get(name)) is not None:
            right_word = "yes" if found.is_right else "no"
            made.add_row(name, found.problem or reported(found), right_word, f"{found.took_s:.0f}")
    return made


if __name__ == "__main__":
    sys.exit(script().run(work))
