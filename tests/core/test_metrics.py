"""The value of each metric in a round, computed from its slots."""

from random import Random

import pytest
from pydantic import ValidationError

from builders import START, latencies, load_result, run_head
from webdyno.core.histogram import Histogram
from webdyno.core.load_result import Bytes, Client, Failures, Requests, Whole, Window
from webdyno.core.measure import Measure
from webdyno.core.metrics import (
    METRICS,
    metrics_reported_by,
    response_bytes,
    server_cpu_us,
    throughput_rps,
)
from webdyno.core.records import RoundRecord, ServerUse, SlotRecord
from webdyno.evidence.point_data import PointData, Round
from webdyno.validity import excluded_slots


def slot(
    *,
    completed: int = 1_000,
    measured_s: float = 0.5,
    drained: int = 0,
    failures: Failures | None = None,
    cpu_s: float = 0.02,
    median_us: float = 1_000,
) -> SlotRecord:
    """A slot with the figures that metrics are made from."""
    load = load_result(duration_s=measured_s).model_copy(
        update={
            "requests": Requests(
                sent=completed + drained, completed=completed, unanswered=drained, drained=drained
            ),
            "failures": failures or Failures(),
            "by_status": {"200": completed},
            "bytes": Bytes(head=200 * completed, body=49 * completed),
            "latency_us": latencies(completed, median_us),
        }
    )
    use = ServerUse(cpu_user_s=cpu_s / 2, cpu_sys_s=cpu_s / 2, means="cgroup-v2")
    return SlotRecord(
        round=0, slot=0, variant="a", phase="measure", started_at=START, load=load, servers=use
    )


def test_the_rate_is_of_all_slots_together() -> None:
    slots = [slot(completed=1_000, measured_s=0.5), slot(completed=100, measured_s=1.5)]
    assert throughput_rps(slots) == pytest.approx(550)


def drained_slot(completed: int, drained: int, drain_s: float, loop: str = "closed") -> SlotRecord:
    """A slot of half a second with work in flight at its end."""
    made = slot(completed=completed, measured_s=0.5, drained=drained)
    load = made.load.model_copy(update={"drain_s": drain_s, "loop": loop})
    return made.model_copy(update={"load": load})


def test_work_in_flight_at_the_end_counts_with_the_time_it_took() -> None:
    """64 pages worked on at once are half done on average when the slot ends."""
    assert throughput_rps([drained_slot(24, 64, 0.26)]) == pytest.approx(88 / 0.76)


def test_pages_slower_than_a_slot_have_a_rate() -> None:
    assert throughput_rps([drained_slot(0, 64, 0.5)]) == pytest.approx(64)


def measured_of(made: SlotRecord) -> PointData:
    """A run of this slot alone."""
    this_round = RoundRecord(round=0, order=["a"], started_at=START, took_s=1.0, ready_s={})
    return PointData(run_head(), rounds=(Round(this_round, (made,)),))


def slot_with_ramp_up(completed: int, window_s: float, whole: Whole, **load: object) -> SlotRecord:
    """A slot whose window begins after half a second of load."""
    made = slot(completed=completed, measured_s=window_s, drained=64, cpu_s=0.5)
    changes = {"ramp_up_s": 0.5, "drain_s": 0.6, "whole": whole} | load
    return made.model_copy(update={"load": made.load.model_copy(update=changes)})


@pytest.mark.parametrize("service_s", [0.01, 0.1, 0.6])
def test_after_a_ramp_up_work_in_flight_cancels(service_s: float) -> None:
    """64 connections, each answered `service_s` after it asked: 64 / service_s per second."""
    rng = Random(1)
    ends = [
        offset + n * service_s
        for offset in (rng.random() * service_s for _ in range(64))
        for n in range(round(14 / service_s))
    ]
    in_window = sum(0.5 <= end < 12.5 for end in ends)
    whole = Whole(length_s=13.1, completed=in_window + 100, by_status={}, failures=Failures())
    rate = throughput_rps([slot_with_ramp_up(in_window, 12.0, whole)])
    assert rate == pytest.approx(64 / service_s, rel=0.03)


