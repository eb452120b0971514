"""Builds of a repository are closed to others."""

import os
import stat
from pathlib import Path

import pytest

from e2e.own import commit, git
from webdyno.core.errors import OperationError
from webdyno.core.whose import USERS
from webdyno.host.users import ServerUser
from webdyno.systems.repository import Repository
from webdyno.systems.revision import Recipe, build_revision, let_reader_in


@pytest.mark.parametrize("mode", [0o755, 0o700])
def test_a_build_is_closed_to_others(
    open_folder: Path, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    """Also where its repository isn't: files in it may be closed, which Git doesn't keep."""
    monkeypatch.delenv("SUDO_UID", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(open_folder / "cache"))
    (repository := open_folder / "repository").mkdir()
    git(repository, "init", "--quiet", "--initial-branch=main", ".")
    (repository / "code.py").write_text("private\n")
    commit(repository)
    repository.chmod(mode)
    its = Repository.around(repository, "here")
    recipe = Recipe("printf s3cret >key", Path(), {})
    before = os.umask(0o022)
    try:
        files = build_revision(its, its.revision("HEAD", "here"), recipe, "HEAD", lambda _: None)
    finally:
        os.umask(before)
    assert (files / "key").read_text() == "s3cret"
    assert stat.S_IMODE(files.parent.stat().st_mode) == 0o700


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give a folder to a group")
def test_a_build_is_nobody_elses_to_change(
    open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It runs as ourselves."""
    monkeypatch.delenv("SUDO_UID", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache := open_folder / "cache"))
    (repository := open_folder / "repository").mkdir()
    git(repository, "init", "--quiet", "--initial-branch=main", ".")
    (repository / "code.py").write_text("code\n")
    commit(repository)
    its = Repository.around(repository, "here")
    revision, recipe = its.revision("HEAD", "here"), Recipe("echo built >made", Path(), {})
    before = os.umask(0o002)
    try:
        files = build_revision(its, revision, recipe, "HEAD", lambda _: None)
    finally:
        os.umask(before)
    made = [*files.parent.rglob("*"), files, *files.parents[:3]]
    assert not any(stat.S_IMODE(path.lstat().st_mode) & 0o022 for path in made)
    os.chown(cache, -1, USERS)
    cache.chmod(0o775)
    with pytest.raises(OperationError, match=f"others may change {cache}, and what is built"):
        build_revision(its, revision, recipe, "HEAD", lambda _: None)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, whose servers another user runs")
def test_the_servers_user_gets_into_it_where_a_configuration_is_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = ServerUser("www-data", 33, 33)
    monkeypatch.setattr("webdyno.systems.revision.server_user", lambda: reader)
    tmp_path.chmod(0o700)
    assert let_reader_in("conf", None, tmp_path / "files") == reader
    status = tmp_path.stat()
    assert (stat.S_IMODE(status.st_mode), status.st_gid) == (0o750, 33)
    (open_ := tmp_path / "open").mkdir(mode=0o755)
    assert let_reader_in("conf", None, open_ / "files") == reader
    assert stat.S_IMODE(open_.stat().st_mode) == 0o755
