"""The commits between a gate's revisions, and the command that asks for it again."""

import shlex
from pathlib import Path

import pytest

from e2e.own import git
from webdyno.config import Override
from webdyno.questions.gate.experiment import repeat_command
from webdyno.systems.repository import MOST_LETTERS, Repository

NAMED = [("--base", "1a2b3c4"), ("--head", None)]


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """Five commits, the last with a subject that is hard to print."""
    git(tmp_path, "init", "--quiet", "--initial-branch=main", ".")
    subjects = ["one", "two", "three", "four", f"five {'very ' * 30}\u202elong \x1b[31m"]
    for number, subject in enumerate(subjects):
        (tmp_path / "app.py").write_text(str(number))
        git(tmp_path, "add", "--all")
        git(tmp_path, "commit", "--quiet", "-m", subject)
        git(tmp_path, "tag", f"v{number}")
    return Repository.around(tmp_path, "--base")


def between(repository: Repository, old: str, new: str) -> str:
    both = (repository.revision(name, "--base") for name in (old, new))
    return repository.commits_between(*both)


def test_the_newest_commits_are_named_and_the_others_counted(repository: Repository) -> None:
    said = between(repository, "v0", "v4")
    assert said.isprintable()
    assert ", 4 commits: " in said
    assert said.endswith("; 1 more")
    assert "three" in said
    assert "two" not in said
    assert len(said) < 4 * (MOST_LETTERS + 20)
    base, head = (repository.revision(name, "").commit[:7] for name in ("v0", "v4"))
    assert said.startswith(f"{base}..{head}, ")


def test_a_working_tree_is_named_and_is_no_commit(repository: Repository) -> None:
    (repository.top / "app.py").write_text("new")
    assert between(repository, "v4", ".") == "0 commits: changes that aren't committed"
    assert ", 1 commit: changes that aren't committed; " in between(repository, "v3", ".")


def test_where_head_is_older_there_are_none(repository: Repository) -> None:
    assert between(repository, "v4", "v0") == ""
    assert between(repository, "v4", "v4") == ""


def test_the_command_has_what_was_typed_but_for_endpoints() -> None:
    overrides = [
        Override(("measure", "budget_s"), "5m", "--time 5m"),
        Override(("requests",), [], "--traffic a b.http --traffic c.http"),
        Override(("login",), [], "--traffic a b.http --traffic c.http"),
        Override(("same_bodies",), True, "--same-bodies"),
    ]
    said = repeat_command(NAMED, ["cpu > +3%"], "static", overrides)
    assert shlex.split(said) == [
        *("webdyno", "gate", "--base", "1a2b3c4", "--fail-if=cpu > +3%", "--site", "static"),
        *("--time", "5m", "--traffic", "a b.http", "--traffic", "c.http", "--same-bodies"),
    ]


@pytest.mark.parametrize(
    "flag", ["--traffic curl …", "time='5m'", f"--set x={'y' * 200}", "--set x=a\nb"]
)
def test_what_cannot_be_repeated_is_not_offered(flag: str) -> None:
    assert repeat_command(NAMED, [], None, [Override(("x",), 1, flag)]) == ""
