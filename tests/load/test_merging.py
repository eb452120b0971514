"""What several clients report of one slot, as the report of a single one."""

import os
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from math import ceil
from typing import Any, Literal

import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given, settings
from hypothesis import strategies as st

from webdyno.core.histogram import Histogram, merge
from webdyno.core.load import Load
from webdyno.core.load_result import (
    Bytes,
    Client,
    Connections,
    EndpointResult,
    Failures,
    IdleConnections,
    KeepAliveResult,
    LoadResult,
    Requests,
    SendDelay,
    Times,
    TlsUse,
    Whole,
    Window,
)
from webdyno.core.replay import Stretch
from webdyno.load.engine import find_loadgen
from webdyno.load.interface import Expectation, LoadOrder, Request
from webdyno.load.loadgen import Loadgen
from webdyno.load.split_and_merge import merged_results, split_order

PERCENTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99_9": 0.999}
CPUS = sorted(os.sched_getaffinity(0))


def times(us: list[int]) -> Times:
    """A distribution as the engine reports it, but for percentiles; 0 where there are no times."""
    histogram = HdrHistogram(1, 3_600_000_000, 3)
    for each in us:
        histogram.record_value(each)
    encoded: bytes = histogram.encode()
    return Times(
        min=min(us, default=0),
        mean=sum(us) / max(len(us), 1),
        p50=1.0,
        p90=1.0,
        p99=1.0,
        p99_9=1.0,
        max=max(us, default=0),
        histogram=encoded.decode(),
    )


def result(us: list[int], failed: int = 0, **changes: object) -> LoadResult:
    """A client's result with such latency, one window for each hundred of them."""
    done = len(us)
    windows = [
        Window(at_s=float(nth), length_s=1.0, completed=len(us[begin : begin + 100]), cpu_s=0.25)
        for nth, begin in enumerate(range(0, done, 100))
    ]
    failures = Failures(connect=0, timeout=failed, reset=0, truncated=0, malformed=0, status=0)
    by_status = {"200": done, "500": failed} if failed else {"200": done}
    used = Connections(opened=4, reused_requests=done)
    known: dict[str, Any] = {
        "target": "http://127.0.0.1:1",
        "loop": "open",
        "measured_s": 2.0,
        "drain_s": 0.1,
        "requests": Requests(sent=done + failed, completed=done, unanswered=0),
        "by_status": by_status,
        "failures": failures,
        "failure_samples": [f"{failed} failed"] if failed else [],
        "bytes": Bytes(head=done * 30, body=done * 100),
        "connections": used,
        "keepalive": KeepAliveResult(requested="always", server_closed=1),
        "throughput_rps": done / 2.0,
        "offered_rps": 500.0,
        "latency_us": times(us),
        "send_delay_us": SendDelay(p50=1.0, p99=float(failed), max=float(done)),
        "client": Client(threads=2, cpu_user_s=0.5, cpu_sys_s=1.0, busy=0.5, wake_ups=10),
        "windows": windows,
        "whole": Whole(
            length_s=2.1,
            sent=done + failed,
            completed=done,
            by_status=by_status,
            failures=failures,
            bytes=Bytes(head=done * 30, body=done * 100),
            connections=used,
            server_closed=1,
            retried=failed,
        ),
        "endpoints": [
            EndpointResult(
                endpoint="all",
                completed=done,
                failed=failed,
                throughput_rps=done / 2.0,
                latency_us=times(us),
            )
        ],
    }
    return LoadResult(**known | changes)


all_times = st.lists(st.integers(1, 3_600_000_000), max_size=300)


@st.composite
def clients(draw: st.DrawFn) -> list[list[int]]:
    """Times of all responses, dealt out to two clients or more; some may have none."""
    us = draw(all_times)
    cuts = sorted(draw(st.lists(st.integers(0, len(us)), min_size=1, max_size=4)))
    return [us[begin:end] for begin, end in pairwise([0, *cuts, len(us)])]


