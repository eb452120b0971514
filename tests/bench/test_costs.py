"""What the benchmark of costs makes of its results."""

import pytest
from rich.console import Console

import costs
from bench.outcomes import outcome
from rig.lab import Outcome
from webdyno.core.base import Interval
from webdyno.core.judgement import Verdict


def found(
    case: str, baseline_us: float, other_us: float | None, warnings: tuple[str, ...] = ()
) -> Outcome:
    known = {"baseline": baseline_us, "other": other_us}
    values = {
        name: Interval(low=us * 0.99, estimate=us, high=us * 1.01)
        for name, us in known.items()
        if us is not None
    }
    return outcome(case, Verdict.SLOWER, metric="server_cpu_us", values=values, warnings=warnings)


def test_costs_are_held_against_the_dial() -> None:
    off = costs.off(found("200 and 400 µs at 500/s", 202, 396))
    assert off == pytest.approx({"baseline": 0.01, "other": -0.01})


def test_right_costs_and_what_was_reported_are_counted_by_case() -> None:
    gathers, overloaded = "gathers for 15 of 20 ms", "overloaded"
    own_work = "own work at 500/s"
    queueing = ("cheap-by-queueing (note): variant other: it needs 0.60× the CPU of baseline",)
    too_much = ("offered-rate (invalid): variant other: 2,000 req/s were offered, but 990",)
    runs = [
        found("50 and 100 µs at 500/s", 50.5, 103),
        found("50 and 100 µs at 500/s", 50, 100, too_much),
        found(gathers, 100, 60, queueing),
        found(gathers, 100, 60),
        found(overloaded, 100, None, too_much),
        found(own_work, 40, 42),
    ]
    console = Console(width=200, record=True)
    console.print(costs.table(runs))
    lines = console.export_text().splitlines()
    rows = [[cell.strip() for cell in line.strip("│").split("│")] for line in lines]
    assert ["50 and 100 µs at 500/s", "41.0", "2", "4", "3", "3.00%", "–", "1", "60"] in rows
    assert [gathers, "–", "2", "4", "4", "0.00%", "1 of 2", "0", "60"] in rows
    assert [overloaded, "–", "1", "1", "1", "0.00%", "1 of 1", "0", "60"] in rows
    assert [own_work, "41.0", "1", "0", "0", "–", "–", "0", "60"] in rows


def test_what_has_no_dial_says_what_own_work_costs() -> None:
    run = found("own work at 500/s", 40, 42)
    assert costs.off(run) == {}
    assert "baseline 40.0 µs; other 42.0 µs" in costs.line(run)
    assert costs.own_work_us([run], 500) == 41
    assert costs.own_work_us([run], 2_000) is None
