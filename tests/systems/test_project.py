"""webdyno.toml and the command line together."""

from pathlib import Path
from typing import Any

import pytest

from webdyno.config import CommandLine
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
