"""Files of rows: CSV and JSON lines, with the line of what is wrong."""

import csv
import io
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webdyno.config import Catalogue
from webdyno.config.experiment import Override, read_experiment
from webdyno.config.reading import TomlFile
from webdyno.config.requests import _of_csv, read_rows
from webdyno.core.errors import UserError


def written(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text, encoding="utf-8", newline="")
    return folder / name


def test_both_kinds_give_rows(tmp_path: Path) -> None:
    wanted = [{"name": "ann", "password": "a,b"}, {"name": "bob", "password": "é"}]
    table = written(tmp_path, "u.csv", '\ufeffname, password\r\nann,"a,b"\r\n\r\nbob,é\r\n')
    assert read_rows(table)[0] == wanted
    lines = '{"name": "ann", "password": "a,b"}\n\n{"name": "bob", "password": "é"}\n'
    assert read_rows(written(tmp_path, "u.jsonl", lines))[0] == wanted
    assert read_rows(written(tmp_path, "n.jsonl", '{"n": 1}'))[0] == [{"n": "1"}]


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("u.csv", "", "has no rows"),
        ("u.csv", "name\n", "has no rows"),
        ("u.csv", "a,,b\n1,2,3\n", ":1: should name each column"),
        ("u.csv", "a,a\n1,2\n", ":1: should name each column"),
        ("u.csv", "a,b\n1,2\n3\n", ":3: has 1 values for the 2 columns a, b"),
        ("u.csv", 'a\n"1\n', "is no CSV"),
        ("u.jsonl", "{}\n", ":1: should be an object"),
        ("u.jsonl", "[1]\n", ":1: should be an object"),
        ("u.jsonl", '{"a": 1}\n{"b": 2}\n', ":2: has not the keys a"),
        ("u.jsonl", "{\n", ":1: is no JSON"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, name: str, text: str, says: str) -> None:
    with pytest.raises(UserError) as refused:
        read_rows(written(tmp_path, name, text), "x.toml:3")
    assert str(refused.value).startswith("x.toml:3: ")
    assert says in str(refused.value)


EXPERIMENT = """title = "t"
question = "q?"
site = "static"
load.connections = 3
[values.user]
{values}
[[requests]]
path = "/hello.txt?{{{{user.name}}}}"
[variants]
a.stack = "nginx"
b.stack = "nginx"
"""


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ('file = "u.csv"', "u.csv has 2 rows for 3 users"),
        ('rows = [{name = "a"}]', "values.user has 1 row for 3 users"),
        ('file = "n.csv"', "n.csv has no column for {{user.name}}; it has nmae"),
    ],
)
def test_rows_that_do_not_suffice_are_known_before_anything_starts(
    tmp_path: Path, values: str, says: str
) -> None:
    written(tmp_path, "u.csv", "name\nann\nbob\n")
    written(tmp_path, "n.csv", "nmae\nann\nbob\ncat\n")
    path = written(tmp_path, "x.toml", EXPERIMENT.format(values=values))
    with pytest.raises(UserError) as refused:
        read_experiment(TomlFile(path), [], Catalogue.load())
    assert str(refused.value).startswith(f"{path}:6: ")
    assert says in str(refused.value)


def test_as_many_rows_as_users_and_rows_in_turn_do(tmp_path: Path) -> None:
    written(tmp_path, "u.csv", "name\nann\nbob\n")
    text = EXPERIMENT.format(values='file = "u.csv"')
    path = written(tmp_path, "x.toml", text)
    fewer = Override(("load", "connections"), 2, "-c 2")
    assert read_experiment(TomlFile(path), [fewer], Catalogue.load()).load.connections == 2
    written(tmp_path, "x.toml", text.replace('"u.csv"', '"u.csv"\neach = "turn"'))
    assert read_experiment(TomlFile(path), [], Catalogue.load()).load.connections == 3
    varied = Override(("factors", "load.connections"), [1, 4], "--vary load.connections=1,4")
    written(tmp_path, "x.toml", text)
    with pytest.raises(UserError, match=r"--vary load.connections=1,4: .* has 2 rows for 4 users"):
        read_experiment(TomlFile(path), [varied], Catalogue.load())


def test_a_run_needs_the_same_rows_to_its_end(tmp_path: Path) -> None:
    path = written(tmp_path, "u.csv", "a\n1\n")
    _, sha256 = read_rows(path)
    assert read_rows(path, sha256=sha256)[0] == [{"a": "1"}]
    written(tmp_path, "u.csv", "a\n2\n")
    with pytest.raises(UserError, match="has changed since the run began"):
        read_rows(path, sha256=sha256)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give files away")
def test_another_users_link_leads_to_no_rows(tmp_path: Path) -> None:
    """They would be sent to whatever is measured."""
    written(tmp_path, "logins.csv", "name\nann\n")
    (link := tmp_path / "u.csv").symlink_to("logins.csv")
    os.chown(link, 12345, 12345, follow_symlinks=False)
    text = EXPERIMENT.format(values='file = "u.csv"\neach = "turn"')
    path = written(tmp_path, "x.toml", text)
    with pytest.raises(UserError, match="a link of user 12345's"):
        read_experiment(TomlFile(path), [], Catalogue.load())
    os.chown(link, 0, 0, follow_symlinks=False)
    values = read_experiment(TomlFile(path), [], Catalogue.load()).values
    assert {its.file for its in values.values()} == {str(link)}


@given(
    st.lists(
        st.lists(st.text(st.characters(exclude_categories=["Cs", "Cc"])), min_size=2, max_size=2),
        min_size=1,
        max_size=9,
    )
)
def test_what_python_writes_is_read(rows: list[list[str]]) -> None:
    text = io.StringIO(newline="")
    csv.writer(text).writerows([["a", "b"], *rows])
    assert _of_csv(text.getvalue(), "x") == [dict(zip("ab", row, strict=True)) for row in rows]
