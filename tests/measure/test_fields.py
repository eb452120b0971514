"""Fields of JSON that a response has and the baseline's lacks, found in the pre-flight check."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from builders import SimulatedVariant, response
from webdyno.core.records import Response
from webdyno.measure.differences import fields_in, with_differences

JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)


def answered(body: bytes) -> Response:
    return response(SimulatedVariant()).replace(body=body, body_bytes=len(body))


def test_places_of_a_list_s_items_are_one() -> None:
    assert fields_in(b'{"items": [{"a": 1}, {"a": 2, "b": {"c": []}}]}') == {
        *("items", "items.*.a", "items.*.b", "items.*.b.c"),
    }


def test_what_is_no_json_has_no_fields() -> None:
    assert fields_in(b"<html>") == set()
    assert fields_in(b"[" * 100_000) == set()
    assert fields_in(b'"text"') == set()
    found = with_differences({"a": [answered(b"one")], "b": [answered(b'{"x": 1}')]})
    assert found["b"][0].fields_more == []
    assert found["b"][0].unlike


def test_fields_are_reported_of_those_that_differ() -> None:
    bodies = {
        "baseline": b'{"a": 1, "b": 2}',
        "head": b'{"a": 1, "c": 2}',
        "same": b'{"a": 1, "b": 2}',
    }
    found = with_differences({name: [answered(body)] for name, body in bodies.items()})
    assert found["head"][0].fields_more == ["c"]
    assert found["head"][0].fields_less == ["b"]
    assert found["same"][0].fields_more == found["baseline"][0].fields_more == []
    assert all(it.body == b"" for mine in found.values() for it in mine)


@given(JSON)
def test_any_json_has_fields_or_none(value: Any) -> None:  # noqa: ANN401
    places = fields_in(json.dumps(value).encode())
    assert bool(places) <= isinstance(value, dict | list)


def test_fields_whose_values_differ_are_reported_and_whether_they_are_times() -> None:
    bodies = {
        "baseline": b'{"at": "2026-11-29T00:00:00Z", "items": [{"id": 1}, {"id": 2}]}',
        "later": b'{"at": "2026-11-29T00:00:07Z", "items": [{"id": 1}, {"id": 2}]}',
        "other": b'{"at": "2026-11-29T00:00:07Z", "items": [{"id": 1}, {"id": 3}]}',
        "same": b'{"items": [{"id": 1}, {"id": 2}], "at": "2026-11-29T00:00:00Z"}',
    }
    found = with_differences({name: [answered(body)] for name, body in bodies.items()})
    assert (found["later"][0].fields_other, found["later"][0].others_are_times) == (["at"], True)
    other = found["other"][0]
    assert (other.fields_other, other.others_are_times) == (["at", "items.*.id"], False)
    assert found["same"][0].fields_other == []
