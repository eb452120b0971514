"""Runs commands of the catalogue to their end: as servers are run, by their user and warden."""

import itertools
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

from webdyno.core.debug_log import words_without_secrets
from webdyno.core.format import last_lines
from webdyno.host.server_process import PLAIN_ENVIRONMENT
from webdyno.host.this_machine import Testbed
from webdyno.host.workspace import Workspace

logger = logging.getLogger(__name__)

WITHIN_S = 120.0
VERSION_WITHIN_S = 10.0
SHOWN_LINES = 15
MOST_SAID_BYTES = 1 << 20

_numbers = itertools.count()
_versions: dict[tuple[str, ...], str] = {}


class CommandError(Exception):
    """A command failed; the message holds its own last words, indented."""

    def __init__(self, how: str, said: str) -> None:
        """`how` it ended: with which exit code."""
        super().__init__(said)
        self.how = how


def run_checked(
    words: Sequence[str],
    *,
    cwd: Path,
    environment: Mapping[str, str],
    testbed: Testbed,
    workspace: Workspace,
    within_s: float = WITHIN_S,
) -> None:
    """Run a command; raise CommandError with the end of what it said when it fails."""
    code, said = _run(words, cwd, environment, testbed, workspace, within_s)
    if code is None:
        raise CommandError(f"no end within {within_s:g} s", last_lines(said, SHOWN_LINES))
    if code:
        raise CommandError(f"exit code {code}", last_lines(said, SHOWN_LINES))


def version_output(words: Sequence[str], testbed: Testbed, workspace: Workspace) -> str:
    """Give what a program says of its version, whatever its exit code; it is asked once."""
    key = tuple(words)
    if key not in _versions:
        folder, within_s = workspace.path, VERSION_WITHIN_S
        _, _versions[key] = _run(words, folder, PLAIN_ENVIRONMENT, testbed, workspace, within_s)
    return _versions[key]


def _run(
    words: Sequence[str],
    cwd: Path,
    environment: Mapping[str, str],
    testbed: Testbed,
    workspace: Workspace,
    within_s: float,
) -> tuple[int | None, str]:
    """Run a command and give its exit code, None where it didn't end, and what it said."""
    log = workspace.path / f"_said-{next(_numbers)}"
    logger.debug("runs %s, for %g s at most", words_without_secrets(words), within_s)
    code = testbed.run(
        words,
        cwd=cwd,
        env=environment,
        log=log,
        workspace=workspace,
        within_s=within_s,
        stop_within_s=0.5,
    )
    with log.open("rb") as file:
        said = file.read(MOST_SAID_BYTES).decode("utf-8", "replace")
    log.unlink()
    logger.debug("%s ended with exit code %s", words[0], code)
    return code, said
