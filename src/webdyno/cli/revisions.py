"""What Git says of two revisions: what they are called, and which files are other."""

import os
import subprocess
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from webdyno.model.mistake import Mistake

WORKING_TREE = "."
DOCUMENTATION = (
    "*.md",
    "*.rst",
    "*.adoc",
    "LICENSE*",
    "LICENCE*",
    "COPYING*",
    "AUTHORS*",
    "CHANGELOG*",
    "CHANGES*",
    "CONTRIBUTING*",
    "CODEOWNERS",
    ".gitignore",
    ".mailmap",
)
"""Names of files that no server reads. A folder `docs` may be served: what is in it counts by its
own name."""


class Repository:
    """The Git repository around a folder."""

    def __init__(self, inside: Path) -> None:
        """Find it; raise Mistake where there is none."""
        self.top = inside
        top = self._ask("rev-parse", "--show-toplevel")
        if top is None:
            raise Mistake(
                f"{inside}: is in no Git repository, so there are no revisions to compare; call "
                "webdyno from inside one"
            )
        self.top = Path(top.strip())

    def commit(self, revision: str, flag: str) -> str:
        """Give a revision's commit; raise Mistake, naming the flag, where there is none."""
        found = self._ask("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
        if revision.startswith("-") or found is None:
            raise Mistake(
                f"{flag} {revision}: there is no such revision in {self.top}; a branch of a server "
                "has to be fetched first (git fetch), and a shallow clone lacks old ones "
                "(git fetch --unshallow)"
            )
        return found.strip()

    def describe(self, revision: str, flag: str) -> str:
        """Name a revision with its commit: `origin/main (1a2b3c4)`."""
        if revision == WORKING_TREE:
            return f"the working tree (on {self.commit('HEAD', flag)[:7]})"
        commit = self.commit(revision, flag)
        return revision if commit.startswith(revision) else f"{revision} ({commit[:7]})"

    def changed(self, base: str, head: str) -> list[str]:
        """List the files that differ between two revisions; what Git ignores is left out."""
        commits = [self.commit(base, "--base")]
        if head != WORKING_TREE:
            commits.append(self.commit(head, "--head"))
        differing = self._ask("diff", "--name-only", "--no-renames", "-z", *commits, "--")
        new = ""
        if head == WORKING_TREE:
            new = self._ask("ls-files", "--others", "--exclude-standard", "-z") or ""
        return sorted({name for name in f"{differing or ''}{new}".split("\0") if name})

    def _ask(self, *words: str) -> str | None:
        """Ask Git; None where it refuses."""
        try:
            done = subprocess.run(
                ["git", "-C", str(self.top), *words],
                capture_output=True,
                check=False,
                stdin=subprocess.DEVNULL,
                env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
            )
        except FileNotFoundError:
            raise Mistake("git isn't installed, and revisions can't be compared without") from None
        return os.fsdecode(done.stdout) if done.returncode == 0 else None


def only_documentation(changed: Sequence[str]) -> bool:
    """Tell whether no server reads any of these files, going by their names."""
    return all(
        any(fnmatchcase(PurePosixPath(name).name, pattern) for pattern in DOCUMENTATION)
        for name in changed
    )


def nothing_to_measure(changed: Sequence[str]) -> str | None:
    """Say why two revisions needn't be measured; None where they must be."""
    if not changed:
        return "nothing changed: both are the same"
    if not only_documentation(changed):
        return None
    named = ", ".join(changed[:3]) + (f" and {len(changed) - 3} more" if len(changed) > 3 else "")
    return f"only documentation changed ({named}): nothing to measure"
