"""Messages that values make of a call, and whether they are those of its service."""

import json
from pathlib import Path
from typing import Any

import pytest

from webdyno.config.calls import DRAWN, MOST_MESSAGES, filled_json, values_of_call
from webdyno.core.request import WrittenRequest
from webdyno.core.session import Values


def call(json: object, **keys: Any) -> WrittenRequest:  # noqa: ANN401 (of a request)
    return WrittenRequest.model_validate({"method": "a.B/C", "json": json, **keys})


def messages(written: WrittenRequest, **values: Any) -> list[Any]:  # noqa: ANN401
    named = {name: Values.model_validate(its) for name, its in values.items()}
    each = values_of_call(written, named, {"SECRET": "hidden"})
    return [json.loads(filled_json(written.call_json or "null", its)) for its in each]


def test_each_row_makes_a_message() -> None:
    rows = [{"name": "ann", "key": "1"}, {"name": 'b"ob', "key": "${env:SECRET}"}]
    written = call({"name": "{{user.name}}", "list": ["x {{user.key}}"]})
    assert messages(written, user={"rows": rows}) == [
        {"name": "ann", "list": ["x 1"]},
        {"name": 'b"ob', "list": ["x hidden"]},
    ]


@pytest.mark.parametrize(
    ("its", "count", "first"),
    [
        ({"choose": ["a", "b"]}, 2, "a"),
        ({"counter": 7}, DRAWN, "7"),
        ({"random": [5, 5]}, DRAWN, "5"),
    ],
)
def test_values_of_other_sources(its: dict[str, Any], count: int, first: str) -> None:
    made = messages(call({"id": "{{it}}"}), it=its)
    assert (len(made), made[0]) == (count, {"id": first})
    assert made == messages(call({"id": "{{it}}"}), it=its)


def test_unique_values_differ() -> None:
    made = messages(call({"id": "{{it}}"}), it={"unique": True})
    assert len(set(map(str, made))) == DRAWN


def test_files_are_read_up_to_a_limit(tmp_path: Path) -> None:
    file = tmp_path / "users.csv"
    file.write_text("name\n" + "".join(f"u{number}\n" for number in range(MOST_MESSAGES + 5)))
    made = messages(call({"name": "{{user.name}}"}), user={"file": str(file)})
    assert (len(made), made[-1]) == (MOST_MESSAGES, {"name": f"u{MOST_MESSAGES - 1}"})


def test_what_has_no_place_is_sent_as_it_is() -> None:
    assert messages(call({"name": "ann"}), user={"choose": ["x"]}) == [{"name": "ann"}]
    assert messages(WrittenRequest(path="/{{it}}"), it={"choose": ["x"]}) == [None]