@given(clients())
@settings(max_examples=60, deadline=None)
def test_the_times_of_parts_are_those_of_one_client(parts: list[list[int]]) -> None:
    us = sorted(time for part in parts for time in part)
    found = merged_results([result(part) for part in parts])
    alone = Histogram.decode(times(us).histogram or "")
    for reported in (found.latency_us, found.endpoints[0].latency_us):
        together = Histogram.decode(reported.histogram or "")
        assert (together.low == alone.low).all()
        assert (together.width == alone.width).all()
        assert (together.counts == alone.counts).all()
        assert (reported.min, reported.max) == (min(us, default=0), max(us, default=0))
        assert reported.mean == pytest.approx(sum(us) / max(len(us), 1))
        for name, share in PERCENTILES.items() if us else []:
            exact = us[ceil(round(share * len(us), 6)) - 1]
            # The end of the bucket with the time at that place in their order.
            reference = HdrHistogram(1, 3_600_000_000, 3)
            assert getattr(reported, name) == min(
                reference.get_highest_equivalent_value(exact), us[-1]
            )


@given(clients(), st.lists(st.integers(0, 50), min_size=5, max_size=5))
@settings(max_examples=30, deadline=None)
def test_counts_add_up_exactly(parts: list[list[int]], failed: list[int]) -> None:
    results = [result(us, failures) for us, failures in zip(parts, failed, strict=False)]
    done, wrong = sum(map(len, parts)), sum(failed[: len(parts)])
    found = merged_results(results)
    assert (found.requests.sent, found.requests.completed) == (done + wrong, done)
    for reported in (found, found.all_of_it):
        assert reported.by_status.get("200") == done
        assert reported.by_status.get("500", 0) == reported.failures.timeout == wrong
        assert reported.failures.body is None
        assert reported.bytes == Bytes(head=done * 30, body=done * 100)
        assert reported.connections == Connections(opened=4 * len(parts), reused_requests=done)
    assert found.all_of_it.sent == done + wrong
    assert found.all_of_it.retried == wrong
    assert (found.keepalive.server_closed, found.all_of_it.server_closed) == (len(parts),) * 2
    assert sum(window.completed for window in found.windows) == done
    assert (found.endpoints[0].completed, found.endpoints[0].failed) == (done, wrong)
    assert found.throughput_rps == pytest.approx(done / 2.0)
    assert found.offered_rps == 500.0 * len(parts)
    assert LoadResult.model_validate(found.model_dump()) == found


def test_what_cannot_be_added_is_reported_of_the_worst_client() -> None:
    weak = Client(
        threads=1,
        cpu_user_s=1.0,
        cpu_sys_s=2.0,
        busy=0.9,
        stalled_s=0.5,
        stalled_windows=1,
        excluded_windows=1,
        wake_ups=5,
    )
    still = [
        Window(at_s=0.0, length_s=1.0, completed=1, failed=4, cpu_s=0.5, stalled=True),
        Window(at_s=1.0, length_s=0.5, completed=2, cpu_s=0.5),
    ]
    lag = SendDelay(budget=100.0, p50=2.0, p99=3.0, max=4.0)
    found = merged_results(
        [result([5] * 3, client=weak, windows=still, send_delay_us=lag), result([5] * 9)]
    )
    assert found.client == weak.model_copy(
        update={"threads": 3, "cpu_user_s": 1.5, "cpu_sys_s": 3.0, "wake_ups": 15}
    )
    assert found.send_delay_us == SendDelay(budget=100.0, p50=2.0, p99=3.0, max=9.0)
    first, second = found.windows
    assert (first.completed, first.failed, first.cpu_s, first.stalled) == (10, 4, 0.75, True)
    assert (second.completed, second.length_s, second.stalled) == (2, 0.5, False)
    assert found.measured_s == 2.0


def test_what_only_some_clients_had_to_do_is_theirs() -> None:
    idle, tls = (
        IdleConnections(requested=1, held=1),
        TlsUse(full_handshakes=2, resumed_handshakes=3),
    )
    found = merged_results(
        [result([1], idle_connections=idle, tls=tls), result([1], tls=tls), result([1])]
    )
    assert found.idle_connections == idle
    assert found.tls == TlsUse(full_handshakes=4, resumed_handshakes=6)


