"""Where users' values come from."""

from typing import Any

import pytest

from webdyno.core.session import Values


@pytest.mark.parametrize(
    "its",
    [
        {"choose": ["a"]},
        {"counter": 1},
        {"random": [1, 2]},
        {"unique": True},
        {"rows": [{"name": "ann"}], "each": "turn"},
    ],
)
def test_values_are_read_as_a_run_keeps_them(its: dict[str, Any]) -> None:
    values = Values.model_validate(its)
    assert Values.model_validate(values.model_dump(mode="json")) == values
