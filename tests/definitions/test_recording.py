"""A browser's recording as a login and a flow: tokens found, what is personal hidden."""

import html
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from hypothesis import given, settings
from hypothesis import strategies as st

from webdyno.definitions.recording import read_recording
from webdyno.model.errors import UserError
from webdyno.model.experiment import Experiment

GIVEN = 't7&"x+/=='
FORM = f'<form><input type="hidden" name="csrf" value="{html.escape(GIVEN)}"></form>'


def entry(method: str, path: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401 (JSON)
    """One entry of a HAR file."""
    sent = more.get("sent", {})
    body = more.get("body", "")
    return {
        "request": {
            "method": method,
            "url": f"http://shop.example{path}",
            "headers": [{"name": name, "value": value} for name, value in sent.items()],
            **({"postData": {"mimeType": sent["Content-Type"], "text": body}} if body else {}),
        },
        "response": {
            "status": more.get("status", 200),
            "headers": [{"name": name, "value": it} for name, it in more.get("got", [])],
            "content": {"mimeType": more.get("kind", "text/html"), "text": more.get("text", "")},
        },
    }


def written(folder: Path, *entries: dict[str, Any]) -> Path:
    (folder / "a.har").write_text(json.dumps({"log": {"entries": entries}}))
    return folder / "a.har"


AS_FORM = {"Content-Type": "application/x-www-form-urlencoded", "Cookie": "session=private"}
AS_JSON = {"Content-Type": "application/json", "User-Agent": "Mozilla", "Accept": "*/*"}
CREDENTIALS = "csrf=t7%26%22x%2B%2F%3D%3D&username=ann%40x.org&password=hunter2&next=%2F"


def test_a_form_and_a_flow_are_found(tmp_path: Path) -> None:
    found = read_recording(
        written(
            tmp_path,
            entry("GET", "/login", text=FORM),
            entry("GET", "/logo.png", kind="image/png"),
            entry("POST", "/login", sent=AS_FORM, body=CREDENTIALS, status=302),
            entry("GET", "/items", text='{"items": [{"id": "it-4711x"}]}', kind="application/json"),
            entry(
                "POST",
                "/cart",
                sent={**AS_JSON, "X-Kind": "a"},
                body='{"item": "it-4711x", "many": 2}',
                status=201,
                got=[("X-Order", "/orders/99123")],
            ),
            entry("GET", "/pay?order=%2Forders%2F99123&a=b"),
        )
    )
    assert found.login == [
        {"path": "/login", "method": "GET", "capture": {"csrf": {"css": 'input[name="csrf"]'}}},
        {
            "path": "/login",
            "method": "POST",
            "form": {
                "csrf": "{{csrf}}",
                "username": "${env:USERNAME}",
                "password": "${env:PASSWORD}",
                "next": "/",
            },
            "status": 302,
        },
    ]
    items, cart, pay = found.requests
    assert items["capture"] == {"item": {"json": "$.items[0].id"}}
    assert cart["json"] == {"item": "{{item}}", "many": 2}
    assert cart["headers"] == {"X-Kind": "a"}
    assert cart["capture"] == {"order": {"header": "X-Order"}}
    assert pay["path"] == "/pay?order={{order}}&a=b"
    assert found.variables == ["USERNAME", "PASSWORD"]
    text = tomli_w.dumps({"login": found.login, "requests": found.requests})
    assert "hunter2" not in text
    assert "private" not in text
    assert "ann@" not in text
    usual = {"title": "t", "question": "q?", "site": "own"}
    variants = {"a": {"stack": "nginx"}, "b": {"stack": "nginx"}}
    assert Experiment.model_validate({**usual, "variants": variants, **tomllib.loads(text)}).login


def test_a_bearer_token_comes_from_json(tmp_path: Path) -> None:
    token, asked = "eyJhbGciOiJIUzI1NiJ9.e30.x_y-z", '{"email": "a@b", "password": "hunter2"}'
    found = read_recording(
        written(
            tmp_path,
            entry(
                "POST",
                "/api/token",
                sent=AS_JSON,
                body=asked,
                text=json.dumps({"data": {"token": token}}),
                kind="application/json",
            ),
            entry("GET", "/api/me", sent={"Authorization": f"Bearer {token}"}),
            entry("GET", "/api/you", sent={"Authorization": "Basic c2VjcmV0OnNlY3JldA=="}),
        )
    )
    assert found.login[0]["json"] == {"email": "${env:EMAIL}", "password": "${env:PASSWORD}"}
    assert found.login[0]["capture"] == {"Authorization": {"json": "$.data.token"}}
    assert found.requests[0]["headers"] == {"Authorization": "Bearer {{Authorization}}"}
    assert found.requests[1]["headers"] == {"Authorization": "Basic ${env:AUTHORIZATION}"}


@pytest.mark.parametrize(
    ("entries", "says"),
    [
        ([entry("GET", "/a.css", kind="text/css")], "no pages"),
        ([entry("POST", "/login", sent=AS_FORM, body=CREDENTIALS)], "nothing follows the login"),
    ],
)
def test_what_is_no_flow_is_refused(
    tmp_path: Path, entries: list[dict[str, Any]], says: str
) -> None:
    with pytest.raises(UserError, match=says):
        read_recording(written(tmp_path, *entries))


@settings(deadline=None)
@given(
    st.text(),
    st.text(st.characters(exclude_categories=["Cs"])),
    st.recursive(st.text() | st.integers() | st.none(), lambda it: st.lists(it, max_size=3)),
)
def test_nothing_breaks_it(page: str, value: str, body: Any) -> None:  # noqa: ANN401 (JSON)
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        first = entry("GET", "/a", text=page)
        second = entry("POST", "/b", sent=AS_JSON, body=json.dumps({"x": body, "y": value}))
        assert len(read_recording(written(Path(folder), first, second)).requests) == 2
