"""The working tree as a revision: what has it built again, and what doesn't."""

from pathlib import Path

from e2e.own import commit, git
from webdyno.revisions.repository import Repository, Revision


def working_tree(folder: Path) -> Revision:
    return Repository.around(folder, "rev:.").revision(".", "rev:.")


def test_an_edit_of_the_projects_file_alone_builds_nothing_again(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet", "--initial-branch=main", ".")
    (tmp_path / "server.py").write_text("1\n")
    commit(tmp_path)
    clean = working_tree(tmp_path)
    (tmp_path / "webdyno.toml").write_text('[app]\nstart = "./a"\n')
    before = working_tree(tmp_path)
    (tmp_path / "webdyno.toml").write_text('[app]\nstart = "./b"\n')
    after = working_tree(tmp_path)
    assert before.tree != after.tree
    assert before.built_from == after.built_from
    # A build is a folder that a server writes into: of two revisions each has its own.
    assert before.built_from != clean.built_from
    (tmp_path / "server.py").write_text("2\n")
    assert working_tree(tmp_path).built_from != after.built_from
    assert Repository.around(tmp_path, "x").branches() == ["main"]
