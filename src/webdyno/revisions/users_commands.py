"""Short commands that run as the user whose files they are about: root changes none of them."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from subprocess import CompletedProcess

from webdyno.host.children import run_program
from webdyno.host.users import ServerUser, home_of

WITHIN_S = 600.0


def run_as(
    user: ServerUser | None,
    words: Sequence[str | Path],
    *,
    environment: Mapping[str, str] | None = None,
    given: str = "",
) -> CompletedProcess[str]:
    """Run a command to its end as a user, None being ourselves; its exit code is the caller's."""
    variables = dict(os.environ if user is None else {"PATH": os.environ.get("PATH", os.defpath)})
    variables |= {"HOME": str(home_of(user)), "LC_ALL": "C.UTF-8", "GIT_TERMINAL_PROMPT": "0"}
    return run_program(
        words,
        within_s=WITHIN_S,
        given=given,
        user=user,
        environment={**variables, **(environment or {})},
        folder="/",
    )
