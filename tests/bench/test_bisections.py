"""bench/bisections.py: its repositories, and a bisection from first to last."""

from pathlib import Path

import pytest
from rich.console import Console

import bisections
from bench.outcomes import KEPT
from e2e.commands import QUICK, environment
from rig import lab
from truth import own_program


def test_one_commit_of_eight_costs_more(tmp_path: Path) -> None:
    commits = bisections.repository_of(tmp_path / "repository", 3, Path("/srv/dialed"))
    assert len(commits) == bisections.COMMITS
    shown = [
        bisections.git(tmp_path / "repository", "show", f"{commit}:serve.sh") for commit in commits
    ]
    assert ["--cost-us 110" in text for text in shown] == [False] * 2 + [True] * 6
    assert len(set(shown)) == bisections.COMMITS, "else there would be nothing to measure"
    assert bisections.place_of(commits[4][:10], commits) == 5


@pytest.mark.measures
@pytest.mark.timeout(600)
def test_a_bisection_runs_from_first_to_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(bisections, "SLOWER_US", 200)
    with own_program() as program:
        found = bisections.run(6, program, [*QUICK, "--fail-if=cpu > +30%"])
    assert (found.found, found.problem) == (6, "")
    assert 2 <= found.gates <= 4


def test_the_table_counts_those_that_were_found(tmp_path: Path) -> None:
    results = tmp_path / "bisections.jsonl"
    for place in (3, None):
        one = bisections.Bisected(**KEPT, case="", planted=3, found=place, gates=4)
        lab.append(results, one)
    console = Console(width=110, record=True)
    console.print(bisections.table(lab.read_as(results, bisections.Bisected)))
    said = console.export_text()
    assert "found in 1 of 2 bisections" in said
    assert "–" in said
