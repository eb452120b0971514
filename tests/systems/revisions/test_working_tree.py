"""The working tree as a revision: what has it built again, and what doesn't."""

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import psutil
import pytest

from e2e.own import commit, git, make_repository
from waiting import wait_until
from webdyno.config import Catalogue
from webdyno.core.errors import OperationError, UserError
from webdyno.core.service import Need
from webdyno.host.this_machine import DONE
from webdyno.systems.repository import Repository, Revision
from webdyno.systems.revision import _newer_files, make
from webdyno.systems.target import OwnKeys, TargetSpec


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


def test_a_run_excludes_its_own_folder_alone_whatever_that_is_called(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet", "--initial-branch=main", ".")
    (tmp_path / "server.py").write_text("1\n")
    commit(tmp_path)
    clean = working_tree(tmp_path)
    (tmp_path / "*").mkdir()
    (tmp_path / "*/slots.jsonl").write_text("")
    assert working_tree(tmp_path).tree == clean.tree
    (tmp_path / "server.py").write_text("2\n")
    changed = working_tree(tmp_path)
    assert changed.has_changes
    (tmp_path / "slots.jsonl").write_text("")
    assert working_tree(tmp_path).tree not in {clean.tree, changed.tree}


LOOKS = """
import sys
from pathlib import Path
from webdyno.systems.repository import Repository
its = Repository.around(Path(sys.argv[1]), "here")
its.check_out(its.revision("HEAD", "here"), Path(sys.argv[2]))
"""


def test_a_filter_ends_with_us_also_by_kill_9(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet", "--initial-branch=main", ".")
    (tmp_path / ".gitattributes").write_text("* filter=x\n")
    commit(tmp_path)
    file = tmp_path / "pid"
    git(tmp_path, "config", "filter.x.smudge", f"echo $$ >{file}; sleep 600; cat")
    words: list[str | Path] = [sys.executable, "-c", LOOKS, tmp_path, tmp_path / "out"]
    with subprocess.Popen(words, env=os.environ | {"HOME": str(tmp_path)}) as process:
        wait_until(lambda: file.exists() and bool(file.read_text()))
        process.kill()
    pid = int(file.read_text())
    wait_until(lambda: not psutil.pid_exists(pid))


def test_files_that_a_server_wrote_are_named_whatever_they_are_called(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / DONE).touch()
    os.utime(tmp_path / DONE, (0, 0))
    for name in ("a\nb", "c d", "x.log"):
        (tmp_path / "files" / name).write_text("")
    assert _newer_files(None, tmp_path) == r"'a\nb', c d"


def test_a_tag_called_like_a_branch_is_taken_for_neither(tmp_path: Path) -> None:
    """Who may push tags to a protected repository would choose what a gate compares with."""
    git(tmp_path, "init", "--quiet", "--initial-branch=main", ".")
    (tmp_path / "server.py").write_text("1\n")
    commit(tmp_path)
    repository = Repository.around(tmp_path, "here")
    git(tmp_path, "update-ref", "refs/remotes/origin/main", "HEAD")
    git(tmp_path, "tag", "origin/main")
    assert repository.revision("origin/main", "here") == repository.revision("HEAD", "here")
    (tmp_path / "server.py").write_text("2\n")
    commit(tmp_path)
    git(tmp_path, "tag", "--force", "origin/main")
    for name in ("origin/main", "origin/main^0"):
        with pytest.raises(UserError, match=r"names two commits: say refs/tags/origin/main or"):
            repository.revision(name, "here")
    assert repository.revision("refs/remotes/origin/main", "here")


def test_what_services_lack_is_reported_before_anything_is_built(tmp_path: Path) -> None:
    app = '[app]\nbuild = "touch x"\nstart = "./x"\nservices.db = "postgresql"\n'
    make_repository(tmp_path, {"webdyno.toml": app})
    said: list[str] = []

    def provide(needs: Iterable[Need]) -> None:
        raise OperationError(f"missing: {' '.join(sorted({need.apt for need in needs}))}")

    services = Catalogue.load().services
    spec = TargetSpec(
        "rev:.", ".", OwnKeys(), tmp_path, "rev:.", said.append, services, None, provide
    )
    with pytest.raises(OperationError, match="missing: postgresql"):
        make(spec)
    assert said == []


def test_a_tag_called_like_a_commit_is_taken_for_neither(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet", "--initial-branch=main", ".")
    (tmp_path / "server.py").write_text("1\n")
    commit(tmp_path)
    repository = Repository.around(tmp_path, "here")
    first = repository.revision("HEAD", "here").commit
    (tmp_path / "server.py").write_text("2\n")
    commit(tmp_path)
    git(tmp_path, "tag", first[:10])
    with pytest.raises(UserError, match="names two commits"):
        repository.revision(first[:10], "here")
    assert repository.revision(first, "here").commit == first
