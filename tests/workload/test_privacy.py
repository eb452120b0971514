"""What is somebody's doesn't come through."""

import json
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webdyno.model.errors import UserError
from webdyno.model.request import Request
from webdyno.workload.privacy import Privacy


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
    ],
)
def test_parts_that_look_personal_are_hashed_alike_but_not_the_same_each_time(part: str) -> None:
    one, other = Privacy("drop", "hash"), Privacy("drop", "hash")
    target = f"/users/{part}/photo.jpg".encode()
    assert part not in one.path(target)
    assert one.path(target) == one.path(target) != other.path(target)
    assert Privacy("drop", "keep").path(target) == target.decode()


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
    asked = Privacy(queries, "hash").asked(b"/a?card=4111").decode()
    assert asked == kept if kept else asked.startswith("/a?") and "4111" not in asked


def test_bodies_have_variables_in_the_place_of_personal_fields() -> None:
    privacy = Privacy("drop", "hash", keeps_bodies=True)
    as_form = "application/x-www-form-urlencoded"
    form = privacy.body(b"email=ann%40x.org&password=hunter2&size=M", as_form)
    assert form == b"email=${env:EMAIL}&password=${env:PASSWORD}&size=M"
    card = {"user": {"firstName": "Ann", "name": "Ann B"}, "ref": "4111 1111 1111 1111", "n": 2}
    body = json.loads(privacy.body(json.dumps(card).encode(), "application/json"))
    assert body == {
        "user": {"firstName": "${env:FIRSTNAME}", "name": "${env:NAME}"},
        "ref": "${env:REF}",
        "n": 2,
    }
    part = b'--x\r\nContent-Disposition: form-data; name="phone"\r\n\r\n0170\r\n--x--\r\n'
    assert b"0170" not in privacy.body(part, "multipart/form-data; boundary=x")
    assert privacy.variables == ["EMAIL", "PASSWORD", "FIRSTNAME", "NAME", "REF", "PHONE"]


@given(st.binary())
def test_any_target_is_a_path_that_can_be_asked_for_or_none(target: bytes) -> None:
    try:
        path = Privacy("drop", "hash").path(target)
    except (ValueError, UserError):
        return
    assert Request(path=path).paths == [path]
