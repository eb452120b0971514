"""What may differ between bodies is taken out of them, and what differs else is shown."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from webdyno.core.errors import UserError
from webdyno.core.hiding import HIDDEN, SECRETS, keep_secret
from webdyno.core.patterns import Ignored
from webdyno.core.records import Response
from webdyno.measure.differences import with_differences
from webdyno.measure.preflight import without_ignored


@pytest.mark.parametrize(
    ("body", "ignored", "left"),
    [
        (b"at 12:30, done", [r"\d\d:\d\d"], "at …, done"),
        (b'{"a": [{"id": 1, "n": 2}]}', ["$.a[*].id"], '{"a": [{"id": "…", "n": 2}]}'),
        (b'{"a": {"x": 1}, "b": 2}', ["$.a.*", "$.c.d"], '{"a": {"x": "…"}, "b": 2}'),
        (b"[1, 2]", ["$[1]"], "[1, 2]"),
        (b'{"a": [1, 2]}', ["$.a[1]"], '{"a": [1, "…"]}'),
        (b"no JSON", ["$.a"], "no JSON"),
    ],
)
def test_what_may_differ_is_taken_out(body: bytes, ignored: list[str], left: str) -> None:
    assert without_ignored(body, ignored).decode() == left


@given(st.binary())
def test_what_is_no_text_stays_as_it_is(body: bytes) -> None:
    assert without_ignored(body, ["never in there"]) == body


@pytest.mark.parametrize("wrong", ["$.a[", "$.", ""])
def test_what_cannot_be_ignored_is_reported(wrong: str) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(Ignored).validate_python([wrong])


def test_what_is_no_pattern_is_reported_where_it_is_used() -> None:
    with pytest.raises(UserError, match=r"ignore: '\(' is no regular expression"):
        without_ignored(b"a", ["("])


def test_a_secret_is_hidden_before_a_line_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the end of one that the line begins with would be shown."""
    monkeypatch.setattr(SECRETS, "known", set())
    keep_secret([token := "sk_live_4f9a7c2e81b35d60aa17e3c95b2d48f6073e1cbd92"])
    one = f"A request with the header {'x' * 60} Authorization: Bearer {token} on node 1"
    bodies = {name: [response(text.encode())] for name, text in (("a", one), ("b", f"{one}2"))}
    for line in with_differences(bodies)["b"][0].unlike:
        assert HIDDEN in line
        assert token[-8:] not in line


def response(body: bytes) -> Response:
    return Response(
        path="/",
        expected_status=200,
        expected_sha256=None,
        expected_bytes=None,
        status=200,
        body=body,
    )


def test_differences_are_lines_of_a_diff_and_bodies_are_not_kept() -> None:
    one, other = (json.dumps({"shop": "open", "items": n}).encode() for n in (1, 2))
    reported = with_differences({"a": [response(one)], "b": [response(other)], "c": []})
    assert reported["a"][0].unlike == []
    assert reported["b"][0].unlike == ['-  "items": 1', '+  "items": 2']
    assert reported["b"][0].body == b""
    assert "body" not in json.loads(response(one).model_dump_json())
    long = (b"a" * 500 + b"b" * 500, b"a" * 500 + b"c" * 500)
    lines = with_differences({"a": [response(long[0])], "b": [response(long[1])]})["b"][0].unlike
    assert [line[:2] for line in lines] == ["- ", "+ "]
    assert all("ab" in line or "ac" in line for line in lines)
    assert all(len(line) < 110 for line in lines)
