"""bench/gates.py: what it asks, and the table of what came of it."""

from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

import gates
from rig import lab
from webdyno.core.limits import GateAnswer


def outcome(case: gates.Case, answer: GateAnswer | None) -> gates.Answered:
    return gates.Answered(
        case=case.name,
        at=datetime(2026, 3, 14, tzinfo=UTC),
        machine="m",
        commit="c",
        answer=answer,
        rounds=6,
        took_s=60.0,
    )


def test_results_grow_and_are_counted_by_case(tmp_path: Path) -> None:
    results = tmp_path / "gates.jsonl"
    first, *_, noisy, _ = gates.CASES
    for found in (
        outcome(first, GateAnswer.PASS),
        outcome(first, None),
        outcome(noisy, GateAnswer.INCONCLUSIVE),
    ):
        lab.append(results, found)
    console = Console(width=110, record=True)
    console.print(gates.table(lab.read_as(results, gates.Answered)))
    rows = [line for line in console.export_text().splitlines() if "no change" in line]
    assert [cell.strip() for cell in rows[0].split("│")[1:-1]] == [
        *("no change", "2", "50% (1.3–98.7)", "1", "0", "0", "1", "6.0", "60")
    ]
    assert len(rows) == 2


def test_head_alone_costs_more() -> None:
    settings = gates.CASES[3].asked.arguments["settings"]
    assert settings['variants."baseline again".settings.cost_us'] == 100
    assert settings['variants."head".settings.cost_us'] == 110


def test_what_is_right_hangs_on_the_limit() -> None:
    right = [case.right.value for case in gates.CASES]
    assert right == ["pass", "pass", "fail", "fail", "pass", "fail"]
