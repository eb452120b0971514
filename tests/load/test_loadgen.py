"""The engine behind the generator's interface: real slots on a real server."""

import dataclasses
import json
import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from load.conftest import serving
from webdyno.core.errors import UserError
from webdyno.core.hiding import HIDDEN, keep_secret
from webdyno.core.load import Load, SlowReaders
from webdyno.load.engine import find_loadgen
from webdyno.load.interface import AbortRule, Expectation, GeneratorError, LoadOrder, Request
from webdyno.load.loadgen import Loadgen, _response, order_json
from webdyno.load.split_and_merge import merged_results

SCHEMAS = Path(__file__).parents[2] / "loadgen/schema"
CPU = max(os.sched_getaffinity(0))


def order(url: str, **changes: object) -> LoadOrder:
    """A short slot on a path, with the changes made to its expectation."""
    expect = Expectation(**{"status": 200} | changes)  # type: ignore[arg-type]
    base, _, path = url.rpartition("/")
    return LoadOrder("a slot", base, (Request(f"/{path}", expect),), Load(connections=4), 0.1)


def counted(url: str, **changes: object) -> LoadOrder:
    """The same, which a number of requests ends: a busy machine answers none in a short time."""
    return dataclasses.replace(order(url, **changes), duration_s=60.0, count=300)


def with_headers(asked: LoadOrder, headers: Mapping[str, str]) -> LoadOrder:
    requests = tuple(dataclasses.replace(it, headers=headers) for it in asked.requests)
    return dataclasses.replace(asked, requests=requests)


def test_a_slot_counts_right_answers(url: str) -> None:
    with Loadgen([CPU]) as loadgen:
        first = loadgen.slot(counted(f"{url}/hello.txt", body_bytes=13))
        second = loadgen.slot(counted(f"{url}/hello.txt", body_bytes=13))
    assert first.requests.completed > 0
    assert first.failures.total == 0
    assert first.requests.unanswered is not None
    assert first.requests.sent == first.requests.completed + first.requests.unanswered
    assert first.connections.opened == 4
    assert second.connections.opened == 0  # they stay open between slots


@pytest.mark.parametrize(
    ("path", "changes", "kind"),
    [
        ("/missing.txt", {}, "status"),
        ("/hello.txt", {"body_bytes": 14}, "body"),
        ("/hello.txt", {"body_sha256": "0" * 64}, "body"),
    ],
)
def test_wrong_answers_are_failures_with_an_example(
    url: str, path: str, changes: dict[str, object], kind: str
) -> None:
    with Loadgen([CPU]) as loadgen:
        result = loadgen.slot(counted(url + path, **changes))
    assert result.failures.by_kind()[kind] > 0
    assert result.failure_samples


LOADS = [
    Load(),
    Load(loop="open", rate_per_s=500, connections=8),
    Load(kernel_times=True),
    Load(loop="open", rate_per_s=500, connections=8, burst=25),
    Load(loop="open", rate_per_connection=50, connections=8, arrivals="constant", burst=2),
    Load(loop="open", rate_per_s=500, connections=8, send_delay_budget_s=0.002),
    Load(loop="open", rate_per_s=50, arrival_unit="connection", keepalive=3, arrivals="constant"),
    Load(connections=4, think_s=0.01, zipf=0.8, idle_connections=5, keepalive="never"),
    Load(connections=4, slow_readers=SlowReaders(connections=2, bytes_per_s=1000)),
]


@pytest.mark.measures  # an engine that is kept from its CPU for long finds fewer windows
@pytest.mark.parametrize("load", LOADS)
def test_every_kind_of_load_is_ordered_in_the_agreed_form_and_done(url: str, load: Load) -> None:
    asked = dataclasses.replace(order(f"{url}/hello.txt", body_bytes=13), load=load, duration_s=0.3)
    schema = json.loads((SCHEMAS / "order.v2.schema.json").read_text())
    Draft202012Validator(schema).validate(order_json(asked))
    with Loadgen([CPU]) as loadgen:
        result = loadgen.slot(asked)
    assert result.loop == load.loop
    assert result.offered_rps == load.offered_rps
    assert result.requests.completed > 0
    assert result.failures.total == 0
    assert len(result.windows) == 3
    assert sum(window.completed for window in result.windows) == result.requests.completed


def test_connections_begin_one_after_the_other_where_an_order_says_so(url: str) -> None:
    """The second of two begins after half of the ramp, which is the whole load."""
    asked = dataclasses.replace(
        order(f"{url}/hello.txt", body_bytes=13),
        load=Load(connections=2, think_s=0.001),
        duration_s=0.3,
        connection_ramp_s=0.3,
    )
    schema = json.loads((SCHEMAS / "order.v2.schema.json").read_text())
    Draft202012Validator(schema).validate(order_json(asked))
    assert order_json(asked)["load"]["connection_ramp_s"] == 0.3
    with Loadgen([CPU]) as loadgen:
        assert loadgen.slot(asked).connections.opened == 2


def test_messages_go_over_websocket() -> None:
    text = Request("/chat", message="text", body=b"hello")
    asked = dataclasses.replace(order("https://127.0.0.1:1/x"), load=Load(protocol="https"))
    asked = dataclasses.replace(asked, requests=(text, dataclasses.replace(text, message="binary")))
    said = order_json(asked)
    schema = json.loads((SCHEMAS / "order.v2.schema.json").read_text())
    Draft202012Validator(schema).validate(said)
    first, second = said["requests"]
    assert (first["url"], first["body"], "binary" in first) == (
        "wss://127.0.0.1:1/chat",
        "hello",
        False,
    )
    assert second["binary"]
    assert said["load"]["protocol"] == "websocket"


