"""A real gRPC server in a run: it knows POST only, and resets the GET that asks if it is up."""

import sys
from pathlib import Path

from e2e.commands import left_behind, run_rounds
from webdyno.core.records import PreflightRecord, SlotRecord
from webdyno.measure.folder import RunFolder

SERVER = """
import os
from concurrent.futures import ThreadPoolExecutor
import grpc

server = grpc.server(ThreadPoolExecutor(2))
say = grpc.unary_unary_rpc_method_handler(lambda request, context: request)
server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("test.Echo", {"Say": say})])
server.add_insecure_port(f"{os.environ['HOST']}:{os.environ['PORT']}")
server.start()
server.wait_for_termination()
"""
EXPERIMENT = """
title = "gRPC"
question = "Which server costs less?"
site = "own"
load = {{ protocol = "h2c", connections = 2, streams = 2, count = 60 }}
measure = {{ slot_s = 10.0, warmup_s = 0.0, slots_per_variant = 2 }}
[[requests]]
path = "/test.Echo/Say"
method = "POST"
headers = {{ Content-Type = "application/grpc", TE = "trailers" }}
body_base64 = "AAAAAAVoZWxsbw=="
[variants.new]
stack = "cmd:{python} server.py"
[variants.old]
stack = "cmd:{python} server.py"
"""


def test_calls_are_compared(home: Path) -> None:
    (home / "server.py").write_text(SERVER)
    (home / "grpc.toml").write_text(EXPERIMENT.format(python=sys.executable))
    run_rounds(1, "run", "grpc.toml", "--yes", folder=home)
    records = RunFolder.open(home / "run").records()
    preflight = next(it for it in records if isinstance(it, PreflightRecord))
    for variant, (response,) in preflight.responses.items():
        assert (response.status, response.http_version) == (200, "HTTP/2"), variant
    slots = [it for it in records if isinstance(it, SlotRecord)]
    assert {it.variant for it in slots} == {"new", "old"}
    for slot in slots:
        assert slot.load.failures.total == 0, (slot.variant, slot.load.failure_samples)
        assert slot.load.requests.completed == 60, slot.variant
    assert left_behind(home) == []
