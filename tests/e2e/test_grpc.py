"""Real gRPC servers in a run, and one that is loaded as it is."""

import sys
from pathlib import Path

import pytest

from e2e.commands import left_behind, run_rounds, webdyno, webdyno_here
from load.greeter import greeter, reflecting, written
from variants import further
from webdyno.core.records import PreflightRecord, SlotRecord
from webdyno.measure.folder import RunFolder

SERVER = """
import os
import time
from concurrent.futures import ThreadPoolExecutor
import grpc

server = grpc.server(ThreadPoolExecutor(2))
ready_s = time.monotonic() + 0.5
say = grpc.unary_unary_rpc_method_handler(lambda request, context: request)
talk = grpc.unary_stream_rpc_method_handler(lambda request, context: [request] * 3)
check = grpc.unary_unary_rpc_method_handler(
    lambda request, context: b"\\x08\\x01" if time.monotonic() > ready_s else b"\\x08\\x02"
)
server.add_generic_rpc_handlers([
    grpc.method_handlers_generic_handler("hello.Greeter", {"Say": say, "Talk": talk}),
    grpc.method_handlers_generic_handler("grpc.health.v1.Health", {"Check": check}),
])
server.add_insecure_port(f"{os.environ['HOST']}:{os.environ['PORT']}")
server.start()
server.wait_for_termination()
"""
EXPERIMENT = """
title = "gRPC"
question = "Which server costs less?"
site = "own"
load = {{ connections = 2, count = 60{load} }}
measure = {{ slot_s = 10.0, warmup_s = 0.0, slots_per_variant = 2 }}
[[requests]]
{call}
[variants.new]
stack = "cmd:{python} server.py"
{ready}
[variants.old]
stack = "cmd:{python} server.py"
{ready}
"""
AS_BYTES = """
path = "/hello.Greeter/Say"
method = "POST"
headers = { Content-Type = "application/grpc", TE = "trailers" }
body_base64 = "AAAAAAcKBWhlbGxv"
"""
AS_JSON = """
method = "hello.Greeter/Say"
json = { name = "hello" }
contains = '"text": "hello"'
"""
FILLED = """
method = "hello.Greeter/Say"
json = { name = "{{who}}" }
[values]
who = { choose = ["hello"] }
"""
PROTO = ', streams = 2, proto_file = "greeter.proto"'


def write(home: Path, call: str, *, load: str = "", ready: str = "") -> None:
    (home / "server.py").write_text(SERVER)
    written(home)
    experiment = EXPERIMENT.format(python=sys.executable, call=call, load=load, ready=ready)
    (home / "grpc.toml").write_text(experiment)


@pytest.mark.parametrize(
    ("call", "load", "ready"),
    [
        # It knows POST only, and resets the GET that asks if it is up.
        (AS_BYTES, ', streams = 2, protocol = "h2c"', ""),
        (AS_JSON, PROTO, 'ready = "grpc"'),
        further(FILLED, PROTO, 'ready = "grpc"'),
    ],
    ids=["bytes", "json", "values"],
)
def test_calls_are_compared(home: Path, call: str, load: str, ready: str) -> None:
    write(home, call, load=load, ready=ready)
    run_rounds(1, "run", "grpc.toml", "--yes", folder=home)
    records = list(RunFolder.open(home / "run").records())
    preflight = next(it for it in records if isinstance(it, PreflightRecord))
    for variant, (response,) in preflight.responses.items():
        assert (response.status, response.http_version) == (200, "HTTP/2"), variant
        assert (response.error, response.lacks) == (None, None), variant
        assert ready == "" or response.body_start == '{"text": "hello"}'
    slots = [it for it in records if isinstance(it, SlotRecord)]
    assert {it.variant for it in slots} == {"new", "old"}
    for slot in slots:
        assert slot.load.failures.total == 0, (slot.variant, slot.load.failure_samples)
        assert slot.load.requests.completed == 60, slot.variant
    assert left_behind(home) == []


@pytest.mark.parametrize(
    ("call", "load", "says"),
    [
        ('method = "hello.Greeter/Say"\njson = { nam = "x" }', PROTO, "grpc.toml:7: unrec"),
        ('method = "hello.Greeter/Sing"', PROTO, "it has Say, Talk"),
        ('method = "hello.Greeter/Say"\npath = "/x"', PROTO, "omit path"),
        ('method = "hello.Greeter/Say"\nform = { a = "b" }', PROTO, "has no form"),
        ('method = "hello.Greeter/Say"', ', protocol = "http"', '"h2c", or "h2" for TLS'),
        ('method = "hello.Greeter/Say"', ', proto_file = "no.proto"', "grpc.toml:5"),
        ('method = "hello.Greeter/Say"\njson_file = "no.json"', PROTO, "no.json"),
        ('method = "hello Greeter/Say"', PROTO, "nor one of gRPC"),
    ],
)
def test_what_is_no_call_is_refused(home: Path, call: str, load: str, says: str) -> None:
    write(home, call, load=load)
    refused = webdyno_here("run", "grpc.toml", folder=home)
    assert refused.returncode == 2
    assert says in " ".join(refused.stderr.split())


def test_one_call_is_shown_as_json(home: Path) -> None:
    file = written(home)
    with greeter(reflecting(home)) as port:
        url = f"grpc://127.0.0.1:{port}/hello.Greeter/Say"
        for more in ([], ["--proto", str(file)]):
            shown = webdyno(
                "load", url, "--once", "--message", '{"name": "ann"}', *more, folder=home
            )
            assert shown.returncode == 0, shown.stderr
            assert '"text": "ann"' in shown.stdout
            assert '"name": "ann"' in shown.stdout
        wrong = webdyno("load", url, "--message", '{"nam": "ann"}', folder=home)
        assert wrong.returncode == 2
        assert "unrecognized field name 'nam'; hello.Request has name, place" in wrong.stderr
        (home / "call.json").write_text('{"name": "ann"')
        wrong = webdyno("load", url, "--message", "@call.json", folder=home)
        assert (wrong.returncode, "line 1" in wrong.stderr) == (2, True)
        words = ("--count", "50", "--streams", "4", "--connections", "2")
        load = webdyno("load", url, *words, "--header", "x-fails: you", folder=home)
        assert load.returncode == 1
        assert "7 PERMISSION_DENIED" in load.stdout
