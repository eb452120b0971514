"""Which commands there are, and what a start reads."""

import subprocess
import sys

from webdyno.cli import app_for
from webdyno.model.command import COMMANDS


def test_help_tells_all_commands() -> None:
    assert {name for name in app_for(["--help"]) if not name.startswith("-")} == set(COMMANDS)


def test_only_the_command_that_is_called_is_imported() -> None:
    program = (
        "import sys; from webdyno.cli import app_for; app_for(['audit']);"
        "print(*(name for name in sys.modules if name.startswith('webdyno.cli.')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    imported = {name.rpartition(".")[2] for name in done.stdout.split()}
    assert imported & set(COMMANDS) == {"audit"}
