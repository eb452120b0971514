"""Rules about what the client and the link can do at most."""

import pytest

from judge.validity.broken import found_in, readings_with, run_with
from webdyno.model.calibration import Ceiling, Limit

RATE_RPS = 40_000
"""Of simulated arms, give or take their noise of 2 %."""


@pytest.mark.parametrize(
    ("ceiling_rps", "limit", "rule"),
    [
        (RATE_RPS, "client", "client-ceiling"),
        (RATE_RPS, "link", "link-bound"),
        (RATE_RPS, "server", None),
        (RATE_RPS * 2, "client", None),
        (RATE_RPS / 2, "client", None),  # out of date: it was exceeded by far
    ],
)
def test_rates_near_a_ceiling(ceiling_rps: float, limit: Limit, rule: str | None) -> None:
    ceiling = Ceiling(rate_rps=ceiling_rps, limited_by=limit)
    by_rule = found_in(run_with(readings_with(ceiling=ceiling)))
    assert by_rule.keys() & {"client-ceiling", "link-bound"} == ({rule} if rule else set())
    if rule:
        assert "webdyno calibrate" in by_rule[rule].what
        assert by_rule[rule].severity == ("invalid" if limit == "client" else "note")


def test_without_a_calibration_nothing_is_said() -> None:
    by_rule = found_in(run_with(readings_with()))
    assert not by_rule.keys() & {"client-ceiling", "link-bound"}
