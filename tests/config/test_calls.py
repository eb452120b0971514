"""Messages that values make of a call, and whether they are those of its service."""

from pathlib import Path
from typing import Any

import pytest

from webdyno.config.calls import DRAWN, MOST_MESSAGES, filled_calls
from webdyno.core.errors import UserError
from webdyno.core.request import WrittenRequest
from webdyno.core.session import Values


def call(json: object, **keys: Any) -> WrittenRequest:  # noqa: ANN401 (of a request)
    return WrittenRequest.model_validate({"method": "a.B/C", "json": json, **keys})


def filled(written: WrittenRequest, **values: Any) -> list[WrittenRequest]:  # noqa: ANN401
    named = {name: Values.model_validate(its) for name, its in values.items()}
    return list(filled_calls(written, named, {"SECRET": "hidden"}))


def test_each_row_makes_a_message() -> None:
    rows = [{"name": "ann", "key": "1"}, {"name": 'b"ob', "key": "${env:SECRET}"}]
    written = call(
        {"name": "{{user.name}}", "list": ["x {{user.key}}"]},
        headers={"x-key": "{{user.key}}"},
        contains="Hello {{user.name}}",
    )
    first, second = filled(written, user={"rows": rows})
    assert first.json_ == {"name": "ann", "list": ["x 1"]}
    assert first.headers == {"x-key": "1"}
    assert second.json_ == {"name": 'b"ob', "list": ["x hidden"]}
    assert second.contains == 'Hello b"ob'


@pytest.mark.parametrize(
    ("its", "count", "first"),
    [
        ({"choose": ["a", "b"]}, 2, "a"),
        ({"counter": 7}, DRAWN, "7"),
        ({"random": [5, 5]}, DRAWN, "5"),
    ],
)
def test_values_of_other_sources(its: dict[str, Any], count: int, first: str) -> None:
    made = filled(call({"id": "{{it}}"}), it=its)
    assert (len(made), made[0].json_) == (count, {"id": first})
    assert made == filled(call({"id": "{{it}}"}), it=its)


def test_unique_values_differ() -> None:
    made = filled(call({"id": "{{it}}"}), it={"unique": True})
    assert len({str(each.json_) for each in made}) == DRAWN


def test_files_are_read_up_to_a_limit(tmp_path: Path) -> None:
    file = tmp_path / "users.csv"
    file.write_text("name\n" + "".join(f"u{number}\n" for number in range(MOST_MESSAGES + 5)))
    made = filled(call({"name": "{{user.name}}"}), user={"file": str(file)})
    assert (len(made), made[-1].json_) == (MOST_MESSAGES, {"name": f"u{MOST_MESSAGES - 1}"})


def test_what_has_no_place_is_sent_as_it_is() -> None:
    plain = call({"name": "ann"})
    assert filled(plain, user={"choose": ["x"]}) == [plain]
    other = WrittenRequest.model_validate({"path": "/{{it}}"})
    assert filled(other, it={"choose": ["x"]}) == [other]


def test_rows_of_a_file_are_data(tmp_path: Path) -> None:
    """Whoever made it doesn't choose which variables of the caller's are sent."""
    (file := tmp_path / "users.csv").write_text("name\nann\n${env:SECRET}\n")
    with pytest.raises(UserError, match=r"users\.csv: \$\{env:SECRET\} would be filled in"):
        filled(call({"name": "{{user.name}}"}), user={"file": str(file)})
