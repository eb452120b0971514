"""A repository for gates."""

from pathlib import Path

import pytest

from e2e.own import commit, git


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository of one commit, in which webdyno is called."""
    monkeypatch.chdir(tmp_path)
    for name in ("GITHUB_STEP_SUMMARY", "GITHUB_ACTIONS"):
        monkeypatch.delenv(name, raising=False)
    git(tmp_path, "init", "--quiet", "--initial-branch=main", ".")
    (tmp_path / "app.py").write_text("print()\n")
    (tmp_path / "README.md").write_text("An app.\n")
    commit(tmp_path)
    return tmp_path
