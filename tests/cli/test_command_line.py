"""Which commands there are, what is said of them, and what a start reads."""

import subprocess
import sys
from importlib import import_module

import pytest

from webdyno.model.command import COMMANDS, COMMANDS_FOR


@pytest.mark.parametrize(
    ("name", "does"), [it for commands in COMMANDS_FOR.values() for it in commands.items()]
)
def test_the_list_says_of_a_command_what_its_own_help_says(name: str, does: str) -> None:
    said = getattr(import_module(f"webdyno.cli.{name}"), name).__doc__
    assert " ".join(said.partition("\n\n")[0].split()) == does


@pytest.mark.parametrize(
    ("words", "called"), [(["--help"], set()), (["audit", "--help"], {"audit"})]
)
def test_only_the_command_that_is_called_is_imported(words: list[str], called: set[str]) -> None:
    program = (
        "import sys; from webdyno.cli import run_command_line; run_command_line(sys.argv[1:]);"
        "print('\\nimported:', *sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *words], check=True, capture_output=True, text=True
    )
    listing, _, modules = done.stdout.rpartition("\nimported:")
    assert called or all(name in listing for name in COMMANDS)
    ours = {name for name in modules.split() if name.startswith("webdyno.cli.")}
    assert {name.rpartition(".")[2] for name in ours} & set(COMMANDS) == called
