"""Streamed responses: what is computed of their events, limits of goodput, objectives on events."""

import pytest

from builders import START, latencies, load_result
from webdyno.core.histogram import Histogram
from webdyno.core.load_result import EventTimes, Failures, LoadResult
from webdyno.core.metrics import METRICS, metrics_reported_by
from webdyno.core.objectives import objective
from webdyno.core.records import ServerUse, SlotRecord
from webdyno.core.streams import engine_limits


def streamed(measured_s: float = 1.0, **events: object) -> SlotRecord:
    """A slot of streams."""
    load = load_result(duration_s=measured_s).model_copy(
        update={"events": EventTimes(responses=100, per_response=20.0).model_copy(update=events)}
    )
    use = ServerUse(cpu_user_s=0.01, cpu_sys_s=0.01, means="cgroup-v2")
    return SlotRecord(
        round=0, slot=0, variant="a", phase="measure", started_at=START, load=load, servers=use
    )


def test_rates_are_of_all_slots_together() -> None:
    slots = [
        streamed(1.0, per_s=1000.0, goodput_rps=40.0),
        streamed(3.0, per_s=2000.0, goodput_rps=0.0),
    ]
    assert METRICS["events_per_s"].round_value(slots) == pytest.approx(1750)
    assert METRICS["goodput_rps"].round_value(slots) == pytest.approx(10)


def test_goodput_is_reported_where_it_was_asked_for() -> None:
    for goodput_rps, reported in [(None, False), (0.0, True)]:
        rules = metrics_reported_by([streamed(goodput_rps=goodput_rps)], "throughput_rps")
        assert any(rule.name == "goodput_rps" for rule in rules) == reported
        assert any(rule.name == "per_event_p99_us" for rule in rules)


def test_runs_before_these_were_counted_have_none() -> None:
    for name in ("events_per_s", "goodput_rps", "per_event_p50_us"):
        assert METRICS[name].round_value([streamed()]) is None


def test_limits_of_goodput_are_read() -> None:
    assert engine_limits(["ttft<500ms", "tpot < 50ms", "latency<5s"]) == {
        "first_event_s": 0.5,
        "per_event_s": 0.05,
        "latency_s": 5.0,
    }


@pytest.mark.parametrize(
    "limits", [["itl<5ms"], ["ttft<5"], ["ttft>5ms"], ["ttft<0ms"], ["ttft<1s", "ttft<2s"]]
)
def test_what_is_no_limit_of_goodput_is_refused(limits: list[str]) -> None:
    with pytest.raises(ValueError, match=r"write|twice"):
        engine_limits(limits)


def beyond(text: str, load: LoadResult) -> int:
    return objective(text).beyond(load, Histogram.decode(load.latency_us.histogram or ""))


def test_objectives_on_events_count_responses() -> None:
    """All that were due, 1000, less those whose first event, or mean gap, was in time."""
    times = latencies(1000, 100_000, spread=0.01)
    load = load_result().model_copy(
        update={
            "latency_us": latencies(1000, 1e6),
            "failures": Failures(),
            "events": EventTimes(
                responses=990,
                per_response=20.0,
                time_to_first_us=times,
                per_event_us=latencies(990, 10_000, spread=0.01),
            ),
        }
    )
    assert beyond("ttft p99<200ms", load) == 0
    assert beyond("ttft p99<100ms", load) == pytest.approx(500, abs=25)
    assert beyond("ttft p99<50ms", load) == 1000
    assert beyond("tpot p99<20ms", load) == 10  # those that weren't answered rightly
    assert beyond("tpot p99<5ms", load) == 1000
    failing = load.model_copy(update={"failures": Failures(status=30)})
    assert beyond("ttft p99<200ms", failing) == 30
    whole = load.model_copy(update={"events": None})
    assert beyond("ttft p99<200ms", whole) == 1000
