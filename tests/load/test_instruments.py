"""Instruments of older studies behind the generator's interface: real slots on a real server."""

import os
import re
import socket

import pytest

from webdyno.core.experiment import Experiment, GeneratorName
from webdyno.core.load import Load
from webdyno.core.load_result import LoadResult
from webdyno.load.interface import (
    Expectation,
    GeneratorError,
    LoadOrder,
    Request,
    generator_fault,
    program,
)
from webdyno.load.wrk import Wrk

CPU = max(os.sched_getaffinity(0))
CLOSED = Load(connections=4)
OPEN = Load(loop="open", arrival_unit="connection", rate_per_s=40, keepalive=5, arrivals="constant")
LOADS: dict[GeneratorName, Load] = {"ab": CLOSED, "wrk": CLOSED, "httperf": OPEN}


def slot(
    name: GeneratorName,
    url: str,
    load: Load,
    body_bytes: int | None = 13,
    duration_s: float = 1.0,
    count: int | None = None,
) -> LoadResult:
    """Let an instrument load a path for a second."""
    base, _, path = url.rpartition("/")
    request = Request(f"/{path}", Expectation(200, body_bytes), headers=load.headers)
    with program(name).new([CPU]) as generator:
        order = LoadOrder("a slot", base, (request,), load, duration_s, count=count)
        return generator.slot(order)


def figures(pattern: str, text: str | None) -> list[float]:
    """Find the numbers of a line that was printed."""
    found = re.search(pattern, text or "")
    assert found, text
    return [float(group) for group in found.groups()]


def test_figures_of_ab_are_those_that_it_printed(url: str) -> None:
    result = slot("ab", f"{url}/hello.txt", CLOSED)
    requests, failed = (
        figures(rf"{label}:\s+(\d+)", result.printed)[0]
        for label in ("Complete requests", "Failed requests")
    )
    assert (result.requests.completed, result.failures.total) == (requests, 0)
    assert failed == 0
    assert [result.measured_s] == figures(r"Time taken for tests:\s+([\d.]+)", result.printed)
    assert [result.throughput_rps] == figures(r"Requests per second:\s+([\d.]+)", result.printed)
    total, body = (
        figures(rf"{what} transferred:\s+(\d+)", result.printed)[0] for what in ("Total", "HTML")
    )
    assert result.bytes.body == body
    assert result.bytes.head == total - body
    kept = figures(r"Keep-Alive requests:\s+(\d+)", result.printed)[0]
    assert result.keepalive.server_closed == requests - kept
    for percent, us in (("50", result.service_time_us.p50), ("99", result.service_time_us.p99)):
        assert us == figures(rf"{percent}%\s+(\d+)", result.printed)[0] * 1000


def test_ab_ends_after_as_many_requests_as_were_asked_for(url: str) -> None:
    result = slot("ab", f"{url}/hello.txt", CLOSED, duration_s=60, count=300)
    assert (result.requests.completed, result.failures.total) == (300, 0)
    assert result.measured_s < 60


def test_figures_of_wrk_are_those_that_it_printed(url: str) -> None:
    result = slot("wrk", f"{url}/hello.txt", CLOSED)
    requests, took_s = figures(r"(\d+) requests in ([\d.]+)s", result.printed)
    assert (result.requests.completed, result.measured_s) == (requests, took_s)
    assert [result.throughput_rps] == figures(r"Requests/sec:\s+([\d.]+)", result.printed)
    in_us, in_ms = (
        re.search(rf"50%\s+([\d.]+){unit}", result.printed or "") for unit in ("us", "ms")
    )
    reported = float(in_us[1]) if in_us else float(in_ms[1]) * 1000 if in_ms else None
    assert result.service_time_us.p50 == pytest.approx(reported), result.printed


def test_figures_of_httperf_are_those_that_it_printed(url: str) -> None:
    result = slot("httperf", f"{url}/hello.txt", OPEN)
    connections, requests, replies, took_s = figures(
        r"connections (\d+) requests (\d+) replies (\d+) test-duration ([\d.]+) s", result.printed
    )
    assert (result.connections.opened, result.requests.completed) == (connections, replies)
    assert (connections, requests) == (40, 200)
    assert result.measured_s == took_s
    assert [result.throughput_rps] == figures(r"Request rate: ([\d.]+) req/s", result.printed)
    (latency_ms,) = figures(r"response ([\d.]+) transfer", result.printed)
    assert result.service_time_us.mean == pytest.approx(latency_ms * 1000)
    assert result.offered_rps == 200


@pytest.mark.parametrize("test", ["ping_mbulk", "set", "get", "incr", "lpush", "lpop"])
def test_figures_of_redis_benchmark_are_those_that_it_printed(test: str, redis_url: str) -> None:
    result = slot("redis-benchmark", f"{redis_url}/{test}", CLOSED, duration_s=0.02)
    requests, took_s = figures(r"(\d+) requests completed in ([\d.]+) sec", result.printed)
    assert (result.requests.completed, result.measured_s) == (requests, took_s)
    assert requests == 2000
    assert [result.throughput_rps] == figures(
        r"summary: ([\d.]+) requests per second", result.printed
    )
    (median_ms,) = figures(r"\n50\.000% <= ([\d.]+) millis", result.printed)
    assert result.service_time_us.p50 == median_ms * 1000
    assert result.failures.status is None
    assert result.requests.sent is None


