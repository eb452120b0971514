"""Nobody answers, or yes, and what was agreed to is kept in a folder of the test."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from launch.answering import STOPPED, Terminal
from webdyno.core.errors import UserError


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(sys, "stdin", Terminal(None))
    return monkeypatch


@pytest.fixture
def asked(answers: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[list[str]]:
    """Where somebody answers yes, each question; nothing is installed, started or measured."""
    questions: list[str] = []

    def answer(question: str = "") -> str:
        questions.append(question)
        return "y"

    def stop(*_: object, **__: object) -> None:
        raise UserError(STOPPED)

    answers.chdir(tmp_path)
    answers.setattr("sys.stdin", Terminal("y"))
    answers.setattr("builtins.input", answer)
    for place in ("launch.measure.provide", "launch.consent.provide"):
        answers.setattr(f"webdyno.{place}", lambda *_: None)
    for place in ("launch.measure._measure_in", "servers.starting.open_stack"):
        answers.setattr(f"webdyno.{place}", stop)
    answers.setattr("webdyno.interfaces.ui.app.make_app", stop)
    yield questions
    assert not (tmp_path / "ran").exists()
