"""A folder for Compose files."""

from pathlib import Path

import pytest


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with what they name."""
    (tmp_path / "data").mkdir()
    (tmp_path / ".env").write_text('# words\nexport SECRET="a b"\nUSER_NAME=you\n')
    monkeypatch.setenv("FROM_OUTSIDE", "outside")
    return tmp_path
