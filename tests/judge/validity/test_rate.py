"""The rule about the rate of an open loop."""

import pytest

from judge.validity.broken import found_in, load_with, run_with
from webdyno.model.judgement import Finding
from webdyno.model.load_result import Window


@pytest.mark.parametrize(
    ("offered", "completed", "fires"),
    [
        (None, 20_000, False),
        (40_000.0, 20_000, False),
        (40_000.0, 19_700, False),
        (40_000.0, 19_000, True),
        (40_000.0, 21_000, True),
        (200.0, 90, False),
        (200.0, 60, True),
    ],
)
def test_a_rate_that_was_missed_is_told(offered: float | None, completed: int, fires: bool) -> None:
    change = load_with(
        loop="open",
        offered_rps=offered,
        requests={"completed": completed, "drained": 0},
        rate_rps=completed / 0.5,
    )
    found = found_in(run_with(change))
    assert ("offered-rate" in found) == fires
    if fires and offered:
        assert f"{offered:,.0f} requests/s were offered" in found["offered-rate"].what


def in_thirds(
    *completed: int, drained: int, drain_s: float, median_us: float
) -> dict[str, Finding]:
    """Findings of an open loop at 5,000/s over half a second."""
    windows = [
        Window(at_s=at / 6, length_s=1 / 6, completed=count) for at, count in enumerate(completed)
    ]
    change = load_with(
        loop="open",
        offered_rps=5_000.0,
        requests={"completed": sum(completed), "drained": drained},
        drain_s=drain_s,
        windows=windows,
        response_time_us={"p50": median_us, "mean": median_us},
    )
    return found_in(run_with(change))


def test_a_server_that_keeps_up_from_far_away_is_not_too_slow() -> None:
    """At a round trip of 100 ms, 500 of 2,500 answers come after the slot's end."""
    found = in_thirds(334, 833, 833, drained=500, drain_s=0.1, median_us=100_000)
    assert "offered-rate" not in found


def test_a_queue_that_grows_is_no_keeping_up_though_it_is_worked_off_in_the_drain() -> None:
    found = in_thirds(667, 667, 666, drained=500, drain_s=0.125, median_us=62_000)
    assert "4,000" in found["offered-rate"].what or "3,996" in found["offered-rate"].what


def test_slots_shorter_than_a_response_are_judged_by_all_that_was_answered() -> None:
    assert "offered-rate" not in in_thirds(0, 0, 0, drained=2_500, drain_s=0.6, median_us=6e5)
