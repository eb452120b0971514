"""Nobody answers, and what was agreed to is kept in a folder of the test."""

import sys
from pathlib import Path

import pytest

from launch.answering import Terminal


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(sys, "stdin", Terminal(None))
    return monkeypatch
