"""Calls by gRPC whose messages are JSON, against a real server."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from load.greeter import greeter, reflecting, written
from webdyno.core.errors import UserError
from webdyno.core.load import Load
from webdyno.load.asking import Conversation
from webdyno.load.interface import GeneratorError, LoadOrder, Request, ServerResponse
from webdyno.load.loadgen import Loadgen
from webdyno.load.proto import Call, call_fault, compiled


@pytest.fixture(scope="module")
def descriptors(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("proto")
    return compiled(written(folder), folder, "a test")


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with greeter() as port:
        yield port


def call(method: str, sent: object, **headers: str) -> Request:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    path = f"/hello.Greeter/{method}"
    return Request(path, method="POST", is_call=True, json=json.dumps(sent), headers=named)


def asked(port: int, request: Request, **load: Any) -> ServerResponse:  # noqa: ANN401 (of a load)
    clients = Load(**{"protocol": "h2c", **load})
    with Conversation(f"http://127.0.0.1:{port}", clients) as conversation:
        (response,) = conversation.ask_all([request])
    return response


def test_messages_are_json_both_ways(port: int, descriptors: str) -> None:
    sent = {"name": "ann", "place": {"city": "Bern"}}
    said = asked(port, call("Say", sent), descriptors=descriptors)
    assert said.failure is None
    assert said.json is not None
    assert json.loads(said.json) == {"text": "ann", "place": {"city": "Bern"}}
    said = asked(port, call("Talk", [{"name": "ann"}, {}]), descriptors=descriptors)
    assert said.json is not None
    assert json.loads(said.json) == [{"text": "ann"}, {}]


@pytest.mark.parametrize("packs", [{"grpc_encoding": "gzip"}, {"x_packs": "yes"}])
def test_messages_may_be_compressed(port: int, descriptors: str, packs: dict[str, str]) -> None:
    request = call("Say", {"name": "ann" * 500}, grpc_accept_encoding="gzip", **packs)
    said = asked(port, request, descriptors=descriptors)
    assert said.json is not None
    assert json.loads(said.json) == {"text": "ann" * 500}
    assert (len(said.body) < 500) == ("x_packs" in packs)


def test_deadlines_and_failures_have_their_status(port: int, descriptors: str) -> None:
    late = call("Say", {"name": "slow"}, grpc_timeout="50m")
    said = asked(port, late, descriptors=descriptors)
    assert said.failure is not None
    assert "4 DEADLINE_EXCEEDED" in said.failure
    said = asked(port, call("Say", {}, x_fails="you"), descriptors=descriptors)
    assert said.failure is not None
    assert "7 PERMISSION_DENIED instead of 0 (not you)" in said.failure


def test_calls_are_a_load(port: int, descriptors: str) -> None:
    load = Load(protocol="h2c", connections=2, streams=3, descriptors=descriptors)
    requests = (call("Say", {"name": "ann"}), call("Say", {}, x_fails="you"))
    url = f"http://127.0.0.1:{port}"
    with Loadgen(()) as loadgen:
        result = loadgen.slot(LoadOrder("a slot", url, requests, load, 10.0, count=60))
    assert result.requests.completed + result.failures.total == 60
    assert result.failures.status
    assert result.failures.status == result.failures.total


@pytest.mark.parametrize("version", ["v1", "v1alpha"])
def test_servers_say_what_their_services_are(tmp_path: Path, version: str) -> None:
    with greeter(reflecting(tmp_path), version) as port:
        said = asked(port, call("Say", {"name": "ann", "place": {"city": "Bern"}}))
        assert said.json is not None
        assert json.loads(said.json) == {"text": "ann", "place": {"city": "Bern"}}
        with pytest.raises(GeneratorError, match="unrecognized field name 'nam'"):
            asked(port, call("Say", {"nam": "ann"}))
        other = Request("/hello.Other/Say", is_call=True, json='{"name": "ann"}')
        with pytest.raises(GeneratorError, match="no such symbol"):
            asked(port, other)


def test_servers_without_reflection_need_the_file(port: int) -> None:
    with pytest.raises(GeneratorError, match=r"give its \.proto file"):
        asked(port, call("Say", {"name": "ann"}))
    # The empty message is that of any method.
    assert asked(port, call("Say", {})).failure is None


def test_files_are_compiled_and_calls_checked(tmp_path: Path, descriptors: str) -> None:
    wrong = tmp_path / "wrong.proto"
    wrong.write_text('syntax = "proto3";\nmessage A { strong b = 1; }\n')
    with pytest.raises(UserError, match=r"a test: .*wrong\.proto:2:"):
        compiled(wrong, wrong.parent, "a test")
    with pytest.raises(UserError, match=r"none\.proto"):
        compiled(tmp_path / "none.proto", tmp_path, "a test")
    say = Call("/hello.Greeter/Say", '{"name": "ann"}')
    assert call_fault(descriptors, (say, Call("/hello.Greeter/Talk", None))) is None
    assert call_fault(descriptors, (say, say._replace(json='{"x": 1}'))) == (
        1,
        "unrecognized field name 'x'; hello.Request has name, place",
    )


def test_nothing_outside_is_imported(tmp_path: Path) -> None:
    inner = tmp_path / "a/b/c/d/e"
    inner.mkdir(parents=True)
    (tmp_path / "secret.proto").write_text('syntax = "proto3";\n')
    for name in ("../../../../../secret.proto", str(tmp_path / "secret.proto"), "secret.proto"):
        file = inner / "x.proto"
        file.write_text(f'syntax = "proto3";\nimport "{name}";\n')
        with pytest.raises(UserError, match=r"x\.proto:2:"):
            compiled(file, file.parent, "a test")
