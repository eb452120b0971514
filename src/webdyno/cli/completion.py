"""`webdyno --completion SHELL`: what lets a shell complete webdyno's commands and flags.

webdyno --completion bash >~/.local/share/bash-completion/completions/webdyno
webdyno --completion zsh >"${fpath[1]}/_webdyno"
webdyno --completion fish >~/.config/fish/completions/webdyno.fish
"""

from collections.abc import Sequence
from typing import Literal, get_args

from cyclopts import App

from webdyno.model.errors import UserError
from webdyno.model.exit_codes import Exit

Shell = Literal["bash", "zsh", "fish"]


def print_completion(app: App, words: Sequence[str]) -> Exit:
    """Print the script for a shell; raise UserError for another one."""
    for shell in get_args(Shell):
        if list(words) == [shell]:
            print(app.generate_completion(shell=shell))  # noqa: T201 (a script, as it is)
            return Exit.OK
    raise UserError(f"--completion takes one of {', '.join(get_args(Shell))}")
