"""What is somebody's doesn't come through."""

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
    ],
)
def test_parts_that_look_personal_are_hashed_alike_but_not_the_same_each_time(part: str) -> None:
    one, other = Privacy("drop", "hash"), Privacy("drop", "hash")
    target = f"/users/{part}/photo.jpg".encode()
    assert part not in one.path(target)
    assert one.path(target) == one.path(target) != other.path(target)
    assert Privacy("drop", "keep").path(target) == target.decode()


@pytest.mark.parametrize(
    "path", ["/", "/wp-content/a.css", "/how-to-upgrade-nginx-to-1-26-today", "/many/1999.txt"]
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


@given(st.binary())
def test_any_target_is_a_path_that_can_be_asked_for_or_none(target: bytes) -> None:
    try:
        path = Privacy("drop", "hash").path(target)
    except (ValueError, UserError):
        return
    assert Request(path=path).paths == [path]
