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

from webdyno.config.recording import read_recording
from webdyno.core.errors import UserError
from webdyno.core.experiment import Experiment

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
                "username": "${env:RECORDED_USERNAME}",
                "password": "${env:RECORDED_PASSWORD}",
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
    assert found.variables == ["RECORDED_USERNAME", "RECORDED_PASSWORD"]
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
    assert found.login[0]["json"] == {
        "email": "${env:RECORDED_EMAIL}",
        "password": "${env:RECORDED_PASSWORD}",
    }
    assert found.login[0]["capture"] == {"Authorization": {"json": "$.data.token"}}
    assert found.requests[0]["headers"] == {"Authorization": "Bearer {{Authorization}}"}
    assert found.requests[1]["headers"] == {"Authorization": "Basic ${env:RECORDED_AUTHORIZATION}"}


def test_what_an_answer_gave_is_captured_wherever_it_is_needed(tmp_path: Path) -> None:
    """Short numbers by their names alone; what the browser says of itself never."""
    listed = {"items": [{"id": 7, "sku": "red-9"}], "page": 2, "version": "2026.11.22"}
    order = {"data": {"order": {"id": 31, "lines": [{"id": 5}]}}}
    as_json = {"kind": "application/json", "got": [("Content-Type", "application/json")]}
    posted = {"item": 7, "many": 2, "note": {"lines": [{"item_id": "7"}, "x"]}}
    found = read_recording(
        written(
            tmp_path,
            entry("GET", "/api/items?page=2", text=json.dumps(listed), **as_json),
            entry("GET", "/api/items/7", text='{"id": 7, "stock": 2}', **as_json),
            entry(
                "POST",
                "/api/orders",
                sent={**AS_JSON, "X-Client-Version": "2026.11.22"},
                body=json.dumps(posted),
                status=201,
                text=json.dumps(order),
                **as_json,
            ),
            entry("PUT", "/api/orders/31/lines/5", sent=AS_JSON, body='{"many": 5}', **as_json),
            entry("GET", "/api/items/2"),
        )
    )
    items, item, order_step, line, other = found.requests
    assert items["path"] == "/api/items?page=2"
    assert items["capture"] == {"items": {"json": "$.items[0].id"}}
    assert item["path"] == "/api/items/{{items}}"
    assert item["capture"] == {"item": {"json": "$.id"}}
    assert json.loads(order_step["body"].replace(": {{item}}", ": 0")) == {
        "item": 0,
        "many": 2,
        "note": {"lines": [{"item_id": "{{item}}"}, "x"]},
    }
    assert order_step["headers"] == {
        "Content-Type": "application/json",
        "X-Client-Version": "2026.11.22",
    }
    assert order_step["capture"] == {
        "orders": {"json": "$.data.order.id"},
        "lines": {"json": "$.data.order.lines[0].id"},
    }
    assert line["path"] == "/api/orders/{{orders}}/lines/{{lines}}"
    assert line["json"] == {"many": 5}
    assert "headers" not in line
    assert other["path"] == "/api/items/2"


def test_links_and_redirects_are_followed_as_they_were_given(tmp_path: Path) -> None:
    page = '<a href="/books/41">Emma</a> <a href="/books/42">Persuasion</a>'
    found = read_recording(
        written(
            tmp_path,
            entry("GET", "/books", text=page),
            entry("GET", "/books/41"),
            entry("GET", "/books/42"),
            entry("POST", "/loans", status=303, got=[("Location", "http://shop.example/loans/9")]),
            entry("GET", "/loans/9"),
        )
    )
    books, first, second, loan, shown = found.requests
    assert books["capture"] == {"books": {"regex": "/books/([^\"'/?#&<>\\s\\\\]+)"}}
    assert [first["path"], second["path"]] == ["/books/{{books}}", "/books/42"]
    assert loan["capture"] == {"location": {"header": "Location"}}
    assert shown["path"] == "{{location}}"