def test_what_one_client_cannot_report_is_known_of_none() -> None:
    plain = result([3], latency_us=Times(min=3.0, mean=3.0, p50=3.0, max=4.0), whole=None)
    silent = result([2], requests=Requests(completed=1), latency_us=Times(), whole=None)
    assert merged_results([plain, plain]).latency_us == Times(min=3.0, max=4.0)
    found = merged_results([plain, silent])
    assert found.latency_us == Times()
    assert (found.requests.sent, found.requests.completed, found.whole) == (None, 2, None)


def test_examples_of_failures_are_few_and_each_is_reported_once() -> None:
    texts = [[f"failure {number}" for number in range(first, first + 4)] for first in (0, 2)]
    found = merged_results([result([1], failure_samples=samples) for samples in texts])
    assert found.failure_samples == [f"failure {number}" for number in range(5)]


def test_one_result_is_itself_and_none_is_an_error() -> None:
    alone = result([1, 2, 3])
    assert merged_results([alone]) is alone
    with pytest.raises(ValueError, match="no result"):
        merged_results([])


@pytest.fixture(scope="module")
def null_server() -> Iterator[str]:
    """The URL of the cheapest server."""
    command = [str(find_loadgen()), "null-server", "--cpus", str(CPUS[0])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield server.stdout.readline().strip().rstrip("/")
        server.kill()


@pytest.mark.parametrize("arrivals", ["constant", "poisson"])
def test_two_engines_ask_what_one_timetable_has(
    null_server: str, arrivals: Literal["constant", "poisson"]
) -> None:
    due = 10_000
    load = Load(loop="open", rate_per_s=10_000, arrivals=arrivals, connections=15)
    request = Request("/", Expectation(200, 100), endpoint="null")
    # The timetable's end ends it, after a second: on a busy machine, too, all of it is sent.
    order = LoadOrder("a slot", null_server, (request,), load, duration_s=60.0, count=due)
    with Loadgen(CPUS[-1:]) as one, Loadgen(CPUS[-1:]) as other, ThreadPoolExecutor() as threads:
        parts = list(threads.map(Loadgen.slot, [one, other], split_order(order, 2)))
    found = merged_results(parts)
    sent = [it.requests.sent or 0 for it in parts]
    assert sum(sent) == found.requests.sent == found.requests.completed == due
    assert sent == [due // 2] * 2 if arrivals == "constant" else abs(sent[0] - due / 2) < 300
    assert found.failures.total == 0
    assert (found.connections.opened, found.offered_rps) == (15, 10_000)
    decoded = [Histogram.decode(it.latency_us.histogram or "") for it in [*parts, found]]
    merged, together = merge(decoded[:2]), decoded[2]
    assert (merged.low == together.low).all()
    assert (merged.counts == together.counts).all()
    assert found.endpoints[0].completed == together.total
    assert (found.latency_us.p50 or 0) <= (found.latency_us.max or 0)


def test_engines_that_share_a_replay_ask_all_of_it_and_end_together(null_server: str) -> None:
    stretch = Stretch([0.0, 0.01, 0.02, 0.05, 0.6], [0, 1, 0, 1, 0])
    requests = tuple(Request(f"/{name}", Expectation(200, 100)) for name in ("a", "b"))
    load = Load(loop="open", rate_per_s=10, connections=4)
    order = LoadOrder("a slot", null_server, requests, load, duration_s=0.5, replay=stretch)
    with Loadgen(CPUS[-1:]) as engine:
        parts = [engine.slot(part) for part in split_order(order, 2)]
    assert [it.requests.completed for it in parts] == [2, 2]
    # Without something due after the end, the load would end with its last request.
    assert [it.measured_s for it in parts] == pytest.approx([0.5, 0.5])
    assert merged_results(parts).offered_rps == 8.0