def test_redis_benchmark_pops_what_there_is_and_gets_what_was_set(redis_url: str) -> None:
    host, port = redis_url.removeprefix("redis://").split(":")
    with socket.create_connection((host, int(port))) as connection:
        for command in (b"LPOP mylist", b"GET key:__rand_int__"):
            connection.sendall(command + b"\r\n")
            assert connection.recv(100).startswith(b"$3\r\n")


@pytest.mark.parametrize("name", LOADS)
def test_what_is_not_reported_is_absent_and_not_zero(name: GeneratorName, url: str) -> None:
    result = slot(name, f"{url}/hello.txt", LOADS[name])
    assert result.requests.sent is None
    assert result.failures.truncated is None
    assert result.connections.reused_requests is None
    assert result.latency_us.histogram is None
    assert result.send_delay_us.p99 is None
    assert result.loop == LOADS[name].loop
    assert result.client.cpu_user_s + result.client.cpu_sys_s > 0
    assert 0 < result.client.busy <= 1


@pytest.mark.parametrize("name", LOADS)
def test_error_pages_are_no_valid_answers(name: GeneratorName, url: str) -> None:
    result = slot(name, f"{url}/missing.txt", LOADS[name], body_bytes=None)
    assert result.requests.completed == 0
    assert (result.failures.status or 0) > 0


def test_ab_shows_a_body_of_another_length_than_the_sites(url: str) -> None:
    result = slot("ab", f"{url}/100.txt", CLOSED, body_bytes=13)
    assert result.requests.completed == 0
    assert (result.failures.body or 0) > 0


def test_what_ab_completes_without_a_server_is_no_answer() -> None:
    result = slot("ab", "http://127.0.0.1:1/", CLOSED)
    assert result.throughput_rps > 0  # as ab prints it
    assert result.requests.completed == 0
    assert (result.failures.reset or 0) > 0


def test_an_instrument_without_a_result_is_reported_in_its_own_words() -> None:
    with pytest.raises(GeneratorError, match=r"wrk gave no result .*refused"):
        slot("wrk", "http://127.0.0.1:1/", CLOSED)


@pytest.mark.parametrize("name", ["loadgen", "redis-benchmark", *LOADS])
def test_versions_are_reported(name: GeneratorName) -> None:
    assert re.match(rf"{name} \d+\.", program(name).version())


@pytest.mark.parametrize("name", ["redis-benchmark", *LOADS])
def test_each_has_biases(name: GeneratorName) -> None:
    assert program(name).biases


@pytest.mark.parametrize(
    ("name", "load", "reported"),
    [
        ("ab", OPEN, "closed loop only"),
        ("wrk", Load(keepalive=5), "requests per connection"),
        ("httperf", CLOSED, "opens connections at a rate"),
        ("ab", Load(paths=["/a", "/b"]), "one path only"),
        ("wrk", Load(idle_connections=3), "idle_connections"),
        ("wrk", Load(kernel_times=True), "kernel_times"),
        ("ab", Load(connection_ramp_s=1), "connection_ramp_s"),
        (
            "httperf",
            Load(loop="open", rate_per_s=9, arrival_unit="connection", keepalive=1, burst=3),
            "burst",
        ),
        (
            "httperf",
            Load(
                loop="open",
                rate_per_s=9,
                arrival_unit="connection",
                keepalive=1,
                send_delay_budget_s=0.001,
            ),
            "send_delay_budget_s",
        ),
        ("wrk", Load(count=100), "after a time, not after a number"),
        ("ab", Load(count=3, connections=4), "can't share 3 requests out among 4"),
    ],
)
def test_loads_that_an_instrument_cannot_make_are_refused(
    name: GeneratorName, load: Load, reported: str
) -> None:
    data = {"title": "", "question": "", "site": "static", "generator": name, "load": load}
    variants = {"a": {"stack": "nginx"}, "b": {"stack": "nginx"}}
    fault = generator_fault(Experiment.model_validate(data | {"variants": variants}))
    assert fault is not None
    assert reported in fault


def test_percentiles_cannot_decide_without_a_distribution() -> None:
    data = {"title": "", "question": "", "site": "static", "generator": "ab"}
    variants = {"a": {"stack": "nginx"}, "b": {"stack": "nginx"}}
    measure = {"decide_on": "latency_p99_us"}
    experiment = Experiment.model_validate(data | {"variants": variants, "measure": measure})
    assert "doesn't report the distribution" in (generator_fault(experiment) or "")


@pytest.mark.parametrize("name", ["ab", "wrk"])
def test_a_ramp_up_that_would_not_be_excluded_is_refused(name: str) -> None:
    variants = {variant: {"stack": "nginx"} for variant in "ab"}
    data = {
        "title": "t",
        "question": "q",
        "site": "static",
        "variants": variants,
        "generator": name,
    }
    asked = Experiment.model_validate(data | {"measure": {"ramp_up_s": 0.1}})
    assert "ramp_up_s would change nothing" in (generator_fault(asked) or "")
    none = Experiment.model_validate(data | {"measure": {"ramp_up_s": 0}})
    assert generator_fault(none) is None


def test_threads_of_wrk_share_connections_evenly() -> None:
    order = LoadOrder(
        "a slot", "http://127.0.0.1", (Request("/", Expectation(200)),), Load(connections=9), 1.0
    )
    words = Wrk().command(order, cpus=4)
    assert words[words.index("-t") + 1] == "3"
