"""The runs of a folder: which there are, and what they say."""

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Literal, NamedTuple

from webdyno.core.errors import UserError
from webdyno.measure.folder import HEAD_FILE, RunFolder, is_held
from webdyno.measure.records_file import RECORDS_FILE
from webdyno.media.document import Headlines
from webdyno.report.brief import outcome
from webdyno.report.result_page import html_page
from webdyno.report.show import RunView
from webdyno.report.view import JudgedRun, see

DEEPEST = 3
"""Folders below the one that is served: studies and searches have runs in folders of their own."""
Version = tuple[tuple[int, int, int], ...]
State = Literal["running", "ended"]


@dataclass(frozen=True)
class RunRow:
    """A run as the list shows it; its verdict takes longer, and is asked for by itself."""

    name: str
    """Its path below the folder."""
    title: str
    variants: list[str]
    started_at: datetime
    state: State

    @property
    def variants_unsaid(self) -> list[str]:
        """The variants, unless the title names all of them."""
        is_said = all(variant in self.title for variant in self.variants)
        return [] if is_said else self.variants


class RunList(NamedTuple):
    """The runs of a folder."""

    rows: list[RunRow]
    unread: list[str]
    """Why the others can't be shown."""


class Runs:
    """What lies in a folder; nothing outside of it is shown."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()

    def list(self) -> RunList:
        """List the runs, the newest first, and why others can't be shown."""
        rows, unread = [], []
        for path in self._paths():
            try:
                rows.append(self._row(path))
            except UserError as why:
                unread.append(str(why))
        return RunList(sorted(rows, key=lambda run: run.started_at, reverse=True), sorted(unread))

    def _row(self, path: Path) -> RunRow:
        name = str(path.relative_to(self.root))
        if not name.isprintable():
            raise UserError(f"{name!a}: rename that folder, a page can't link to such a name")
        head = RunFolder.open(path).head
        return RunRow(
            name=name,
            title=head.experiment.title,
            variants=[*head.experiment.variants],
            started_at=head.started_at,
            state=state_of(path),
        )

    def _paths(self) -> Iterator[Path]:
        for place, folders, files in os.walk(self.root):
            depth = len(Path(place).relative_to(self.root).parts)
            if HEAD_FILE in files:
                yield Path(place)
            if depth >= DEEPEST:
                folders.clear()
            folders[:] = [folder for folder in folders if folder not in {"rounds", "catalog"}]

    def open(self, name: str) -> RunFolder:
        """Open a run by its name; raise UserError where there is none inside the folder."""
        try:
            path = (self.root / name).resolve()
        except (OSError, RuntimeError, ValueError):  # too long, links in a circle, a NUL
            raise UserError(f"{name!r:.80} is no name of a run") from None
        if not path.is_relative_to(self.root):
            raise UserError(f"{name}: lies outside of {self.root}")
        return RunFolder.open(path)


def state_of(path: Path) -> State:
    """Return whether a run is being measured: then its process holds the folder's lock."""
    return "running" if is_held(path) else "ended"


def seen(folder: RunFolder) -> JudgedRun:
    """Judge a run, unless that was done since it last changed."""
    return _seen(folder.path, version_of(folder.path))


def version_of(path: Path) -> Version:
    """Return what changes with the files that a run is judged by."""
    version = []
    for file in (HEAD_FILE, RECORDS_FILE):
        with suppress(OSError):
            status = (path / file).lstat()
            version.append((status.st_ino, status.st_mtime_ns, status.st_size))
    return tuple(version)


@lru_cache(maxsize=64)
def _seen(path: Path, _: Version) -> JudgedRun:
    return see(RunFolder.open(path).data())


class OneLine(NamedTuple):
    """What a run comes to, for a row of the list."""

    tone: str
    said: str


def in_one_line(view: RunView) -> OneLine:
    """Return the first of what a run comes to, with its sign."""
    came_out = outcome(view)
    if isinstance(came_out, Headlines):
        first, *others = came_out.headlines
        more = f" (and {len(others)} more)" if others else ""
        return OneLine(first.tone.value, f"{first.words}: {first.sentence.rstrip('.')}{more}")
    counted = ", ".join(words for _, words in came_out.counts)
    return OneLine(came_out.counts[0][0].value, ". ".join([counted, *came_out.sentences[:1]]))


def page_of(folder: RunFolder) -> str:
    """Draw the report, unless that was done since the run last changed.

    The report in the folder isn't read: somebody else may have written it.
    """
    return _page_of(folder.path, version_of(folder.path))


@lru_cache(maxsize=16)
def _page_of(path: Path, version: Version) -> str:
    # Half a character, as JSON may hold it, must not cost the report.
    drawn = html_page(path, _seen(path, version).view)
    return drawn.encode(errors="backslashreplace").decode()
