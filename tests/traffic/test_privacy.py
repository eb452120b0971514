"""What is somebody's doesn't come through."""

import json
import re
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webdyno.core.errors import UserError
from webdyno.core.request import WrittenRequest
from webdyno.traffic.privacy import Privacy


@pytest.mark.parametrize(
    "part",
    [
        "joe@example.org",
        "joe%40example.org",
        "123e4567-e89b-12d3-a456-426614174000",
        "0123456789",
        "8f14e45fceea167a5a36dedd4bea2543",
        "kR7-9xQ1Lm_N0pQrs",
        "c5xk2p-7f8a9b0c1d2e3f40",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhbm4ifQ.x_y-z4Kq",
        "+49-170-5551234",
        "%2B49-170-5551234",
        "(0170)5551234",
        "192.168.100.200",
        "5f2b9c0d1e3a4b6c",
        "kRxQwLmNpQrsTuVwZz",
        "qwertzuiopasdfghjklyxcvbnmqwe",
    ],
)
def test_parts_that_look_personal_are_hashed_alike_but_not_the_same_each_time(part: str) -> None:
    one, other = Privacy("drop", "hash"), Privacy("drop", "hash")
    target = f"/users/{part}/photo.jpg".encode()
    assert part not in one.path(target)
    assert one.path(target) == one.path(target) != other.path(target)
    assert Privacy("drop", "keep").path(target) == target.decode()


@pytest.mark.parametrize(
    "key", ["correct-horse-battery-staple", "QwErTy", "abc123", "abcdefghijklmnop"]
)
def test_keys_are_known_by_what_is_before_them(key: str) -> None:
    assert key not in Privacy("drop", "hash").path(f"/password-reset/{key}?x=1".encode())
    assert key in Privacy("drop", "hash").path(f"/articles/{key}".encode())


def test_sessions_in_paths_are_hashed() -> None:
    privacy = Privacy("drop", "hash")
    path = privacy.path(b"/cart;jsessionid=A1B2.node7;color=red/items;sid=x")
    assert "A1B2" not in path
    assert path.startswith("/cart;jsessionid=")
    assert ";color=red/items;sid=" in path
    assert privacy.hidden == {"parts of paths that look personal": 2}


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/wp-content/a.css",
        "/how-to-upgrade-nginx-to-1-26-today",
        "/many/1999.txt",
        "/2026-11-22/ipv6-and-utf8-for-the-4th-time",
        "/assets/index-DiwrgTda9x.js",
        "/getAllUsersByAddress/v2/covid19-in-2021",
        "/a;color=red",
        "/reset/password/verify/email-address/sessions/new/share/Facebook",
        "/iPhoneSettingsPagesOfUsers",
    ],
)
def test_plain_paths_stay(path: str) -> None:
    privacy = Privacy("drop", "hash")
    assert privacy.path(path.encode()) == path
    assert not privacy.hidden


@pytest.mark.parametrize(
    ("queries", "kept"), [("drop", "/a"), ("keep", "/a?card=4111"), ("hash", None)]
)
def test_queries_are_dropped_hashed_or_kept(
    queries: Literal["drop", "hash", "keep"], kept: str | None
) -> None:
    asked = Privacy(queries, "hash").distinct_target(b"/a?card=4111").decode()
    assert asked == kept if kept else asked.startswith("/a?") and "4111" not in asked


def test_bodies_have_variables_in_the_place_of_personal_fields() -> None:
    privacy = Privacy("drop", "hash", keeps_bodies=True)
    as_form = "application/x-www-form-urlencoded"
    form = privacy.body(b"email=ann%40x.org&password=hunter2&size=M", as_form)
    assert form == b"email=${env:RECORDED_EMAIL}&password=${env:RECORDED_PASSWORD}&size=M"
    card = {"user": {"firstName": "Ann", "name": "Ann B"}, "ref": "4111 1111 1111 1111", "n": 2}
    body = json.loads(privacy.body(json.dumps(card).encode(), "application/json"))
    assert body == {
        "user": {"firstName": "${env:RECORDED_FIRSTNAME}", "name": "${env:RECORDED_NAME}"},
        "ref": "${env:RECORDED_REF}",
        "n": 2,
    }
    part = b'--x\r\nContent-Disposition: form-data; name="phone"\r\n\r\n0170\r\n--x--\r\n'
    assert b"0170" not in privacy.body(part, "multipart/form-data; boundary=x")
    names = ["EMAIL", "PASSWORD", "FIRSTNAME", "NAME", "REF", "PHONE"]
    assert privacy.variables == [f"RECORDED_{name}" for name in names]


@given(st.binary())
def test_any_target_is_a_path_that_can_be_asked_for_or_none(target: bytes) -> None:
    try:
        path = Privacy("drop", "hash").path(target)
    except (ValueError, UserError):
        return
    assert WrittenRequest(path=path).paths == [path]


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/x-www-form-urlencoded", '{"password": "hunter2"}'),
        ("Application/X-WWW-Form-Urlencoded", "password=hunter2&size=M"),
        ("application/x-www-form-urlencoded", 'payload={"password": "hunter2"}'),
        ("application/x-www-form-urlencoded", "{password: 'hunter2'}"),
        ("application/x-ndjson", '{"password": "hunter2"}\n{"size": 1}\n'),
        ("application/json", '\ufeff{"password": "hunter2"}'),
        ("application/json", '{"inner": "{\\"password\\": \\"hunter2\\"}"}'),
        ("application/json", '{"query": "{ login(password: \\"hunter2\\") { id } }"}'),
        *(
            ("application/json", f'{{"{name}": "hunter2"}}')
            for name in ("token", "pw", "csrf", "sid")
        ),
        ("text/plain", "password=hunter2\r\nsize=M\r\n"),
        ("application/xml", "<login><password>hunter2</password></login>"),
        ("multipart/form-data; boundary=x", "--x\r\nname=password\r\n\r\nhunter2\r\n--x--\r\n"),
        (
            "multipart/form-data; boundary=x",
            '--x\r\nX: filename="a"; name="password"\r\n\r\nhunter2\r\n--x--\r\n',
        ),
    ],
)
def test_a_secret_is_found_whatever_a_body_is_said_to_be(kind: str, body: str) -> None:
    privacy = Privacy("drop", "hash", keeps_bodies=True)
    shown = privacy.body(body.encode(), kind).decode()
    assert "hunter2" not in shown
    assert re.search(r"\$\{env:\w+\}", shown)
    assert not any("HUNTER2" in name for name in privacy.variables)


def test_a_body_without_anything_personal_stays_as_it_is() -> None:
    privacy = Privacy("drop", "hash", keeps_bodies=True)
    for kind, body in (
        ("application/x-ndjson", b'{"a":1}\n\n{"b":  2}\n'),
        ("application/json", b'{"a": "time: 12:30, note = <b>x</b>"}'),
        ("text/plain", b"\xff\x00 note: see http://x/?a=1"),
        ("application/x-www-form-urlencoded", b"a=1+2&b=%7B%7D"),
    ):
        assert privacy.body(body, kind) == body
