"""Rules about the network."""

from typing import Any

import pytest

from builders import simulated_run
from validity.broken import VARIANTS, found_in, readings_with, run_with
from webdyno.comparison import judge
from webdyno.core.judgement import Judgement, ValidityWarning, Verdict
from webdyno.core.records import SlotRecord
from webdyno.evidence.point_data import PointData


def found(**network: Any) -> dict[str, ValidityWarning]:  # noqa: ANN401
    """Warnings of a run with these network readings."""
    return found_in(run_with(readings_with(network=network)))


def test_a_quiet_network_is_fine() -> None:
    assert found() == {}


def test_a_full_listen_queue_is_reported() -> None:
    warning = found(dropped=5, listen_drops=7)["listen-overflow"]
    assert "120 connections found the listen queue full" in warning.what
    assert "backlog" in warning.fix


@pytest.mark.parametrize("kind", ["listen_overflows", "listen_drops", "syn_retransmits"])
def test_what_happens_to_other_programs_invalidates_nothing(kind: str) -> None:
    assert found(**{kind: 5}) == {}
    assert found(**{kind: 5, "dropped": None}) == {}


@pytest.mark.parametrize("kind", ["listen_overflows", "listen_drops"])
def test_in_a_namespace_of_our_own_its_counts_serve_as_well(kind: str) -> None:
    assert "listen-overflow" in found(**{kind: 5, "dropped": None, "own_namespace": True})


def test_repeated_connection_attempts_are_reported() -> None:
    warning = found(syn_retransmits=2, own_namespace=True)["syn-retransmits"]
    assert "48 connection attempts" in warning.what
    assert "throughput_rps" in warning.metrics


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


MBIT_100 = 12_500_000.0


@pytest.mark.parametrize(
    ("network", "fires"),
    [
        ({"sent_bytes": 6_000_000, "link_bytes_per_s": MBIT_100}, True),
        ({"received_bytes": 6_000_000, "link_bytes_per_s": MBIT_100}, True),
        ({"sent_bytes": 5_000_000, "link_bytes_per_s": MBIT_100}, False),
        ({"sent_bytes": 6_000_000, "link_bytes_per_s": None}, False),
    ],
)
def test_a_full_link_is_reported(network: dict[str, float | None], fires: bool) -> None:
    by_rule = found(**network)
    assert ("link-limited" in by_rule) == fires
    if fires:
        assert by_rule["link-limited"].severity == "note"
        assert "96%" in by_rule["link-limited"].what
        assert "server_cpu_us" not in by_rule["link-limited"].metrics


def test_a_link_that_is_full_now_and_then_is_no_limit() -> None:
    def change(slot: SlotRecord) -> SlotRecord:
        sent_bytes = 6_000_000 if slot.slot == 3 else 1_000_000
        network = {"sent_bytes": sent_bytes, "link_bytes_per_s": MBIT_100}
        return readings_with(network=network)(slot)

    assert "link-limited" not in found_in(run_with(change))


def test_a_full_link_is_the_reason_why_variants_are_equivalent() -> None:
    full = readings_with(network={"sent_bytes": 6_000_000, "link_bytes_per_s": MBIT_100})
    run = simulated_run(VARIANTS, restart_sd=0.001, slot_sd=0.001)

    def judged(*variants: str) -> Judgement:
        records = [
            (full if record.variant in variants else readings_with())(record)
            if isinstance(record, SlotRecord)
            else record
            for record in run.records
        ]
        return judge(PointData.of(run.head, records))

    judgement = judged("nginx", "apache")
    rates = {c.metric: c for c in judgement.comparisons}
    assert rates["throughput_rps"].verdict is Verdict.EQUIVALENT
    assert "link-limited" in rates["throughput_rps"].why
    assert "link-limited" in judgement.headline
    assert rates["server_cpu_us"].reason is None

    one_only = judged("apache")
    assert one_only.verdict is Verdict.EQUIVALENT
    assert "link-limited" not in one_only.headline
    assert {f.variant for f in one_only.warnings if f.rule == "link-limited"} == {"apache"}


def test_acknowledgements_that_a_listener_defers_are_no_overflow() -> None:
    assert found(dropped=64, listen_drops=0) == {}


@pytest.mark.parametrize(("without_port", "refused"), [(3, False), (2, True)])
def test_ports_that_the_client_lacks_are_its_own_limit(without_port: int, refused: bool) -> None:
    def change(slot: SlotRecord) -> SlotRecord:
        failures = slot.load.failures.model_copy(update={"connect": 3})
        used = slot.load.connections.model_copy(update={"without_port": without_port})
        changed = {"failures": failures, "connections": used}
        return slot.model_copy(update={"load": slot.load.model_copy(update=changed)})

    by_rule = found_in(run_with(change))
    assert "client ran out of local ports" in by_rule["ports-used-up"].what
    assert "client's limit" in by_rule["ports-used-up"].fix
    assert ("refused" in by_rule) == refused
