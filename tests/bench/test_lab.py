"""What the scripts that run the whole lab make of its results, and that their questions stand."""

from inspect import signature
from pathlib import Path

import pytest
from rich.console import Console

import capacity
import costs
import decisive
import gates
import stalls
import starts
import truth
import webdyno
from bench import outcomes
from rig import lab
from rig.lab import Outcome, append, read
from rig.process import BenchError
from webdyno.config import Catalogue
from webdyno.core.base import Interval
from webdyno.core.judgement import Verdict
from webdyno.interfaces.python import api


def outcome(
    case: str, verdict: Verdict | None, low: float = 0.9, high: float = 1.1, bound: float = 0.0
) -> Outcome:
    """A run whose interval is wider by `bound` with interference counted."""
    wide = Interval(low=low - bound, estimate=(low + high) / 2, high=high + bound)
    ratios = {"throughput_rps": Interval(low=low, estimate=(low + high) / 2, high=high)}
    worst_case = {"throughput_rps": wide} if bound else {}
    return outcomes.outcome(
        case, verdict, metric="throughput_rps", ratios=ratios, worst_case=worst_case
    )


def printed(table: object) -> str:
    console = Console(width=200, record=True)
    console.print(table)
    return console.export_text()


def test_results_are_added_and_read_again(tmp_path: Path) -> None:
    results = tmp_path / "deep/results.jsonl"
    assert read(results) == []
    lines = [outcome("one", Verdict.FASTER), outcome("two", None)]
    for line in lines:
        append(results, line)
    assert read(results) == lines
    with results.open("a") as file:
        file.write("{torn\n")
    with pytest.raises(BenchError, match=r"results.jsonl:3: no result"):
        read(results)


def test_each_verdict_is_held_against_the_truth() -> None:
    dearer = truth.Case("closed", "1.05", "quiet")
    assert dearer.holds(outcome(dearer.name, Verdict.SLOWER, 0.94, 0.96).ratio)
    interfered = outcome(dearer.name, Verdict.SLOWER, 0.96, 0.98, bound=0.01)
    assert not dearer.holds(interfered.ratio)
    assert dearer.holds(interfered.decisive)
    assert truth.Case("open", "1.05", "quiet").holds(outcome("", None, 1.04, 1.06).ratio)
    assert dearer.right == {Verdict.SLOWER}
    assert truth.Case("closed", "1", "quiet").right == {Verdict.EQUIVALENT}
    assert Verdict.FASTER not in truth.Case("closed", "1.02", "quiet").right


def test_the_table_of_truth_counts() -> None:
    equal, dearer = truth.Case("closed", "1", "quiet"), truth.Case("slow", "1.5", "bursts")
    text = printed(
        truth.table(
            [
                outcome(equal.name, Verdict.EQUIVALENT, 0.99, 1.01),
                outcome(equal.name, Verdict.FASTER, 1.01, 1.03),
                outcome(equal.name, Verdict.INCONCLUSIVE, 1.01, 1.03, bound=0.02),
                outcome(dearer.name, Verdict.SLOWER, 0.66, 0.67),
                outcome(dearer.name, Verdict.INVALID),
                outcome(dearer.name, Verdict.INCONCLUSIVE),
                outcome("another script's", Verdict.FASTER),
            ]
        )
    )
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in text.splitlines()]
    counted = {tuple(row[:3]): row[3:10] for row in rows if len(row) > 9}
    assert counted["closed", "1", "quiet"] == ["3", "2 of 3", "1 of 3", "1", "1", "1", "0"]
    assert counted["slow", "1.5", "bursts"] == ["3", "1 of 2", "1 of 2", "1", "0", "1", "1"]
    assert counted["all", "", ""] == ["6", "3 of 5", "2 of 5", "2", "1", "2", "1"]
    assert max(map(len, text.splitlines())) == lab.TABLE_WIDTH


@pytest.mark.parametrize(
    ("verdict", "low", "high", "bound", "answered"),
    [
        (Verdict.FASTER, 1.1, 1.2, 0.0, True),
        (Verdict.INCONCLUSIVE, 0.97, 1.04, 0.0, True),
        (Verdict.INCONCLUSIVE, 0.97, 1.04, 0.03, False),
        (Verdict.INCONCLUSIVE, 0.97, 1.06, 0.0, False),
        (Verdict.INVALID, 1.1, 1.2, 0.0, False),
        (None, 1.1, 1.2, 0.0, False),
    ],
)
def test_what_counts_as_an_answer(
    verdict: Verdict | None, low: float, high: float, bound: float, answered: bool
) -> None:
    found = outcome(decisive.DUELS[0], verdict, low, high, bound)
    assert decisive.answered(found) is answered
    assert f"{int(answered)} of 1 duels" in printed(decisive.table([found]))


def test_the_duels_ask_stacks_of_the_catalogue() -> None:
    catalogue = Catalogue.load()
    asked = {stack for duel in decisive.DUELS for stack in duel.split()[:2]}
    assert asked <= set(catalogue.stacks)
    assert len(decisive.DUELS) == len(set(decisive.DUELS)) >= 15


def test_what_is_asked_the_python_api_knows() -> None:
    calls = [
        *map(decisive.asked, decisive.DUELS),
        *map(stalls.asked, stalls.CASES),
        *(case.asked for case in costs.CASES.values()),
        *(capacity.asked(name, "1m") for name in capacity.CASES),
        *(gated.asked for gated in gates.CASES),
        *(started.asked for started in starts.CASES.values()),
        *(truth.Case("open", "1.05", each).asked for each in truth.NEIGHBOURS),
    ]
    for call in calls:
        named = set(signature(getattr(webdyno, call.name)).parameters)
        assert set(call.having(output="x").arguments) <= named | set(api.Systems.__annotations__)
    asked = decisive.asked("redis redis --site keys --path /get --generator redis-benchmark")
    systems = {"system": "redis", "baseline": "redis", "site": "keys", "paths": ["/get"]}
    assert asked.arguments == {**systems, "settings": {"generator": "redis-benchmark"}}


def test_a_call_that_fails_says_why() -> None:
    reported = lab.Call("compare", {"system": "nginx", "baseline": "ngins"}).made()
    assert "did you mean nginx" in reported


def test_the_catalogue_of_dialed_servers_can_be_read() -> None:
    catalogue = Catalogue.load([truth.CATALOGUE])
    assert set(catalogue.stack("dialed").services) == {"dialed"}
    assert list(catalogue.experiment("dialed", ()).variants) == ["baseline", "other"]
