"""Runs commands to their end, as the servers' user, in the servers' plain environment."""

import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from webdyno.bench.users import ServerUser

PLAIN_ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LANG": "C.UTF-8",
    "TZ": "UTC",
}
"""The whole environment of a server: its size and content must not depend on the user's shell."""

WITHIN_S = 120.0
VERSION_WITHIN_S = 10.0
SHOWN_LINES = 15


class CommandError(Exception):
    """A command failed; the message holds its own last words, indented."""


def run_command(
    words: Sequence[str],
    *,
    cwd: Path,
    environment: Mapping[str, str],
    user: ServerUser | None,
    entry: Sequence[str] = (),
) -> None:
    """Run a command; raise CommandError with what it said when it fails.

    `entry` are words before it that let it run elsewhere, such as in a namespace; they then make
    it run as `user` too.
    """
    change_to = None if entry else user
    with tempfile.TemporaryFile() as output:  # no pipe: servers open /dev/stderr anew
        if user is not None:
            os.fchown(output.fileno(), user.uid, user.gid)
        try:
            done = subprocess.run(
                [*entry, *words],
                cwd=cwd,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                timeout=WITHIN_S,
                check=False,
                user=change_to.uid if change_to else None,
                group=change_to.gid if change_to else None,
                extra_groups=[change_to.gid] if change_to else None,
            )
        except subprocess.TimeoutExpired:
            raise CommandError(f"    {words[0]} did not end within {WITHIN_S:g} s") from None
        except OSError as error:
            raise CommandError(f"    {words[0]}: {error.strerror}") from None
        output.seek(0)
        said = output.read().decode("utf-8", "replace").strip().splitlines()[-SHOWN_LINES:]
    if done.returncode:
        raise CommandError("\n".join(f"    {line}" for line in said or ["(nothing)"]))


@cache
def version_output(words: tuple[str, ...]) -> str:
    """Give what a program says of its version; nothing when it can't be run."""
    try:
        done = subprocess.run(
            words,
            env=PLAIN_ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=VERSION_WITHIN_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace")
