"""Rules about the network."""

from typing import Any

import pytest

from judge.validity.broken import found_in, readings_with, run_with
from webdyno.model.judgement import Finding
from webdyno.model.records import SlotRecord


def found(**network: Any) -> dict[str, Finding]:  # noqa: ANN401
    """Findings of a run with these network readings."""
    return found_in(run_with(readings_with(network=network)))


def test_a_quiet_network_is_fine() -> None:
    assert found() == {}


def test_a_full_listen_queue_is_told() -> None:
    finding = found(dropped=5)["listen-overflow"]
    assert "120 connections found the listen queue full" in finding.what
    assert "backlog" in finding.remedy


@pytest.mark.parametrize("kind", ["listen_overflows", "listen_drops", "syn_retransmits"])
def test_what_happens_to_other_programs_spoils_nothing(kind: str) -> None:
    assert found(**{kind: 5}) == {}
    assert found(**{kind: 5, "dropped": None}) == {}


@pytest.mark.parametrize("kind", ["listen_overflows", "listen_drops"])
def test_in_a_namespace_of_our_own_its_counts_serve_as_well(kind: str) -> None:
    assert "listen-overflow" in found(**{kind: 5, "dropped": None, "own_namespace": True})


def test_repeated_connection_attempts_are_told() -> None:
    finding = found(syn_retransmits=2, own_namespace=True)["syn-retransmits"]
    assert "48 connection attempts" in finding.what
    assert "rate_rps" in finding.metrics


@pytest.mark.parametrize(
    ("failed", "waiting", "fires"), [(3, 28_000, True), (0, 28_000, False), (3, 100, False)]
)
def test_ports_used_up_need_both_failures_and_waiting_ports(
    failed: int, waiting: int, fires: bool
) -> None:
    def change(slot: SlotRecord) -> SlotRecord:
        slot = readings_with(network={"time_wait": waiting})(slot)
        failures = slot.load.failures.model_copy(update={"connect": failed})
        return slot.model_copy(update={"load": slot.load.model_copy(update={"failures": failures})})

    by_rule = found_in(run_with(change))
    assert ("ports-used-up" in by_rule) == fires
    assert ("refused" in by_rule) == (failed > 0)
