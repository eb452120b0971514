"""Who may run nothing has no files and variables of yours sent."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from launch.answering import caller
from webdyno.core.errors import UserError
from webdyno.core.session import Values
from webdyno.launch.sending import project_around, read_of_yours


def test_a_file_is_named_by_where_its_path_leads(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("secret")
    (tmp_path / "rows.csv").symlink_to("key")
    named = f"{'./' * 100}rows.csv"
    for asked in ({"body_file": named}, Values(file=named)):
        ((said, why),) = read_of_yours(asked, tmp_path)
        assert said.endswith(f"file = {os.path.realpath(tmp_path)}/key")
        assert why == "is a file of yours"


@pytest.mark.parametrize(
    "sends",
    ['[[requests]]\npath = "/"\nbody_file = "id_rsa"', '[load.headers]\nCookie = "${env:COOKIE}"'],
)
def test_who_may_run_nothing_has_nothing_of_a_project_sent(tmp_path: Path, sends: str) -> None:
    """As an agent's tools, in a repository whose author chose the names."""
    (tmp_path / "webdyno.toml").write_text(f'[app]\nstart = "./s --f ${{env:X}}"\n{sends}\n')
    assert project_around(tmp_path, caller())
    with pytest.raises(UserError, match=r"which whoever started these tools has not allowed"):
        project_around(tmp_path, replace(caller(), allows_commands=False))
