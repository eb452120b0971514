"""What a server says of a moved configuration names the user's file and line."""

from pathlib import Path

import pytest

from webdyno.core.service import ORIGINS, Origin, Origins
from webdyno.servers.output import refusal_words, with_origins

MINE = Origins.of("nginx.conf", [None, Origin("/me/a.conf", 7), Origin("/me/b.conf", 1)])


@pytest.mark.parametrize(
    ("said", "now"),
    [
        ("no such thing in /run/x/nginx.conf:2", "no such thing in /me/a.conf:7"),
        ("error on line 3 of /run/x/nginx.conf: no", "error on line 1 of /me/b.conf: no"),
        ("parsing [/run/x/nginx.conf:3] : no", "parsing [/me/b.conf:1] : no"),
        ("source: /run/x/nginx.conf line: 2 pos: 3", "source: /me/a.conf:7 pos: 3"),
        ("in /run/x/nginx.conf:1", "in line 1 of the moved configuration, which webdyno added"),
        ("in /run/x/nginx.conf:9", "in line 9 of the moved configuration, which webdyno added"),
    ],
)
def test_lines_of_the_moved_configuration_become_the_users(said: str, now: str) -> None:
    assert with_origins(said, "/run/x/nginx.conf", MINE) == now


def test_origins_are_kept_next_to_the_service_and_fixes_follow(tmp_path: Path) -> None:
    said = 'unknown directive "x" in /run/x/nginx.conf:2\nhost not found in upstream "y"'
    nginx = (tmp_path, Path("/run/x"), "nginx, version 1")
    assert "/run/x/nginx.conf:2" in refusal_words(said, *nginx)
    (tmp_path / ORIGINS).write_text(MINE.model_dump_json())
    first, *_, third, fourth = refusal_words(said, *nginx).split("\n")
    assert first == 'unknown directive "x" in /me/a.conf:7'
    assert "nginx, version 1" in third
    assert "--backend NAME=" in fourth
    (tmp_path / ORIGINS).write_text("{")
    assert "nginx.conf:2" in refusal_words(said, *nginx)


@pytest.mark.parametrize(
    "said",
    [
        "AH00526: Syntax error\nDocumentRoot '/app' is not a directory, or is not readable",
        "(configfile.c.2593) server.document-root is not set",
    ],
)
def test_a_missing_document_root_can_be_named(said: str, tmp_path: Path) -> None:
    assert "--root DIR" in refusal_words(said, tmp_path, Path("/run/x"), "a server")
