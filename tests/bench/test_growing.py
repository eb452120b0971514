"""bench/growing.py: what it asks of webdyno, and the table of what came of it."""

from pathlib import Path

import pytest
from rich.console import Console

import growing
from bench.outcomes import outcome
from e2e.commands import environment
from webdyno.core.base import Interval
from webdyno.core.judgement import Verdict

QUICKLY = {"slot_s": 0.2, "warmup_s": 0, "slots_per_variant": 2, "budget_s": "1s"}


@pytest.mark.long
@pytest.mark.parametrize("name", growing.CASES)
def test_a_server_with_a_table_is_compared_with_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    for variable, value in environment(tmp_path).items():
        monkeypatch.setenv(variable, value)
    found = growing.compare(name, 6, QUICKLY)
    assert found.verdict is not None, found.problem
    assert found.rounds >= 6
    if name == "each slot":
        assert not growing.is_reported(found)


def test_verdicts_and_warnings_are_counted() -> None:
    ratios = {"throughput_rps": Interval(low=0.991, estimate=1.0, high=1.012)}
    name = "each round"
    reported = "state-grows (note): variant one: each slot of a round costs 2% more CPU per request"
    runs = [
        outcome(name, verdict, metric="throughput_rps", ratios=ratios, warnings=[reported])
        for verdict in (Verdict.EQUIVALENT, Verdict.SLOWER)
    ]
    console = Console(width=200, record=True)
    console.print(growing.table(runs))
    (row,) = (it for it in console.export_text().splitlines() if "each round" in it)
    assert row.split()[4:10] == ["2", "│", "1", "│", "0", "│"]
    assert "0.991–1.012, 0.991–1.012" in row
