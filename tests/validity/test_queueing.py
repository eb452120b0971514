"""The rule about variants that are cheap because requests wait for them."""

import re

import pytest

from builders import SimulatedVariant
from evidence.rates import at_rate
from validity.broken import found_in
from webdyno.core.judgement import ValidityWarning
from webdyno.core.metrics import THROUGHPUT

PLAIN = SimulatedVariant(server_cpu_us=100.0, latency_p50_us=300.0)
GATHERS = SimulatedVariant(server_cpu_us=60.0, latency_p50_us=9_000.0)
"""It sleeps, and then works on what has come meanwhile."""


def reported(variants: dict[str, SimulatedVariant]) -> ValidityWarning | None:
    return found_in(at_rate(2_000, variants)).get("cheap-by-queueing")


@pytest.mark.parametrize("first", ["plain", "gathers"])
def test_who_saves_cpu_and_lets_requests_wait_is_reported(first: str) -> None:
    both = {"plain": PLAIN, "gathers": GATHERS}
    found = reported({name: both[name] for name in sorted(both, key=lambda name: name != first)})
    assert found
    assert (found.severity, found.variant) == ("note", "gathers")
    assert re.fullmatch(
        r"variant gathers: it needs 0\.(59|60)\d*× the CPU of plain, but requests wait longer: "
        r"p50 (8\.9|9\.)\d* ms against [23]\d\d µs and p99 1\d\.\d ms against 6\d\d µs",
        found.what,
    )


def test_a_long_tail_alone_is_reported() -> None:
    tail = SimulatedVariant(server_cpu_us=60.0, latency_p50_us=310.0, latency_spread=1.5)
    found = reported({"plain": PLAIN, "tail": tail})
    assert found
    assert "requests wait longer: p99 " in found.what


@pytest.mark.parametrize(
    "other",
    [
        SimulatedVariant(server_cpu_us=60.0, latency_p50_us=290.0),
        SimulatedVariant(server_cpu_us=60.0, latency_p50_us=410.0),
        SimulatedVariant(server_cpu_us=60.0, latency_p50_us=500.0, latency_spread=0.1),
        SimulatedVariant(server_cpu_us=99.5, latency_p50_us=9_000.0),
        SimulatedVariant(server_cpu_us=150.0, latency_p50_us=9_000.0),
    ],
    ids=["as fast", "a bit slower", "by less than anybody minds", "as dear", "dearer"],
)
def test_others_are_not(other: SimulatedVariant) -> None:
    assert reported({"plain": PLAIN, "other": other}) is None


def test_it_is_held_against_the_one_that_answers_soonest() -> None:
    slower = SimulatedVariant(server_cpu_us=150.0, latency_p50_us=3_000.0)
    found = reported({"slower": slower, "plain": PLAIN, "gathers": GATHERS})
    assert found
    assert "the CPU of plain" in found.what


def test_nobody_asks_it_where_costs_do_not_decide() -> None:
    run = at_rate(2_000, {"plain": PLAIN, "gathers": GATHERS}, decide_on=THROUGHPUT)
    assert "cheap-by-queueing" not in found_in(run)
