"""Which samples are comparable, and what is made of them."""

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connections import parse_memory
from rig.cases import CASES, over_tls
from rig.clients import CLIENTS, CannotMakeLoadError
from rig.counts import Counts
from rig.machine import split_cores
from rig.process import Finished
from rig.samples import Ratio, Sample, median_interval, missed_rate, problem_of, ratio

SMALL, CONNECT, OPEN, HTTP2 = (CASES[name] for name in ("small", "connect", "open", "http2"))


def sample(
    client: str, cpu_us: float, round_number: int = 0, *, problem: str | None = None
) -> Sample:
    completed = 1000
    return Sample(
        case="small",
        client=client,
        round=round_number,
        completed=completed,
        cpu_s=cpu_us * completed / 1e6,
        wall_s=1.0,
        served=completed,
        accepted=1,
        others=0.0,
        problem=problem,
    )


def finished(exit_code: int = 0, complaint: str = "") -> Finished:
    return Finished("", complaint, exit_code, cpu_s=1.0, wall_s=1.0, others_s=0.0, peak_bytes=0)


@pytest.mark.parametrize(
    ("counted", "served", "accepted", "expected"),
    [
        (Counts(1000, 0), 1000, 64, None),
        (Counts(1000, 0), 1064, 64, None),
        (Counts(1000, 0), 1200, 64, "it counted 1000 requests, the server 1200"),
        (Counts(1000, 0), 999, 64, "it counted 1000 requests, the server 999"),
        (Counts(1000, 2), 1002, 64, "2 requests failed"),
        (Counts(0, 0), 0, 64, "not one request was answered"),
        (Counts(1000, 0), 1000, 1000, "it opened 1000 connections; keep-alive was asked"),
    ],
)
def test_only_equal_work_is_compared(
    counted: Counts, served: int, accepted: int, expected: str | None
) -> None:
    assert problem_of(SMALL, CLIENTS["wrk"], finished(), counted, served, accepted, 1.0) == expected


def test_kept_connections_are_not_new_ones() -> None:
    found = problem_of(CONNECT, CLIENTS["wrk"], finished(), Counts(1000, 0), 1000, 64, 1.0)
    assert found == "it opened 64 connections for 1000 requests"


def test_an_open_loop_that_hardly_ran_is_not_compared() -> None:
    def found(completed: int) -> str | None:
        wrk2 = CLIENTS["wrk2"]
        return problem_of(OPEN, wrk2, finished(), Counts(completed, 0), completed, 64, 2.0)

    assert found(25) == "it made less than 90% of its rate"
    assert found(36_860) is None


def test_exit_codes() -> None:
    said = finished(3, "first\nsecond")
    good = Counts(1000, 0)
    assert problem_of(SMALL, CLIENTS["wrk"], said, good, 1000, 64, 1.0) == "exit code 3: first"
    assert problem_of(SMALL, CLIENTS["loadgen"], said, good, 1000, 64, 1.0) is None


def test_ratio_is_taken_within_rounds() -> None:
    samples = [sample("loadgen", 5, 0), sample("wrk", 10, 0)]
    samples += [sample("loadgen", 60, 1), sample("wrk", 100, 1)]
    samples += [sample("loadgen", 7, 2), sample("wrk", 10, 2)]
    samples += [sample("loadgen", 1, 3), sample("wrk", 100, 3, problem="it failed")]
    found = ratio(samples, "loadgen", "wrk")
    assert found is not None
    assert (found.median, found.low, found.high) == pytest.approx((0.6, 0.5, 0.7))
    assert found.confidence == pytest.approx(0.75)
    assert found.rounds == 3


@given(st.lists(st.floats(min_value=0.1, max_value=10), min_size=1, max_size=60))
def test_interval_holds_the_median_and_knows_its_confidence(values: list[float]) -> None:
    low, high, confidence = median_interval(values)
    assert low <= statistics.median(values) <= high
    assert (confidence >= 0.95) == (len(values) >= 6)


def test_interval_of_eleven_rounds_leaves_one_out_at_each_end() -> None:
    # 1 - 2 (1 + 11) / 2^11: the table of the sign test for n = 11
    low, high, confidence = median_interval([float(value) for value in range(11)])
    assert (low, high) == (1, 9)
    assert confidence == pytest.approx(0.98828125)


@pytest.mark.parametrize(
    ("low", "high", "confidence", "verdict"),
    [
        (0.60, 0.79, 0.98, "reached"),
        (0.81, 0.95, 0.98, "missed"),
        (0.61, 0.86, 0.98, "inconclusive"),
        (0.60, 0.79, 0.94, "inconclusive: too few rounds"),
    ],
)
def test_only_the_whole_interval_decides(
    low: float, high: float, confidence: float, verdict: str
) -> None:
    assert Ratio((low + high) / 2, low, high, confidence, 7).verdict(0.80) == verdict


def test_no_ratio_to_what_is_absent() -> None:
    assert ratio([sample("loadgen", 5)], "loadgen", "wrk") is None


def test_missed_rate() -> None:
    assert missed_rate(SMALL, [sample("wrk", 5)], 1.0) is None
    assert missed_rate(OPEN, [sample("wrk", 5)], 1000 / 20_000) is None
    assert missed_rate(OPEN, [sample("wrk", 5)], 1000 / 19_000) == pytest.approx(19_000)


def test_sample_without_answers_costs_infinitely_much() -> None:
    empty = Sample("small", "wrk", 0, 0, 1.0, 1.0, 0, 0, 0.0, "failed")
    assert math.isinf(empty.cpu_us)


@given(st.sets(st.integers(min_value=0, max_value=255), min_size=1))
def test_cores_are_shared_only_when_there_is_one(allowed: set[int]) -> None:
    cores = split_cores(allowed)
    assert {cores.client, *cores.server} <= allowed
    assert cores.shared == (len(allowed) == 1)
    assert 1 <= len(cores.server) <= 2


def test_memory_of_a_process() -> None:
    found = parse_memory("Name:\tloadgen\nVmHWM:\t    8112 kB\nRssAnon:\t    6016 kB\n")
    assert found is not None
    assert (found.own, found.peak) == (6016 * 1024, 8112 * 1024)


def test_memory_of_a_zombie() -> None:
    assert parse_memory("Name:\tloadgen\nState:\tZ (zombie)\n") is None


def test_what_clients_cannot_do() -> None:
    for name in ("wrk", "ab", "h2load"):
        with pytest.raises(CannotMakeLoadError, match="open loop"):
            CLIENTS[name].arguments(OPEN, "http://127.0.0.1:1/", 1)
    with pytest.raises(CannotMakeLoadError, match="closed loop"):
        CLIENTS["wrk2"].arguments(SMALL, "http://127.0.0.1:1/", 1)
    for name in ("wrk", "ab", "hey"):
        with pytest.raises(CannotMakeLoadError, match="HTTP/2"):
            CLIENTS[name].arguments(HTTP2, "http://127.0.0.1:1/", 1)
    with pytest.raises(CannotMakeLoadError, match="TLS"):
        CLIENTS["floor"].arguments(over_tls(SMALL), "https://127.0.0.1:1/", 1)


def test_streams_are_requests_in_flight() -> None:
    found = problem_of(HTTP2, CLIENTS["h2load"], finished(), Counts(1000, 0), 1080, 8, 1.0)
    assert found is None
