"""The engine's orders and results against the committed schemas, whatever is requested."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from rig.clients import CLIENT_WAS_THE_LIMIT
from rig.nginx import running_nginx
from webdyno.core.load_result import LoadResult
from webdyno.load.engine import find_loadgen

SCHEMAS = Path(__file__).parents[2] / "loadgen/schema"
CLOSED = {"loop": "closed", "connections": 1, "timeout_s": 0.1}
OPEN = {
    "loop": "open",
    "connections": 3,
    "keepalive": 2,
    "cookies": True,
    "send_delay_budget_s": 0.001,
    "idle_connections": 2,
    "slow_readers": {"connections": 1, "bytes_per_s": 100},
    "source_addresses": ["127.0.0.5"],
    "arrivals": {"process": "poisson", "stages": [{"rate_per_s": 500, "for_s": 0.1}]},
}
RESTED = CLOSED | {"keepalive": "never", "think": {"mean_s": 0.001}}
DEAD = {"url": "http://127.0.0.1:1/", "expect": {"status": [404]}}


def schema(name: str) -> Draft202012Validator:
    """What orders or results have to look like."""
    return Draft202012Validator(json.loads((SCHEMAS / f"{name}.v2.schema.json").read_text()))


def served(line: str) -> dict[str, Any]:
    """What `loadgen serve` answers to one line."""
    done = subprocess.run(
        [find_loadgen(), "serve"], input=line + "\n", capture_output=True, text=True, check=True
    )
    result: dict[str, Any] = json.loads(done.stdout)
    return result


@pytest.mark.parametrize("load", [CLOSED, RESTED, OPEN], ids=["closed", "rested", "open"])
def test_orders_and_their_results_keep_the_schemas(url: str, load: dict[str, Any]) -> None:
    count = {} if load is OPEN else {"count": 5}
    order = {"id": "test", "requests": [{"url": f"{url}/hello.txt"}], "load": load} | count
    schema("order").validate(order)
    result = served(json.dumps(order))
    schema("result").validate(result)
    assert result["id"] == "test"
    assert result["requests"]["completed"] > 0


def test_the_result_of_a_dead_server_keeps_the_schema() -> None:
    order = {"id": "test", "requests": [DEAD], "load": CLOSED, "count": 5}
    schema("order").validate(order)
    result = served(json.dumps(order))
    schema("result").validate(result)
    assert result["failures"]["connect"] > 0
    assert result["latency_us"]["p50"] == 0
    read = LoadResult.model_validate_json(json.dumps(result)).latency_us
    assert (read.min, read.mean, read.p50, read.max) == (None, None, None, None)
    assert read.histogram == result["latency_us"]["histogram"]


@pytest.mark.parametrize("line", ["nonsense", '{"id": "x", "requests": []}'])
def test_refusals_keep_the_schema(line: str) -> None:
    refusal = served(line)
    schema("result").validate(refusal)
    assert refusal["error"]


def test_an_interrupted_result_keeps_the_schema(url: str) -> None:
    command = [str(find_loadgen()), "run", "-d", "60s", "--json", "-c", "2", f"{url}/hello.txt"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        with pytest.raises(subprocess.TimeoutExpired):
            running.wait(0.3)
        running.send_signal(signal.SIGINT)
        output, _ = running.communicate(timeout=10)
    result = json.loads(output)
    schema("result").validate(result)
    assert result["ended_by"] == "interrupt"


@pytest.fixture(scope="module")
def secure() -> Iterator[str]:
    """An nginx that speaks TLS and HTTP/2."""
    with running_nginx([max(os.sched_getaffinity(0))], tls=True) as nginx:
        yield nginx.url("/100b", tls=True)


@pytest.mark.parametrize(
    "flags",
    [("--tls-resumption", "on", "--keepalive", "never"), ("--http2", "--streams", "4")],
    ids=["resumed", "http2"],
)
def test_results_of_tls_and_http2_keep_the_schema(secure: str, flags: tuple[str, ...]) -> None:
    command = [
        str(find_loadgen()),
        "run",
        "-n",
        "5",
        "-c",
        "1",
        *("--tls-verify", "off"),
        "--json",
        *flags,
        secure,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in (0, CLIENT_WAS_THE_LIMIT), done.stderr
    result = json.loads(done.stdout)
    schema("result").validate(result)
    assert result["requests"]["completed"] == 5
    assert result["tls"]["verified"] is False
