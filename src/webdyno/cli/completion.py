"""`webdyno completion`: what lets a shell complete webdyno's commands and flags."""

from typing import Annotated, Literal

from cyclopts import Parameter

from webdyno.lab.ending import Exit


def completion(
    shell: Annotated[
        Literal["bash", "zsh", "fish"] | None,
        Parameter(help="For which shell; the one that is used unless given."),
    ] = None,
) -> Exit:
    """Print what lets a shell complete commands and flags.

    For example

        webdyno completion bash >~/.local/share/bash-completion/completions/webdyno

        webdyno completion zsh >"${fpath[1]}/_webdyno"

        webdyno completion fish >~/.config/fish/completions/webdyno.fish
    """
    from webdyno.cli import app

    print(app().generate_completion(shell=shell))  # noqa: T201 (a script, as it is)
    return Exit.OK
