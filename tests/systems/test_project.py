"""webdyno.toml and the command line together."""

from pathlib import Path
from typing import Any

import pytest

from webdyno.config import CommandLine
from webdyno.core.errors import UserError
from webdyno.systems.project import Project, ProjectSource

FILE = """\
[app]
start = "./server"

[load]
connections = 8

[[requests]]
path = "/items"
"""


@pytest.mark.parametrize(
    ("load", "requests"),
    [({"paths": ["/search"]}, None), ({"headers": {"Host": "a"}}, [{"path": "/items"}])],
)
def test_paths_of_the_command_line_replace_the_requests_of_the_file(
    tmp_path: Path, load: dict[str, Any], requests: object
) -> None:
    (tmp_path / "webdyno.toml").write_text(FILE)
    project = Project.around(tmp_path)
    assert project is not None
    data = ProjectSource(CommandLine({"load": load}, {}), project).data
    assert data.get("requests") == requests
    assert data["load"] == {"connections": 8, **load}
    assert "app" not in data


@pytest.mark.parametrize(
    "more",
    [
        '[variants.more]\nstack = "cmd:./more"',
        '[factors]\n"variants.a.stack" = ["cmd:./more", "a"]',
    ],
)
def test_what_is_compared_is_named_on_the_command_line(tmp_path: Path, more: str) -> None:
    """A pull request could add a variant that nobody named, and have it run."""
    (tmp_path / "webdyno.toml").write_text(f"{FILE}\n{more}\n")
    with pytest.raises(UserError, match=r"webdyno\.toml:\d+: what is compared is named"):
        Project.around(tmp_path)


def test_a_file_above_a_folder_counts_in_a_repository_alone(tmp_path: Path) -> None:
    """Anybody may have put one into /tmp."""
    (tmp_path / "webdyno.toml").write_text(FILE)
    inner = tmp_path / "a/b"
    inner.mkdir(parents=True)
    assert Project.around(inner) is None
    (tmp_path / ".git").mkdir()
    assert Project.around(inner)
