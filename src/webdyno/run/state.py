"""A user's commands before and after each block, so that every block begins alike."""

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO

from webdyno.host.processes import ending_with_us, in_session
from webdyno.host.users import ServerUser, home_of
from webdyno.model.experiment import State
from webdyno.model.files import writing
from webdyno.model.mistake import Trouble

SHOWN_LINES = 15
READ_BYTES = 16_384


@contextmanager
def in_state(state: State, log: Path, user: ServerUser | None) -> Iterator[None]:
    """Run the commands before, and in any case those after; raise Trouble where one fails.

    They run in the folder that webdyno was called in, as `user`; None is ourselves. What they say
    is in `log`.
    """
    run_all = partial(_run_all, state.within_s, log, user)
    run_all("before_block", state.before_block)
    try:
        yield
    except BaseException:
        with suppress(Trouble):  # what failed first is what has to be told
            run_all("after_block", state.after_block)
        raise
    run_all("after_block", state.after_block)


def _run_all(
    within_s: float, log: Path, user: ServerUser | None, key: str, commands: Sequence[str]
) -> None:
    for command in commands:
        _run(key, command, within_s, log, user)


def _run(key: str, command: str, within_s: float, log: Path, user: ServerUser | None) -> None:
    with _appended(log) as output:
        output.write(f"{key}: {command}\n".encode())
        output.flush()
        # It ends when webdyno does, even by kill -9.
        words = [*ending_with_us("KILL"), "sh", "-c", command]
        environment = _environment(user) if user else None
        # Nothing that it started in the background outlives it.
        with in_session(words, output=output, user=user, environment=environment) as process:
            try:
                code = process.wait(within_s)
            except subprocess.TimeoutExpired:
                raise Trouble(
                    f"state.{key}: {command!r} did not end within {within_s:g} s (state.within_s); "
                    f"what it said is in {log}"
                ) from None
    if code != 0:
        raise Trouble(
            f"state.{key}: {command!r} ended with exit code {code}; the end of {log}:\n{_end(log)}"
        )


def _appended(log: Path) -> BinaryIO:
    """Open a log of a run, whose folder may be somebody else's."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with writing(log):
        log.parent.mkdir(parents=True, exist_ok=True)
        return os.fdopen(os.open(log, flags, 0o644), "ab")


def _environment(user: ServerUser) -> dict[str, str]:
    """Give the variables of another user's commands; those of our shell may hold secrets."""
    path, name = os.environ.get("PATH", os.defpath), user.name
    return {"PATH": path, "HOME": str(home_of(user)), "USER": name, "LOGNAME": name}


def _end(log: Path) -> str:
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - READ_BYTES))
        lines = file.read().decode(errors="replace").splitlines()[-SHOWN_LINES:]
    return "\n".join(f"    {line}" for line in lines)
