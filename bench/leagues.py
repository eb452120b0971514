"""Does a league find the ranks? Servers of dialed cost, whose order is known.

Two of four cost the same, one costs 10% more CPU time per request, one 50%; or all cost the same.
A saturated closed loop has throughputs in that order. Two that cost the same share their ranks. A
league is wrong where a rank that it is sure of isn't the true one. Each run adds a line to the file
of results; the table is made of all of them, and counts pairs whose order is sure in two runs and
not the same.
"""

import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path

from rich.console import Console
from rich.table import Table

from rig import lab, machine
from rig.lab import Call
from rig.script import Script
from truth import CATALOGUE, run_cases
from webdyno.comparison import judge
from webdyno.measure.folder import RunFolder

EXAMPLES = """\
  each case once (6 minutes)
    .venv/bin/python bench/leagues.py
  the slowed one, three times
    .venv/bin/python bench/leagues.py --cases 'one slowed by 10%' --rounds 3
  only the table of what is there
    .venv/bin/python bench/leagues.py --rounds 0
"""

RESULTS = Path("bench/results/leagues.jsonl")
SLOWED = "slowed"
PLAIN_US = 100.0
CASES: dict[str, dict[str, float]] = {
    "one slowed by 10%": {"plain": 1.0, "twin": 1.0, SLOWED: 1.1, "slow": 1.5},
    "all alike": {"plain": 1.0, "twin": 1.0, "third": 1.0, "fourth": 1.0},
}
"""By case and variant: what a request costs, in the first one's CPU time."""
TIME = "3m"

Ranks = Mapping[str, tuple[int, int]]
"""By variant: the best and the worst rank that it may have."""


class League(lab.Kept):
    """The ranks that a run found."""

    ranks: dict[str, tuple[int, int]] = {}
    out: dict[str, str] = {}


def true_ranks(costs: Mapping[str, float]) -> Ranks:
    """Give the ranks that variants share with those that cost the same."""
    return {
        name: (
            1 + sum(other < cost for other in costs.values()),
            sum(other <= cost for other in costs.values()),
        )
        for name, cost in costs.items()
    }


def is_right(ranks: Ranks, costs: Mapping[str, float]) -> bool:
    """Whether all true ranks lie within those that were found."""
    return all(
        name in ranks and ranks[name][0] <= best and worst <= ranks[name][1]
        for name, (best, worst) in true_ranks(costs).items()
    )


def is_settled(ranks: Ranks, costs: Mapping[str, float]) -> bool:
    """Whether they are those and no wider."""
    return dict(ranks) == dict(true_ranks(costs))


def swaps(first: Ranks, second: Ranks) -> int:
    """Count pairs whose order two runs are sure of, and don't agree on."""
    return sum(
        _before(first, a, b) and _before(second, b, a)
        for pair in combinations(first.keys() & second.keys(), 2)
        for a, b in (pair, pair[::-1])
    )


def _before(ranks: Ranks, a: str, b: str) -> bool:
    return ranks[a][1] < ranks[b][0]


def script() -> Script:
    """Describe the command line."""
    made = Script(__doc__, EXAMPLES)
    made.add_choice("--cases", list(CASES))
    made.add_growing(RESULTS)
    return made


def work(options: Namespace, console: Console) -> None:
    """Run what was requested, then show all that is known."""
    run_cases(options, run_league, line)
    console.print(table(lab.read_as(options.results, League)))


def run_league(name: str, programs: Path) -> League:
    """Rank the servers of a case, with a folder of own programs on the PATH."""
    asked = {"experiment": experiment(CASES[name]), "catalog": [str(CATALOGUE)], "yes": True}
    return lab.run_as(League, name, Call("run_experiment", asked), _seen, programs)


def experiment(costs: Mapping[str, float]) -> dict[str, object]:
    """Give the experiment, as its file would have it."""
    return {
        "title": "A league of servers of dialed cost",
        "question": "Does each get its rank?",
        "site": "dialed",
        "ranking": {},
        "load": {"connections": 16},
        "measure": {"budget_s": TIME},
        "variants": {
            name: {"stack": "dialed", "settings": {"cost_us": PLAIN_US * cost}}
            for name, cost in costs.items()
        },
    }


def _seen(folder: Path, problem: str) -> dict[str, object]:
    judgement = judge(RunFolder.open(folder).data().points[0])
    ranking = judgement.ranking
    if ranking is None:
        return {"problem": problem or "there is no ranking"}
    return {
        "ranks": {rank.variant: (rank.best, rank.worst) for rank in ranking.ranks},
        "out": ranking.out,
        "headline": judgement.headline,
        "rounds": judgement.rounds,
    }


def line(league: League) -> str:
    """Report one run."""
    if not league.ranks:
        return f"{league.case}: no ranks: {league.problem}"
    costs = CASES[league.case]
    right = "right" if is_right(league.ranks, costs) else "WRONG"
    ranks = ", ".join(
        f"{name} {best}" if best == worst else f"{name} {best}–{worst}"
        for name, (best, worst) in league.ranks.items()
    )
    return f"{league.case}: {right}: {ranks}; {league.rounds} rounds, {league.took_s:.0f} s"


def table(leagues: Sequence[League]) -> Table:
    """Show what came of all runs, case by case."""
    made = Table(title="leagues of known order", caption=machine.describe(), width=lab.TABLE_WIDTH)
    made.add_column("league")
    for heading in ("runs", "right", "all ranks\nsettled", "pairs\nswapped", "rounds", "s"):
        made.add_column(heading, justify="right")
    for name, costs in CASES.items():
        runs = [league for league in leagues if league.case == name and league.ranks]
        if not runs:
            continue
        swapped = sum(swaps(a.ranks, b.ranks) for a, b in combinations(runs, 2))
        made.add_row(
            name,
            str(len(runs)),
            str(sum(is_right(run.ranks, costs) for run in runs)),
            str(sum(is_settled(run.ranks, costs) for run in runs)),
            str(swapped),
            ", ".join(str(run.rounds) for run in runs),
            ", ".join(f"{run.took_s:.0f}" for run in runs),
        )
    return made


if __name__ == "__main__":
    sys.exit(script().run(work))
