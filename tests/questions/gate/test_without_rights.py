"""Who may run nothing has no Git run, which runs what the settings of a repository name."""

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from webdyno.config import Catalogue
from webdyno.core.errors import UserError
from webdyno.interfaces.cli.flags import RunFlags
from webdyno.interfaces.cli.progress import at_terminal
from webdyno.questions.gate.experiment import AskedGate, asked_gate


def test_revisions_are_refused_before_git_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    ran = tmp_path / "ran"
    words: list[str | Path] = [
        "git",
        "-C",
        tmp_path,
        "config",
        "core.fsmonitor",
        f"touch {ran}; false",
    ]
    subprocess.run(words, check=True)
    monkeypatch.chdir(tmp_path)
    agent = replace(at_terminal(RunFlags()), allows_commands=False)
    for base in ("HEAD", "rev:."):
        with pytest.raises(UserError, match="which whoever started these tools has not allowed"):
            asked_gate(AskedGate(base, "HEAD"), Catalogue.load(), agent)
    assert not ran.exists()
