"""What real servers of known behaviour do beyond their capacity; and the bench's table."""

from pathlib import Path

import pytest
from rich.console import Console

import overloads
from bench.outcomes import KEPT
from bench.searches import searched
from overloads import Beyond
from webdyno.comparison.saturation import overloads as overloads_of
from webdyno.core.findings import Overload, OverRounds


@pytest.mark.measures
@pytest.mark.parametrize("case", overloads.CASES)
def test_what_a_server_does_beyond_its_capacity_is_reported(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In two rounds, one for each multiple, so that a round's own capacity has to be exact."""
    reported = overloads.asked(case, "400s").arguments["experiment"]
    reported["capacity"]["longest_trial_s"] = 2.0
    folder = searched(reported, 2, tmp_path / "run", monkeypatch)
    found = list(overloads_of(folder.data().points[0]))
    assert [each.times for each in found] == [1.2, 2.0]
    assert {each.times: list(overloads.wrong(case, each)) for each in found} == {1.2: [], 2.0: []}


def always(value: float) -> OverRounds:
    return OverRounds(least=value, median=value, most=value)


SHEDS = Overload(
    variant=overloads.VARIANT,
    times=1.2,
    rounds=3,
    offered_rps=1_200,
    goodput_rps=always(1_000),
    of_capacity=always(0.99),
    failed=always(0.17),
    p50_us=always(500),
    p99_us=always(900),
    back=3,
    back_s=always(0.2),
)
GONE = SHEDS.replace(of_capacity=always(0), failed=always(1), p50_us=None, back=0, back_s=None)


@pytest.mark.parametrize(
    ("case", "seen", "wrong"),
    [
        ("drops", SHEDS, []),
        ("drops", SHEDS.replace(of_capacity=always(0.8)), ["goodput"]),
        ("drops", SHEDS.replace(p50_us=always(1e6)), ["p50"]),
        ("drops", SHEDS.replace(back=2), ["whether it comes back"]),
        ("collapses", GONE, []),
        ("collapses", GONE.replace(back=1, back_s=always(2)), ["whether it comes back"]),
        ("recovers", GONE.replace(back=3, back_s=always(3.2)), []),
        ("recovers", GONE.replace(back=3, back_s=always(1.1)), ["when it comes back"]),
    ],
)
def test_figures_are_held_against_the_truth(case: str, seen: Overload, wrong: list[str]) -> None:
    assert list(overloads.wrong(case, seen)) == wrong


def test_the_table_counts_what_is_right_and_names_what_is_not() -> None:
    bad = SHEDS.replace(failed=always(0.4))
    runs = [Beyond(**KEPT, case="drops", overloads=[each]) for each in (SHEDS, bad)]
    assert overloads.missing(runs[0]) == [2.0]
    assert overloads.line(runs[1]).startswith("drops: 2×: not tried; 1.2×: failures wrong")
    console = Console(record=True, width=100)
    console.print(overloads.table(runs))
    (row,) = [line for line in console.export_text().splitlines() if "1.2×" in line]
    cells = [cell.strip() for cell in row.strip("│").split("│")]
    assert cells[:4] == ["drops", "1.2×", "2", "1"]
    assert cells[-1] == "failures"
