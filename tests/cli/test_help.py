"""What each command says of itself, as somebody last read it; and what shells complete."""

import subprocess
from pathlib import Path

import pytest

from e2e.commands import webdyno_here
from report.approved import assert_as_approved
from webdyno.model.command import COMMANDS

ENGINES_OWN = {"load"}
WITHOUT_EXAMPLES = {"webdyno", "doctor"}


@pytest.mark.parametrize("name", ["webdyno", *(it for it in COMMANDS if it not in ENGINES_OWN)])
def test_help_is_as_approved(name: str, tmp_path: Path) -> None:
    words = ["--help"] if name == "webdyno" else [name, "--help"]
    done = webdyno_here(*words, folder=tmp_path)
    assert done.returncode == 0
    assert max(map(len, done.stdout.splitlines())) <= 100
    if name not in WITHOUT_EXAMPLES:
        assert f" webdyno {name}" in done.stdout.partition("\n")[2]
    assert_as_approved(f"help/{name}", done.stdout)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_commands_and_flags(shell: str, tmp_path: Path) -> None:
    done = webdyno_here("completion", shell, folder=tmp_path)
    assert done.returncode == 0
    assert all(name in done.stdout for name in COMMANDS)
    assert "slo" in done.stdout
    if shell == "bash":
        subprocess.run(["bash", "-n"], input=done.stdout, text=True, check=True)
