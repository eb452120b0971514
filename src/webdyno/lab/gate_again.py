"""What a gate says of where to look: the commits between both revisions, what asks for it again."""

import re
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from webdyno.definitions import Override
from webdyno.model.format import count

if TYPE_CHECKING:
    from webdyno.revisions.repository import Repository, Revision

MOST_NAMED, MOST_LETTERS, DIGITS = 3, 60, 7
"""Commits of a range that are named, letters of what their authors called them, of their hashes."""
LONGEST_FLAG = 200
"""Longer ones are cut where messages show them: they would ask for something else."""
AGAIN = re.compile(r" (?=--(?:traffic|ignore) )")
"""Where a flag begins that was given again."""


def commits_between(repository: "Repository", old: "Revision", new: "Revision") -> str:
    """Name the commits that head has and the baseline lacks."""
    commits = repository.since(old, new)
    named = []
    if new.has_changes:  # which are a commit of webdyno's own
        named, commits = ["changes that aren't committed"], commits[1:]
    named += [f"{commit.hash[:DIGITS]} {_short(commit.subject)}" for commit in commits[:MOST_NAMED]]
    if len(commits) > MOST_NAMED:
        named.append(f"{len(commits) - MOST_NAMED} more")
    newest = commits[0].hash if commits else new.commit
    between = f"{old.commit[:DIGITS]}..{newest[:DIGITS]}, " if commits else ""
    return f"{between}{count(len(commits), 'commit')}: {'; '.join(named)}" if named else ""


def _short(subject: str) -> str:
    said = "".join(
        character if character.isprintable() else "…" for character in " ".join(subject.split())
    )
    return said if len(said) <= MOST_LETTERS else f"{said[: MOST_LETTERS - 1]}…"


def repeat_words(
    named: Sequence[tuple[str, str | None]],
    limits: Sequence[str],
    site: str | None,
    overrides: Sequence[Override],
) -> str:
    """Give the command that asks the same of the same revisions, but for endpoints.

    `named`: flags and what they name. Empty where that can't be told in one line: of keywords, of
    long flags, and of curl commands, which may hold secrets.
    """
    flags = [part for override in overrides for part in AGAIN.split(override.flag)]
    if not all(
        flag.startswith("-") and "…" not in flag and len(flag) < LONGEST_FLAG for flag in flags
    ):
        return ""
    words = ["webdyno", "gate"]
    words += [word for flag, value in named if value for word in (flag, value)]
    words += [f"--fail-if={limit}" for limit in limits]
    words += ["--site", site] if site else []
    words += [word for flag in dict.fromkeys(flags) for word in flag.split(" ", 1)]
    said = shlex.join(words)
    return said if said.isprintable() else ""
