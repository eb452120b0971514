"""What variants do beyond their capacity: planted overloads, and when a queue is gone."""

import pytest

from builders import load_result
from comparison.searches import Variant, searched
from webdyno.comparison import judge
from webdyno.comparison.saturation import _count_failed, settled_s
from webdyno.core.load_result import Failures, LoadResult, Requests, Window
from webdyno.core.objectives import Objective, objective
from webdyno.questions.capacity.show import back_words

RATE_RPS, WINDOW_S = 1_000.0, 0.1
OBJECTIVES = [objective("p99<50ms")]


def returning(*windows: tuple[int, int]) -> LoadResult:
    """A load of 100 requests in each window: how many were answered, and how many failed."""
    return load_result().replace(
        windows=[
            Window(at_s=n * WINDOW_S, length_s=WINDOW_S, completed=completed, failed=failed)
            for n, (completed, failed) in enumerate(windows)
        ]
    )


@pytest.mark.parametrize(
    ("windows", "settled"),
    [
        ([(100, 0)] * 10, 0.0),
        ([(0, 0), (50, 0), (150, 0), (200, 0), *[(100, 0)] * 6], 0.3),
        ([(0, 100)] * 3 + [(100, 0)] * 7, 0.3),
        ([(100, 0)] * 4 + [(99, 1)] * 6, 0.0),
        ([(50, 0)] * 10, None),
        ([(0, 100)] * 10, None),
        ([], 0.0),
    ],
    ids=["at once", "queue", "refusals", "one failure", "queue that grows", "never", "no window"],
)
def test_it_is_back_when_the_queue_is_gone_and_nothing_fails(
    windows: list[tuple[int, int]], settled: float | None
) -> None:
    assert settled_s(returning(*windows), RATE_RPS, OBJECTIVES) == (
        settled if settled is None else pytest.approx(settled)
    )


def test_requests_of_the_window_that_time_out_after_it_have_failed() -> None:
    """A server that collapsed 0.5 s after the beginning answers nothing: all 2,000 fail."""
    load = load_result().replace(
        ramp_up_s=2.0,
        measured_s=2.0,
        failures=Failures(timeout=1_500, status=20),
        requests=Requests(completed=0, unanswered=2_000, drained=20),
    )
    assert _count_failed(load, timeout_s=2.0) == 2_000
    assert _count_failed(load, timeout_s=0.5) == 1_520  # as many as were due in the ramp-up's end


def test_where_failures_alone_count_a_queue_is_none() -> None:
    only: list[Objective] = [objective("failures<1%")]
    assert settled_s(returning(*[(50, 0)] * 10), RATE_RPS, only) == 0.0


def test_what_times_out_after_the_load_is_not_back() -> None:
    """A server that answers nothing has neither responses nor failures before the timeout."""
    only: list[Objective] = [objective("failures<1%")]
    late = Requests(completed=0, unanswered=1_000)
    silent = returning(*[(0, 0)] * 10).replace(measured_s=1.0, requests=late)
    assert settled_s(silent, RATE_RPS, only) is None
    late = Requests(completed=999, unanswered=31, drained=30)
    one = returning(*[(100, 0)] * 10).replace(measured_s=1.0, requests=late)
    assert settled_s(one, RATE_RPS, only) == 0.0


def test_goodput_and_recovery_are_reported_by_multiple() -> None:
    run = searched(
        apache=Variant(15_000, beyond=0.0, back_s=None), nginx=Variant(50_000, beyond=1.0)
    )
    found = judge(run.data).overloads
    assert [(it.variant, it.times, it.rounds, it.back) for it in found] == [
        ("apache", 1.2, 4, 0),
        ("apache", 2.0, 4, 0),
        ("nginx", 1.2, 4, 4),
        ("nginx", 2.0, 4, 4),
    ]
    lost, kept = found[1], found[3]
    assert lost.goodput_rps
    assert lost.goodput_rps.most == 0
    assert lost.back_s is None
    assert kept.of_capacity
    assert kept.of_capacity.median == pytest.approx(1.0, abs=0.03)
    assert kept.back_s
    assert kept.back_s.median == pytest.approx(0.3)


def test_servers_that_die_are_reported() -> None:
    found = judge(searched(a=Variant(15_000, beyond=0.0, dies=True)).data).overloads
    assert [(it.times, it.died, it.rounds, it.back) for it in found] == [
        (1.2, 4, 4, 0),
        (2.0, 4, 4, 0),
    ]
    assert back_words(found[0]) == "it died (4 of 4)"


def test_overloads_change_no_capacity_and_no_verdict() -> None:
    with_them = judge(searched(a=Variant(15_000, beyond=0.5), b=Variant(50_000, beyond=0.5)).data)
    without = judge(searched(a=Variant(15_000), b=Variant(50_000)).data)
    assert with_them.comparisons == without.comparisons
    assert with_them.warnings == without.warnings
    assert not without.overloads
