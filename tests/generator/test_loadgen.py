"""The engine behind the generator's interface: real slots on a real server."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from webdyno.bench import Bench
from webdyno.definitions import Catalogue
from webdyno.generator import (
    Expectation,
    GeneratorError,
    Loadgen,
    LoadOrder,
    Request,
    find_loadgen,
)
from webdyno.generator.loadgen import order_json
from webdyno.model.experiment import Load
from webdyno.model.mistake import Mistake
from webdyno.stack import start_stack

SCHEMAS = Path(__file__).parents[2] / "loadgen/schema"
CPU = max(os.sched_getaffinity(0))


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real nginx with the static site."""
    catalogue = Catalogue.load()
    folder = tmp_path_factory.mktemp("nginx")
    stack, site = catalogue.stack("nginx"), catalogue.site("static")
    with start_stack(stack, {}, site, folder=folder, bench=Bench()) as running:
        yield running.url


def order(url: str, **changes: object) -> LoadOrder:
    """A short slot on a path, with the changes made to its expectation."""
    expect = Expectation(**{"status": 200} | changes)  # type: ignore[arg-type]
    return LoadOrder(
        id="a slot", requests=(Request(url, expect),), load=Load(connections=4), duration_s=0.1
    )


def test_a_slot_counts_right_answers(url: str) -> None:
    with Loadgen([CPU]) as loadgen:
        first = loadgen.slot(order(f"{url}/hello.txt", body_bytes=13))
        second = loadgen.slot(order(f"{url}/hello.txt", body_bytes=13))
    assert first.requests.completed > 0
    assert first.failures.total == 0
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
        result = loadgen.slot(order(url + path, **changes))
    assert result.failures.by_kind()[kind] > 0
    assert result.failure_samples


def test_orders_and_results_are_of_the_agreed_form(url: str) -> None:
    asked = order(f"{url}/hello.txt", body_bytes=13)
    with Loadgen([CPU]) as loadgen:
        answered = loadgen.slot(asked).model_dump(by_alias=True, mode="json")
    for name, instance in (("order", order_json(asked)), ("result", answered)):
        schema = json.loads((SCHEMAS / f"{name}.v1.schema.json").read_text())
        Draft202012Validator(schema).validate(instance)


def test_an_engine_that_dies_is_told(url: str) -> None:
    with Loadgen([CPU]) as loadgen:
        assert loadgen.pid
        os.kill(loadgen.pid, signal.SIGKILL)
        with pytest.raises(GeneratorError, match="ended unexpectedly"):
            loadgen.slot(order(url))


def test_a_refused_order_is_told() -> None:
    with Loadgen([CPU]) as loadgen, pytest.raises(GeneratorError, match="refused slot a slot"):
        loadgen.slot(order("http://127.0.0.1:99999/"))


def test_an_engine_that_is_not_there_is_a_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEBDYNO_LOADGEN", "/nowhere/loadgen")
    with pytest.raises(Mistake, match="WEBDYNO_LOADGEN"):
        find_loadgen()
