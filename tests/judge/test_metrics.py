"""The value of each metric in a block, computed from its slots."""

import pytest

from builders import START, load_result, response_times
from judge.validity.broken import readings_with
from webdyno.judge.histogram import Histogram
from webdyno.judge.metrics import (
    METRICS,
    MetricRule,
    answer_bytes,
    metric_rule,
    rate_rps,
    server_cpu_us,
)
from webdyno.model.load_result import Bytes, Failures, Requests
from webdyno.model.records import ServerUse, SlotRecord


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
            "response_time_us": response_times(completed, median_us),
        }
    )
    use = ServerUse(cpu_user_s=cpu_s / 2, cpu_sys_s=cpu_s / 2, means="cgroup-v2")
    return SlotRecord(
        block=0, slot=0, arm="a", phase="measure", started_at=START, load=load, servers=use
    )


def test_the_rate_is_of_all_slots_together() -> None:
    slots = [slot(completed=1_000, measured_s=0.5), slot(completed=100, measured_s=1.5)]
    assert rate_rps(slots) == pytest.approx(550)


def test_over_a_link_with_a_limit_the_drain_counts_too() -> None:
    """64 large answers fill a link for longer than the slot lasts."""
    limited = slot(completed=24, measured_s=0.5, drained=64)
    limited = limited.model_copy(
        update={"load": limited.load.model_copy(update={"drain_s": 0.26, "measured_s": 0.5})}
    )
    assert rate_rps([limited]) == pytest.approx(48)
    with_link = readings_with(network={"link_bytes_per_s": 12_500_000.0})
    assert rate_rps([with_link(limited)]) == pytest.approx(88 / 0.76)


def test_server_cpu_is_per_answer_late_and_wrong_ones_included() -> None:
    failures = Failures(status=30, body=10, timeout=5, reset=5)
    slots = [slot(completed=900, drained=60, failures=failures, cpu_s=0.02)]
    assert server_cpu_us(slots) == pytest.approx(20.0)


def test_the_size_of_an_answer_is_a_mean_over_the_slots_that_tell_it() -> None:
    silent = slot().load.model_copy(update={"bytes": Bytes(), "by_status": {"200": 7}})
    slots = [slot(completed=900), slot(completed=10).model_copy(update={"load": silent})]
    assert answer_bytes(slots) == 249


def test_percentiles_come_from_merged_times_not_from_averages() -> None:
    fast, slow = slot(completed=9_900, median_us=100), slot(completed=100, median_us=10_000)
    p99 = metric_rule("response_p99_us").block_value([fast, slow])
    alone = Histogram.decode(slow.load.response_time_us.histogram or "").quantile(0.99)
    assert p99 is not None
    assert alone is not None
    assert p99 < alone / 2


@pytest.mark.parametrize("rule", METRICS, ids=lambda rule: rule.metric.name)
def test_without_answers_there_is_no_value(rule: MetricRule) -> None:
    assert rule.block_value([]) is None
    assert rule.block_value([slot(completed=0, cpu_s=0)]) is None
