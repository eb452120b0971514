"""What each command says of itself, as somebody last read it; and what shells complete."""

import subprocess
from pathlib import Path

import pytest

from e2e.commands import webdyno_here
from report.approved import assert_as_approved
from webdyno.core.registry import commands
from webdyno.interfaces.cli import app
from webdyno.interfaces.cli.help import FIRST_PAGE, GROUPS

LINES = {"--help": 60, "--help-all": 75}
"""What is asked for in full may scroll a little."""
COLUMNS = 80


def page(words: list[str], folder: Path) -> str:
    done = webdyno_here(*words, folder=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("flag", LINES)
@pytest.mark.parametrize("name", ["", *commands()])
def test_a_page_fits_a_terminal(name: str, flag: str, tmp_path: Path) -> None:
    lines = page([name, flag] if name else [flag], tmp_path).splitlines()
    assert len(lines) <= LINES[flag]
    assert max(map(len, lines)) <= COLUMNS


@pytest.mark.parametrize("name", ["", *commands()])
def test_help_is_as_approved(name: str, tmp_path: Path) -> None:
    said = page([name, "--help"] if name else ["--help"], tmp_path)
    if name:
        assert f" webdyno {name}" in said.partition("\n")[2]
    assert_as_approved(f"help/{name or 'webdyno'}", said)


@pytest.mark.parametrize("name", commands())
def test_all_flags_are_described(name: str, tmp_path: Path) -> None:
    said = page([name, "--help-all"], tmp_path)
    whole = app()
    arguments = whole[name].assemble_argument_collection(default_parameter=whole.default_parameter)
    flags = {it.names[-1] for it in arguments if it.index is None and not it.children}
    assert all(f"{flag.removeprefix('--no-')}" in said for flag in flags)


def test_flags_of_several_commands_stand_in_a_group() -> None:
    """So that each means one thing, and is found in the same place everywhere."""
    grouped = {flag for flags in GROUPS.values() for flag in flags.split()}
    assert grouped >= FIRST_PAGE


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_commands_and_flags(shell: str, tmp_path: Path) -> None:
    done = webdyno_here("--completion", shell, folder=tmp_path)
    assert done.returncode == 0
    assert all(name in done.stdout for name in commands())
    assert "slo" in done.stdout
    if shell == "bash":
        subprocess.run(["bash", "-n"], input=done.stdout, text=True, check=True)
