"""The load generator against a real server of gRPC, over cleartext HTTP/2."""

import base64
import json
import struct
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest

from load.test_contract import schema, served

GONE = b"gone"


def answer(request: bytes, context: grpc.ServicerContext) -> bytes:
    """Say what was said, or that the server is unavailable."""
    if request == GONE:
        context.abort(grpc.StatusCode.UNAVAILABLE, "back soon")
    return request


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    server = grpc.server(ThreadPoolExecutor(2))
    methods = {"Say": grpc.unary_unary_rpc_method_handler(answer)}
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("test.Echo", methods)])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield f"127.0.0.1:{port}"
    server.stop(None).wait()


def request(address: str, message: bytes, method: str = "Say") -> dict[str, Any]:
    framed = struct.pack(">BI", 0, len(message)) + message
    return {
        "url": f"http://{address}/test.Echo/{method}",
        "method": "POST",
        "headers": {"Content-Type": "application/grpc", "TE": "trailers"},
        "body": {"base64": base64.b64encode(framed).decode()},
    }


def test_calls_are_counted_by_their_status(address: str) -> None:
    load = {"loop": "closed", "connections": 2, "protocol": "http2", "streams": 3}
    requests = [request(address, b"hello"), request(address, GONE), request(address, b"", "None")]
    order = {"requests": requests, "load": load, "count": 30, "sequence": [0, 1, 0, 2, 0]}
    result = served(json.dumps(order))
    schema("result").validate(result)
    assert result["grpc_by_status"] == {"0": 18, "12": 6, "14": 6}
    assert result["requests"]["completed"] == 18
    assert result["failures"]["status"] == 12
    samples = " ".join(result["failure_samples"])
    assert "grpc-status 14 UNAVAILABLE instead of 0 (back soon)" in samples
    assert "grpc-status 12 UNIMPLEMENTED instead of 0" in samples
