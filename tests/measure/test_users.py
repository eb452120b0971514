"""What users send: values where the text says, as their place needs."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from webdyno.config import Catalogue
from webdyno.core.experiment import Experiment
from webdyno.core.load import Load
from webdyno.core.request import WrittenRequest, parts_of
from webdyno.core.session import Values
from webdyno.load.interface import LoadOrder, Users
from webdyno.load.loadgen import order_json
from webdyno.load.split_and_merge import split_order
from webdyno.measure.planned import engine_values, planned_requests, planned_users

ENVIRONMENT = {"PW": "a&b"}
VARIANTS = {"a": {"stack": "nginx"}, "b": {"stack": "nginx"}}
LOGIN = [
    {"path": "/login", "capture": {"csrf": {"css": "input"}}},
    {"path": "/login", "method": "POST", "form": {"n": "{{user.name}}", "csrf": "{{csrf}}"}},
]


def experiment(**keys: Any) -> Experiment:  # noqa: ANN401 (TOML)
    usual = {"title": "t", "question": "q?", "site": "static", "variants": VARIANTS}
    return Experiment.model_validate({**usual, **keys})


def test_forms_are_encoded_all_but_places() -> None:
    form = {"a b": "{{x}}", "p": "${env:PW}{{ y }} é"}
    request = WrittenRequest.model_validate({"path": "/", "method": "POST", "form": form})
    assert request.content(ENVIRONMENT) == b"a%20b={{x}}&p=a%26b{{y}}%20%C3%A9"


def test_places_are_given_as_they_are_written() -> None:
    reported = {"path": "{{next}}&a", "method": "POST", "json": {"a": "{{ b }}"}}
    request = WrittenRequest.model_validate(reported)
    (asked,) = planned_requests([request], Load(), Catalogue.load().site("own"), {})
    order = LoadOrder("x", "http://h", (asked,), Load(), 1.0, users=Users((), {}))
    (sent,) = order_json(order)["requests"]
    assert (sent["url"], sent["body"]) == ("http://h{{next}}&a", '{"a": "{{ b }}"}')


def test_values_are_given_as_the_engine_has_them(tmp_path: Path) -> None:
    (tmp_path / "u.csv").write_text("name\nann\n")
    values = {
        "user": Values(file=str(tmp_path / "u.csv"), each="turn"),
        "own": Values(rows=[{"p": "${env:PW}"}]),
        "n": Values(counter=5),
        "size": Values(choose=["S"]),
        "die": Values(random=[1, 6]),
        "id": Values(unique=True),
    }
    assert engine_values(values, ENVIRONMENT) == {
        "user": {"rows": {"columns": ["name"], "rows": [["ann"]], "each": "turn"}},
        "own": {"rows": {"columns": ["p"], "rows": [["a&b"]], "each": "user"}},
        "n": {"counter": {"from": 5, "step": 1}},
        "size": {"choose": ["S"]},
        "die": {"random": {"from": 1, "to": 6}},
        "id": {"unique": {}},
    }


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"login": LOGIN}, r"POST /login: nothing gives \{\{user.name\}\}: no capture .* \[values"),
        ({"requests": [{"path": "{{next}}"}]}, r"nothing gives \{\{next\}\}"),
        ({"values": {"u": {"counter": 1, "unique": True}}}, "come from one of"),
        ({"values": {"u": {"counter": 1, "each": "turn"}}}, "each is for"),
        ({"values": {"u": {"random": [2, 1]}}}, "least, most"),
        ({"values": {"u": {"rows": [{"a": "1"}, {"b": "1"}]}}}, "the same keys"),
        (
            {
                "values": {"u": {"rows": [{"a": "1"}]}},
                "requests": [{"path": "/{{u.b}}"}],
            },
            r"\{\{u.b\}\} is no value; \[values.u\] has a",
        ),
        ({"requests": [{"path": "/", "capture": {"a": {}}}]}, "one of css"),
        ({"requests": [{"path": "/", "capture": {"a": {"json": "a"}}}]}, "pattern"),
        ({"requests": [{"path": "/{1..3}", "flow": "f"}]}, "stands for many"),
        ({"login": [{"path": "/", "flow": "f"}]}, "one flow already"),
        ({"login": [{"path": "/"}], "load": {"protocol": "h2c"}}, "HTTP/1.1 only"),
        ({"login": [{"path": "/"}], "load": {"idle_connections": 1}}, "no users"),
        ({"requests": [{"path": "/", "flow": "f"}], "load": {"zipf": 1.0}}, "zipf"),
        (
            {
                "requests": [
                    {"path": "/a", "flow": "f", "capture": {"x": {"json": "$.x"}}},
                    {"path": "/b/{{x}}", "flow": "g"},
                ]
            },
            r"/b/\{\{x\}\}: nothing gives \{\{x\}\}",
        ),
    ],
)
def test_what_users_cannot_do_is_refused(keys: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        experiment(**keys)


def test_flows_are_parts_that_a_gate_measures_alone() -> None:
    requests = [
        WrittenRequest(path="/"),
        WrittenRequest(path="/items", flow="buy"),
        WrittenRequest(path="/cart", method="POST", flow="buy"),
    ]
    assert parts_of(requests) == ["/", "buy", "buy"]
    assert parts_of(requests[1:]) == [None, None]
    both = experiment(requests=[it.model_dump() for it in requests], endpoint="buy")
    assert [it.path for it in both.selected_requests] == ["/items", "/cart"]


def test_clients_share_rows_and_numbers() -> None:
    rows = {"columns": ["n"], "rows": [[str(n)] for n in range(5)], "each": "user"}
    values = {
        "mine": {"rows": rows},
        "turn": {"rows": {**rows, "each": "turn"}},
        "n": {"counter": {"from": 10, "step": 1}},
    }
    order = LoadOrder(
        "x", "http://h", (), Load(connections=5), duration_s=1, users=Users((), values, "k")
    )
    parts = [it.users.values for it in split_order(order, 2) if it.users]
    assert [it["mine"]["rows"]["rows"][0] for it in parts] == [["0"], ["3"]]
    assert [it["turn"]["rows"]["rows"] for it in parts] == [[["0"], ["2"], ["4"]], [["1"], ["3"]]]
    assert [it["n"]["counter"] for it in parts] == [
        {"from": 10, "step": 2},
        {"from": 11, "step": 2},
    ]


def test_an_order_has_the_session_as_the_engine_takes_it() -> None:
    values = {"user": {"rows": [{"name": "ann"}]}}
    made = experiment(login=LOGIN, values=values, requests=[{"path": "/", "think_s": "1s"}])
    users = planned_users(made, made.requests, made.load, ENVIRONMENT)
    assert users is not None
    users = dataclasses.replace(users, key="key")
    asked = order_json(LoadOrder("x", "http://h", (), made.load, 1.0, users=users))["session"]
    assert asked["key"] == "key"
    assert asked["login"][0]["capture"] == {"csrf": {"css": "input"}}
    assert asked["login"][1]["body"] == "n={{user.name}}&csrf={{csrf}}"
    kind = asked["login"][1]["headers"]["Content-Type"]
    assert kind == "application/x-www-form-urlencoded"
    json.dumps(asked)
