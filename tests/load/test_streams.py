"""Streamed responses against a server that notes when it wrote each event."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import pytest

from rig.truth import percentile
from webdyno.core.load import Load
from webdyno.core.load_result import Times
from webdyno.load.interface import Expectation, LoadOrder, Request
from webdyno.load.loadgen import Loadgen, order_json

STREAMER = Path(__file__).with_name("streamer.py")
FIRST_S, GAP_S, EVENTS = 0.03, 0.01, 5
SERVER_CPU, *_, CLIENT_CPU = sorted(os.sched_getaffinity(0)) * 2
BOUND_MS, BOUND_SHARE, BOUND_SHARE_OF_CALLS = 1.0, 0.01, 0.02
CALL: dict[str, Any] = {"path": "/a.Service/Call", "method": "POST", "is_call": True, "json": "{}"}


@contextmanager
def streamer(protocol: str, events: int = EVENTS) -> Iterator[tuple[str, IO[str], IO[str]]]:
    """A server on a CPU of its own: its URL, and its pipes."""
    words = [*("taskset", "-c", str(SERVER_CPU), sys.executable, str(STREAMER))]
    process = subprocess.Popen(
        [*words, *map(str, (FIRST_S, GAP_S, events)), protocol],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            port = json.loads(process.stdout.readline())["port"]
            yield f"http://127.0.0.1:{port}", process.stdin, process.stdout
        finally:
            process.stdin.close()


def assert_near(
    what: str, reported: Times, noted_s: list[float], share: float = BOUND_SHARE
) -> None:
    """Each percentile is within 1 ms + a share of what the server noted."""
    for name, percent in (("p50", 50), ("p90", 90), ("p99", 99)):
        true_ms = percentile(1e3 * np.array(noted_s), percent)
        reported_ms = getattr(reported, name) / 1e3
        error_ms = reported_ms - true_ms
        assert abs(error_ms) <= BOUND_MS + share * true_ms, (what, name, reported_ms, true_ms)


@pytest.mark.measures
@pytest.mark.parametrize(
    "load",
    [
        Load(connections=8),
        Load(loop="open", rate_per_s=100, arrivals="constant", connections=32),
        Load(loop="open", rate_per_s=100, arrivals="poisson", connections=64, kernel_times=True),
        Load(connections=2, protocol="h2c", streams=4),
        Load(
            loop="open",
            rate_per_s=100,
            arrivals="poisson",
            connections=4,
            protocol="h2c",
            streams=16,
        ),
    ],
    ids=["closed", "open", "open, random, kernel times", "gRPC, closed", "gRPC, open"],
)
def test_first_events_and_gaps_are_as_the_server_noted_them(load: Load) -> None:
    is_grpc = load.protocol == "h2c"
    request: dict[str, Any] = {
        "expect": Expectation(200),
        "events": "grpc" if is_grpc else "sse",
        **(CALL if is_grpc else {"path": "/"}),
    }
    with streamer(load.protocol) as (url, stdin, stdout):
        with Loadgen([CLIENT_CPU]) as loadgen:
            order = LoadOrder("a slot", url, (Request(**request),), load, 2.0)
            result = loadgen.slot(order)
        stdin.close()
        noted = json.loads(stdout.readline())
    events = result.events
    assert events is not None
    assert events.per_response == EVENTS
    assert events.responses > 50
    assert result.failures.total == 0
    assert_near("first event", events.time_to_first_us, noted["first_s"])
    assert_near("gap", events.gap_us, noted["gap_s"])
    assert_near("per event", events.per_event_us, noted["per_event_s"])
    # The server counts those of the drain as well.
    assert events.per_s is not None
    assert 0 < events.per_s * result.measured_s <= len(noted["first_s"]) + len(noted["gap_s"])


@pytest.mark.measures
@pytest.mark.parametrize("arrivals", ["constant", "poisson"])
def test_unary_calls_take_as_long_as_the_server_noted(arrivals: Any) -> None:  # noqa: ANN401
    load = Load(
        loop="open",
        rate_per_s=200,
        arrivals=arrivals,
        connections=4,
        protocol="h2c",
        streams=32,
    )
    with streamer("h2c", events=1) as (url, stdin, stdout):
        with Loadgen([CLIENT_CPU]) as loadgen:
            order = LoadOrder("a slot", url, (Request(**CALL),), load, 3.0)
            result = loadgen.slot(order)
        stdin.close()
        noted = json.loads(stdout.readline())
    assert result.failures.total == 0, result.failure_samples
    requests = result.requests
    assert requests.completed + requests.drained == len(noted["first_s"])
    assert_near("a call", result.latency_us, noted["first_s"], BOUND_SHARE_OF_CALLS)


def test_goodput_is_asked_of_streams_alone() -> None:
    load = Load(goodput=["ttft<1s"])
    for request, asked in [(Request("/"), None), (Request("/", events="sse"), 1.0)]:
        order = order_json(LoadOrder("a slot", "http://127.0.0.1:1", (request,), load, 1.0))
        assert order.get("goodput", {}).get("first_event_s") == asked