def test_whatever_is_personal_is_a_variable(tmp_path: Path) -> None:
    posted = {
        "name": "ann",
        "user": {"lastName": "Bell", "phone": 5551234},
        "to": "+49 170 5551234",
    }
    found = read_recording(
        written(
            tmp_path,
            entry("GET", "/people?email=ann%40x.org&size=M"),
            entry("POST", "/people", sent=AS_JSON, body=json.dumps(posted)),
            entry(
                "POST",
                "/form",
                sent=AS_FORM,
                body="name=ann&product_name=Pen&card=4111111111111111",
            ),
            entry("GET", "/people", sent={"X-Api-Key": "k-123456"}),
        )
    )
    text = tomli_w.dumps({"values": found.values, "requests": found.requests})
    for personal in ("ann", "Bell", "555", "4111", "k-123456"):
        assert personal not in text
    assert found.requests[0]["path"] == "/people?email={{own.email}}&size=M"
    assert found.values == {"own": {"rows": [{"email": "${env:RECORDED_EMAIL}"}], "each": "turn"}}
    assert '"phone": ${env:RECORDED_PHONE}' in found.requests[1]["body"]
    assert found.requests[2]["form"]["product_name"] == "Pen"
    names = ["EMAIL", "NAME", "LASTNAME", "PHONE", "TO", "CARD", "X_API_KEY"]
    assert found.variables == [f"RECORDED_{name}" for name in names]
    usual = {"title": "t", "question": "q?", "site": "own"}
    variants = {"a": {"stack": "nginx"}, "b": {"stack": "nginx"}}
    assert Experiment.model_validate({**usual, "variants": variants, **tomllib.loads(text)})


def test_keys_in_paths_and_sessions_are_variables(tmp_path: Path) -> None:
    """A key may look like words: what is before it says what it is."""
    found = read_recording(
        written(
            tmp_path,
            entry("GET", "/reset/correct-horse-battery/step/new-password"),
            entry("POST", "/a", sent=AS_FORM, body="session=opensesame&size=M"),
        )
    )
    first, second = found.requests
    assert first["path"] == "/reset/{{own.reset}}/step/new-password"
    assert second["form"] == {"session": "${env:RECORDED_SESSION}", "size": "M"}
    assert found.values == {"own": {"rows": [{"reset": "${env:RECORDED_RESET}"}], "each": "turn"}}


def test_a_secret_is_found_where_no_header_names_the_kind_and_in_parameters(tmp_path: Path) -> None:
    login = entry("POST", "/login", sent=AS_FORM, body="password=hunter2&token=t-4711x")
    login["request"]["headers"] = [{"name": "Authorization", "value": 'Digest user="ann", a="b"'}]
    after = entry("GET", "/items;jsessionid=s-4711x?token=t-4711y")
    found = read_recording(written(tmp_path, login, after))
    text = tomli_w.dumps({"login": found.login, "requests": found.requests})
    assert not any(secret in text for secret in ("hunter2", "4711", "ann"))
    assert found.login[0]["form"] == {
        "password": "${env:RECORDED_PASSWORD}",
        "token": "${env:RECORDED_TOKEN}",
    }
    assert found.requests[0]["path"] == "/items;jsessionid={{own.jsessionid}}?token={{own.token}}"


@pytest.mark.parametrize(
    "body",
    [
        "x=${env:HOME}",
        "x=%24%7Benv%3AHOME%7D",
        r'x={"password":"p","a":"\u0024{env:HOME}"}',
    ],
)
def test_who_recorded_names_no_variable_of_yours(tmp_path: Path, body: str) -> None:
    entries = entry("GET", "/"), entry("POST", "/x", sent=AS_FORM, body=body)
    with pytest.raises(UserError, match=r"\$\{env:HOME\} would be filled in by yours"):
        read_recording(written(tmp_path, *entries))


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
