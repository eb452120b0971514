"""What is made of the samples of open loops."""

from datetime import UTC, datetime

import pytest

from open_loops import AS_USUAL, BEFORE, FLOOR, LOADS, NOW, POLLING, TASK, Sample, cases, goals

COSTS_US = {
    (NOW, POLLING): 24.0,
    (BEFORE, POLLING): 30.0,
    (BEFORE, AS_USUAL): 32.0,
    (FLOOR, POLLING): 20.0,
}


def samples(load: str, rounds: int) -> list[Sample]:
    return [
        Sample(
            at=datetime.now(UTC),
            machine="",
            commit="",
            against="",
            round=f"2026-11-26 {number}",
            load=load,
            client=client,
            idle=idle,
            cpu_us=cost_us * (1 + number / 1000),
        )
        for number in range(rounds)
        for (client, idle), cost_us in COSTS_US.items()
    ]


def test_ratios_are_taken_within_rounds() -> None:
    (exact,) = goals(samples("exact", 9))
    assert exact.startswith("exact, CPUs polling: at most 0.85× before (as usual): reached, 0.75 (")
    earlier, floor = goals(samples("200us", 9))
    assert "reached, 0.75" in earlier
    assert "at most 1.15× floor (polling): missed, 1.20" in floor


@pytest.mark.parametrize("rounds", [1, 5])
def test_few_rounds_reach_no_goal_by_their_confidence(rounds: int) -> None:
    (exact,) = goals(samples("exact", rounds))
    assert "inconclusive: too few rounds, 0.75 (" in exact
    assert exact.endswith(f"{rounds} rounds")


def test_a_failed_sample_is_in_no_ratio() -> None:
    failed = [each.model_copy(update={"cpu_us": None}) for each in samples("exact", 3)]
    assert list(goals(failed)) == []


def test_each_load_has_its_clients() -> None:
    planned = list(cases(list(LOADS), [AS_USUAL, POLLING, TASK]))
    assert len(planned) == len(set(planned))
    assert ("exact", TASK, NOW) in planned
    assert ("1ms", TASK, NOW) not in planned
    assert ("exact-kernel-times", AS_USUAL, BEFORE) not in planned
    assert ("http2", POLLING, NOW) not in planned
    assert ("tls-100kb", AS_USUAL, FLOOR) not in planned
