"""The load generator against a real server of gRPC, over cleartext HTTP/2."""

import base64
import json
import struct
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest

from load.test_contract import schema, served

GONE = b"gone"
GAP_S, MESSAGES = 0.02, 5


def answer(request: bytes, context: grpc.ServicerContext) -> bytes:
    """Say what was said, or that the server is unavailable."""
    if request == GONE:
        context.abort(grpc.StatusCode.UNAVAILABLE, "back soon")
    return request


def count_up(request: bytes, _: grpc.ServicerContext) -> Iterator[bytes]:
    """Say it several times, at known times."""
    for _number in range(MESSAGES):
        time.sleep(GAP_S)
        yield request


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    server = grpc.server(ThreadPoolExecutor(2))
    methods = {
        "Say": grpc.unary_unary_rpc_method_handler(answer),
        "Repeat": grpc.unary_stream_rpc_method_handler(count_up),
        "Join": grpc.stream_unary_rpc_method_handler(lambda each, _: b"".join(each)),
        "Echo": grpc.stream_stream_rpc_method_handler(lambda each, _: each),
    }
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("test.Echo", methods)])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield f"127.0.0.1:{port}"
    server.stop(None).wait()


def request(address: str, *messages: bytes, method: str = "Say") -> dict[str, Any]:
    framed = b"".join(struct.pack(">BI", 0, len(each)) + each for each in messages)
    return {
        "url": f"http://{address}/test.Echo/{method}",
        "method": "POST",
        "headers": {"Content-Type": "application/grpc", "TE": "trailers"},
        "body": {"base64": base64.b64encode(framed).decode()},
    }


def test_calls_are_counted_by_their_status(address: str) -> None:
    load = {"loop": "closed", "connections": 2, "protocol": "http2", "streams": 3}
    requests = [
        request(address, b"hello"),
        request(address, GONE),
        request(address, b"", method="None"),
    ]
    order = {"requests": requests, "load": load, "count": 30, "sequence": [0, 1, 0, 2, 0]}
    result = served(json.dumps(order))
    schema("result").validate(result)
    assert result["grpc_by_status"] == {"0": 18, "12": 6, "14": 6}
    assert result["requests"]["completed"] == 18
    assert result["failures"]["status"] == 12
    samples = " ".join(result["failure_samples"])
    assert "grpc-status 14 UNAVAILABLE instead of 0 (back soon)" in samples
    assert "grpc-status 12 UNIMPLEMENTED instead of 0" in samples


def streamed(address: str, *messages: bytes, method: str, **load: int) -> dict[str, Any]:
    """What is reported of calls whose messages are timed."""
    asked = request(address, *messages, method=method) | {"events": "grpc"}
    load_ = {"loop": "closed", "connections": 1, "protocol": "http2", "streams": 2} | load
    result = served(json.dumps({"requests": [asked], "load": load_, "count": 10}))
    schema("result").validate(result)
    assert result["requests"]["completed"] == 10, result["failure_samples"]
    events: dict[str, Any] = result["events"]
    assert events["responses"] == events["time_to_first_us"]["count"] == 10
    return events


def test_messages_of_streams_are_timed_each(address: str) -> None:
    events = streamed(address, b"hello", method="Repeat")
    assert events["per_response"] == MESSAGES
    assert events["gap_us"]["count"] == 10 * (MESSAGES - 1)
    # A sleep never ends early: this is the least that can be true.
    assert events["time_to_first_us"]["min"] >= GAP_S * 1e6 * 0.99
    assert events["gap_us"]["mean"] >= GAP_S * 1e6 * 0.9


def test_streams_of_requests_are_sent_whole(address: str) -> None:
    assert streamed(address, b"a", b"b", b"c", method="Join")["per_response"] == 1
    assert streamed(address, b"a", b"", b"c" * 70_000, method="Echo")["per_response"] == 3
