"""A user's commands before and after each block, so that every block begins alike."""

import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from webdyno.model.experiment import State
from webdyno.model.mistake import Trouble

SHOWN_LINES = 15


@contextmanager
def in_state(state: State, log: Path) -> Iterator[None]:
    """Run the commands before, and in any case those after; raise Trouble where one fails.

    They run in the folder and as the user that webdyno was called in and by. What they say is in
    `log`.
    """
    _run_all("before_block", state.before_block, state.within_s, log)
    try:
        yield
    except BaseException:
        with suppress(Trouble):  # what failed first is what has to be told
            _run_all("after_block", state.after_block, state.within_s, log)
        raise
    _run_all("after_block", state.after_block, state.within_s, log)


def _run_all(key: str, commands: Sequence[str], within_s: float, log: Path) -> None:
    for command in commands:
        _run(key, command, within_s, log)


def _run(key: str, command: str, within_s: float, log: Path) -> None:
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        output.write(f"{key}: {command}\n".encode())
        output.flush()
        # It ends when webdyno does, even by kill -9.
        process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "sh", "-c", command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = process.wait(within_s)
        except subprocess.TimeoutExpired:
            raise Trouble(
                f"state.{key}: {command!r} did not end within {within_s:g} s (state.within_s); "
                f"what it said is in {log}"
            ) from None
        finally:
            # Nothing that it started in the background outlives it.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    if code != 0:
        raise Trouble(
            f"state.{key}: {command!r} ended with exit code {code}; the end of {log}:\n{_end(log)}"
        )


def _end(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines()[-SHOWN_LINES:]
    return "\n".join(f"    {line}" for line in lines)
