"""Positions in TOML files."""

import os
from pathlib import Path

import pytest

from webdyno.config.reading import TomlFile
from webdyno.core.errors import UserError

TEXT = """\
# a comment
title = "x"
load.paths = [
    "/a",  # first
    "/b",
]

[variants.nginx]
stack = "nginx"
settings = { workers = 1, "quoted key" = 2 }

[[steps]]
run = "a"

[[steps]]
run = "b"
"""


@pytest.mark.parametrize(
    ("where", "line"),
    [
        (("title",), 2),
        (("load",), 3),
        (("load", "paths"), 3),
        (("load", "paths", 1), 5),
        (("variants",), 8),
        (("variants", "nginx"), 8),
        (("variants", "nginx", "stack"), 9),
        (("variants", "nginx", "settings", "workers"), 10),
        (("variants", "nginx", "settings", "quoted key"), 10),
        (("steps", 1, "run"), 16),
        (("variants", "nginx", "missing"), 8),
        (("missing",), 1),
    ],
)
def test_a_key_is_placed_on_its_line(
    tmp_path: Path, where: tuple[str | int, ...], line: int
) -> None:
    path = tmp_path / "file.toml"
    path.write_text(TEXT)
    assert TomlFile(path).place(where) == f"{path}:{line}"


def test_broken_toml_names_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "file.toml"
    path.write_text('title = "x"\nload = = 3\n')
    with pytest.raises(UserError, match=r"file\.toml: is not valid TOML: .*line 2"):
        TomlFile(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"nowhere\.toml: there is no such file"):
        TomlFile(tmp_path / "nowhere.toml")


@pytest.mark.timeout(30)
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "service.toml")
    with pytest.raises(UserError, match="is not a regular file"):
        TomlFile(tmp_path / "service.toml")
