"""Which pairs do two passes of a league swap? By the results of each, as its pages have them.

A pair has swapped where both passes are sure of its order, and don't agree. Passes of one machine
on different days say how far ranks hold; those of two machines also say how far machines differ.
"""

import sys
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from rig.script import Script
from webdyno.core.judgement import Verdict
from webdyno.league.tables import Results, Standing

EXAMPLES = """\
  the pass that stands in the repository, and one of today
    .venv/bin/python bench/passes.py bench/results/league/league.json league/pages/league.json
"""


WIDTH = 100


@dataclass(frozen=True)
class Passes:
    """A test that two passes have."""

    words: str
    shared: int
    """Stacks that have a rank in both."""
    same: int
    swapped: list[tuple[str, str]]
    """Who was ahead of whom in the first pass, and behind in the second."""

    @property
    def decided(self) -> int:
        """Pairs whose order both are sure of."""
        return self.same + len(self.swapped)


def compared(first: Results, second: Results) -> Iterator[Passes]:
    """Compare the newest machine's tests of two passes."""
    theirs = newest_of(second)
    for words, mine in newest_of(first).items():
        if words in theirs:
            before, after = ahead_of(mine), ahead_of(theirs[words])
            yield Passes(
                words=words,
                shared=len(ranked_in(mine) & ranked_in(theirs[words])),
                same=len(before & after),
                swapped=sorted((a, b) for a, b in before if (b, a) in after),
            )


def newest_of(results: Results) -> dict[str, Standing]:
    """Return by words a pass's tests on the machine that measured last."""
    newest = next(iter(results.machines))
    return {each.words: each for each in results.standings if each.machine == newest}


def ranked_in(standing: Standing) -> set[str]:
    """Return the stacks that have a rank."""
    return {entry.stack for entry in standing.entries if entry.rank}


def ahead_of(standing: Standing) -> set[tuple[str, str]]:
    """Return the pairs whose order is sure, whoever is ahead first."""
    return {(pair.a, pair.b) for pair in standing.pairs if pair.verdict is Verdict.FASTER} | {
        (pair.b, pair.a) for pair in standing.pairs if pair.verdict is Verdict.SLOWER
    }


def script() -> Script:
    """Describe the command line."""
    made = Script(__doc__, EXAMPLES)
    made.add_argument("first", type=Path, help="league.json of the first pass")
    made.add_argument("second", type=Path, help="league.json of the second pass")
    return made


def work(options: Namespace, console: Console) -> None:
    """Show all tests that both have."""
    passes = [
        Results.model_validate_json(it.read_bytes()) for it in (options.first, options.second)
    ]
    console.print(table(list(compared(*passes))))


def table(passes: list[Passes]) -> Table:
    """Show pairs by test, and name those that swapped."""
    made = Table(title="two passes of a league", width=WIDTH)
    made.add_column("test")
    for heading in ("stacks\nin both", "pairs\ndecided", "swapped"):
        made.add_column(heading, justify="right")
    made.add_column("which: ahead at first, behind then")
    for each in passes:
        named = "; ".join(f"{ahead}, {behind}" for ahead, behind in each.swapped)
        share = f"{len(each.swapped)} ({len(each.swapped) / max(each.decided, 1):.1%})"
        made.add_row(each.words, str(each.shared), str(each.decided), share, named)
    return made


if __name__ == "__main__":
    sys.exit(script().run(work))