def test_costs_are_of_all_answers_and_failures_of_the_whole_slot() -> None:
    whole = Whole(
        length_s=1.6,
        completed=2_500,
        by_status={"200": 2_500, "500": 10},
        failures=Failures(status=10),
        bytes=Bytes(head=251_000, body=251_000),
    )
    made = slot_with_ramp_up(1_000, 0.5, whole)
    assert throughput_rps([made]) == pytest.approx(2_000)
    assert server_cpu_us([made]) == pytest.approx(0.5e6 / 2_510)
    assert response_bytes([made]) == pytest.approx(200)
    assert [it.rule for it in excluded_slots(measured_of(made))] == ["non-2xx"]


def test_pages_slower_than_the_window_have_the_rate_of_the_whole_slot() -> None:
    whole = Whole(length_s=2.0, completed=64, by_status={}, failures=Failures())
    assert throughput_rps([slot_with_ramp_up(0, 0.5, whole)]) == pytest.approx(32)


def test_windows_in_which_the_client_stalled_do_not_count() -> None:
    windows = [
        Window(at_s=0.0, length_s=0.5, completed=9_000, ramp_up=True),
        Window(at_s=0.5, length_s=0.5, completed=10_000),
        Window(at_s=1.0, length_s=0.5, completed=2_000, stalled=True),
    ]
    whole = Whole(length_s=1.6, completed=21_000, by_status={}, failures=Failures())
    client = Client(threads=1, cpu_user_s=0, cpu_sys_s=0, busy=0.5, excluded_windows=1)
    made = slot_with_ramp_up(12_000, 1.0, whole, windows=windows, client=client)
    assert throughput_rps([made]) == pytest.approx(20_000)


def test_one_late_answer_in_the_drain_takes_nothing_off_the_rate() -> None:
    assert throughput_rps([drained_slot(20_000, 64, 1.0)]) == pytest.approx(40_000)


def test_an_open_loop_counts_all_that_was_due_in_the_slot() -> None:
    """A server that keeps up, at a round trip of 100 ms."""
    assert throughput_rps([drained_slot(2_000, 500, 0.1, loop="open")]) == pytest.approx(5_000)


def test_server_cpu_is_per_answer_late_and_wrong_ones_included() -> None:
    failures = Failures(status=30, body=10, timeout=5, reset=5)
    slots = [slot(completed=900, drained=60, failures=failures, cpu_s=0.02)]
    assert server_cpu_us(slots) == pytest.approx(20.0)


def test_the_size_of_an_answer_is_a_mean_over_the_slots_that_report_it() -> None:
    silent = slot().load.model_copy(update={"bytes": Bytes(), "by_status": {"200": 7}})
    slots = [slot(completed=900), slot(completed=10).model_copy(update={"load": silent})]
    assert response_bytes(slots) == 249


def test_percentiles_come_from_merged_times_not_from_averages() -> None:
    fast, slow = slot(completed=9_900, median_us=100), slot(completed=100, median_us=10_000)
    p99 = METRICS["latency_p99_us"].round_value([fast, slow])
    alone = Histogram.decode(slow.load.latency_us.histogram or "").quantile(0.99)
    assert p99 is not None
    assert alone is not None
    assert p99 < alone / 2


@pytest.mark.parametrize("name", METRICS)
def test_without_answers_there_is_no_value(name: str) -> None:
    rule = METRICS[name]
    assert rule.round_value([]) is None
    assert rule.round_value([slot(completed=0, cpu_s=0)]) is None


@pytest.mark.parametrize("name", METRICS)
def test_a_deciding_metric_is_reported_of_whatever_slots_report(name: str) -> None:
    assert name in [rule.name for rule in metrics_reported_by([slot()], name)]


def test_what_slots_cannot_report_is_excluded() -> None:
    reported = [rule.name for rule in metrics_reported_by([slot()], "throughput_rps")]
    assert "memory_mib" not in reported
    assert "latency_p99_us" in reported


@pytest.mark.parametrize("name", ["rate", "response_bytes", ""])
def test_an_unknown_deciding_metric_is_refused_with_the_known_ones(name: str) -> None:
    with pytest.raises(
        ValidationError, match="can be throughput_rps, server_cpu_us, instructions, latency_p50_us"
    ):
        Measure.model_validate({"decide_on": name})