def test_requests_go_over_http3() -> None:
    load = Load(protocol="h3", streams=3, tls_verify=True)
    said = order_json(dataclasses.replace(order("https://127.0.0.1:1/x"), load=load))
    schema = json.loads((SCHEMAS / "order.v2.schema.json").read_text())
    Draft202012Validator(schema).validate(said)
    assert (said["load"]["protocol"], said["load"]["streams"]) == ("http3", 3)
    assert said["load"]["tls"]["verify"]
    with pytest.raises(ValueError, match="kernel_times: over HTTP/3"):
        Load(protocol="h3", kernel_times=True)


def test_an_overload_is_followed_until_enough_is_late(url: str) -> None:
    """More is due than any server answers; the trial ends without waiting for the timeout."""
    flood = Load(loop="open", rate_per_s=150_000, connections=4, timeout_s=3600)
    asked = dataclasses.replace(
        order(f"{url}/hello.txt"),
        load=flood,
        ramp_up_s=0.05,
        abort_rule=AbortRule(share=0.04, after_s=0.05),
    )
    schema = json.loads((SCHEMAS / "order.v2.schema.json").read_text())
    Draft202012Validator(schema).validate(order_json(asked))
    with Loadgen([CPU]) as loadgen:
        result = loadgen.slot(asked)
    assert result.gave_up
    assert merged_results([result.model_copy(update={"ended_by": "duration"}), result]).gave_up


def test_an_engine_that_dies_is_reported(url: str) -> None:
    with Loadgen([CPU]) as loadgen:
        assert loadgen.pid
        os.kill(loadgen.pid, signal.SIGKILL)
        with pytest.raises(GeneratorError, match="ended unexpectedly"):
            loadgen.slot(order(url))


def test_a_refused_order_is_reported() -> None:
    with Loadgen([CPU]) as loadgen, pytest.raises(GeneratorError, match="refused a slot"):
        loadgen.slot(order("http://127.0.0.1:99999/"))


def test_an_answer_that_is_nested_too_deeply_is_reported(url: str) -> None:
    with Loadgen([CPU]) as loadgen:
        loadgen._unread += b"[" * 100_000 + b"\n"
        with pytest.raises(GeneratorError, match="agreed form"):
            loadgen.slot(order(url))


def test_the_beginning_of_a_secret_at_the_end_of_what_the_engine_quotes_is_hidden() -> None:
    keep_secret(["Grüße-sk_live_4f9a7c2e81b35d60"])
    failure = r"it answered 403, beginning with: Gr\xc3\xbc\xc3\x9fe-sk_live_4f9a"
    answer = {"status": 0, "version": "", "headers": [], "head_bytes": 0, "failure": failure}
    answer |= {"login": True, "request": 0, "captured": {}}
    said = _response(answer, b"").failure
    assert said == f"it answered 403, beginning with: {HIDDEN}"
    assert _response(answer | {"failure": None}, b"").failure is None


def test_an_engine_that_is_not_there_is_a_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEBDYNO_LOADGEN", "/nowhere/loadgen")
    with pytest.raises(UserError, match="WEBDYNO_LOADGEN"):
        find_loadgen()


def test_headers_go_with_every_request_and_packed_bodies_are_not_held_against_the_page() -> None:
    plain = order("http://127.0.0.1/100.txt", body_bytes=100, body_sha256="0" * 64)
    whole = {"status": [200], "body_bytes": 100, "body_sha256": "0" * 64}
    for headers, expect in (
        ({}, whole),
        ({"Accept-Encoding": "identity"}, whole),
        ({"Accept-Encoding": "gzip", "Cookie": "a=1"}, {"status": [200]}),
    ):
        (request,) = order_json(with_headers(plain, headers))["requests"]
        assert request.get("headers", {}) == headers
        assert request["expect"] == expect


def test_a_slot_ends_after_as_many_requests_as_were_asked_for(url: str) -> None:
    with Loadgen([CPU]) as loadgen:
        result = loadgen.slot(counted(f"{url}/hello.txt"))
    assert (result.requests.completed, result.failures.total) == (300, 0)
    assert result.measured_s < 60
    if not result.client.stalled_windows:  # those are in no figure
        assert result.throughput_rps == pytest.approx(300 / result.measured_s, rel=0.01)


def test_answers_come_compressed_where_requests_accept_it(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with (
        serving("nginx", "static", tmp_path_factory, gzip=True) as packing,
        Loadgen([CPU]) as loadgen,
    ):
        asked = counted(f"{packing}/100KB.txt")
        plain = loadgen.slot(asked)
        packed = loadgen.slot(with_headers(asked, {"Accept-Encoding": "gzip"}))
    assert plain.failures.total == packed.failures.total == 0
    assert (plain.bytes.body or 0) / plain.requests.completed > 100_000
    assert 0 < (packed.bytes.body or 0) / packed.requests.completed < 80_000


def test_the_largest_numbers_that_a_load_may_have_are_numbers_of_the_engine() -> None:
    most = 1_000_000
    slow = SlowReaders(connections=most, bytes_per_s=4_000_000_000)
    loads = [
        Load(connections=most, keepalive=10**9, idle_connections=most, slow_readers=slow, zipf=10),
        Load(timeout_s=3600, think_s=3600),
        Load(loop="open", rate_per_s=10**8, connections=most, send_delay_budget_s=0.01),
    ]
    for load in loads:
        long = with_headers(order("http://127.0.0.1:1/"), {"Cookie": "x" * 4000})
        asked = order_json(dataclasses.replace(long, load=load))
        asked["requests"][0]["method"] = "no method"  # so that it is read, and no more
        done = subprocess.run(
            [find_loadgen(), "serve"],
            input=json.dumps(asked) + "\n",
            capture_output=True,
            text=True,
            check=True,
        )
        assert "no method" in json.loads(done.stdout)["error"]
