"""Short commands that run as the user whose files they are about: root changes none of them."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from webdyno.host.users import ServerUser, home_of
from webdyno.model.mistake import Trouble

WITHIN_S = 600.0


def run_as(
    user: ServerUser | None,
    words: Sequence[str | Path],
    *,
    environment: Mapping[str, str] | None = None,
    given: str = "",
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end as a user, None being ourselves; its exit code is the caller's."""
    variables = dict(os.environ if user is None else {"PATH": os.environ.get("PATH", os.defpath)})
    variables |= {"HOME": str(home_of(user)), "LC_ALL": "C.UTF-8", "GIT_TERMINAL_PROMPT": "0"}
    try:
        return subprocess.run(
            [str(word) for word in words],
            input=given,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=WITHIN_S,
            cwd="/",
            env={**variables, **(environment or {})},
            user=user.uid if user else None,
            group=user.gid if user else None,
            extra_groups=(user.groups or [user.gid]) if user else None,
        )
    except FileNotFoundError:
        raise Trouble(f"there is no program {words[0]}; install it") from None
    except subprocess.TimeoutExpired:
        raise Trouble(f"{words[0]} did not end within {WITHIN_S:g} s") from None


def must(done: subprocess.CompletedProcess[str], what: str) -> str:
    """Give what a command printed; raise Trouble, in its own words, when it failed."""
    if done.returncode:
        raise Trouble(f"{what}: {done.stderr.strip() or f'exit code {done.returncode}'}")
    return done.stdout.strip()
