"""The rule about the rate of an open loop."""

import pytest

from judge.validity.broken import found_in, load_with, run_with


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
        requests={"completed": completed},
        rate_rps=completed / 0.5,
    )
    found = found_in(run_with(change))
    assert ("offered-rate" in found) == fires
    if fires and offered:
        assert f"{offered:,.0f} requests/s were offered" in found["offered-rate"].what
