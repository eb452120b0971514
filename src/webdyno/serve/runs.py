"""The runs of a folder: which there are, whether they go on, and what they say."""

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Literal

from webdyno.bench.workspace import locks_held
from webdyno.judge.sweep import judge_sweep
from webdyno.model.mistake import Mistake
from webdyno.model.point import SweepJudgement
from webdyno.model.run import PAGE_FILE
from webdyno.report.page import write_report
from webdyno.report.view import RunView, run_view
from webdyno.run.folder import HEAD_FILE, RECORDS_FILE, RunFolder

DEEPEST = 3
"""Folders below the one that is served: studies and searches have runs in folders of their own."""
State = Literal["running", "ended"]


@dataclass(frozen=True)
class RunRow:
    """A run as the list shows it; its verdict takes longer, and is asked for by itself."""

    name: str
    """Its path below the folder."""
    title: str
    arms: list[str]
    started_at: datetime
    state: State


class Runs:
    """What lies in a folder; nothing outside of it is shown."""

    def __init__(self, root: Path) -> None:
        """Look there."""
        self.root = root.resolve()

    def rows(self) -> list[RunRow]:
        """List the runs, the newest first; what can't be read is left out."""
        found = []
        for path in self._paths():
            with suppress(Mistake):
                head = RunFolder.open(path).head
                found.append(
                    RunRow(
                        name=str(path.relative_to(self.root)),
                        title=head.experiment.title,
                        arms=list(head.experiment.arms),
                        started_at=head.started_at,
                        state=state_of(path),
                    )
                )
        return sorted(found, key=lambda it: it.started_at, reverse=True)

    def _paths(self) -> Iterator[Path]:
        for place, folders, files in os.walk(self.root):
            depth = len(Path(place).relative_to(self.root).parts)
            if HEAD_FILE in files:
                yield Path(place)
            if depth >= DEEPEST:
                folders.clear()
            folders[:] = [it for it in folders if it not in {"blocks", "catalog"}]

    def open(self, name: str) -> RunFolder:
        """Open a run by its name; raise Mistake where there is none inside the folder."""
        path = (self.root / name).resolve()
        if not path.is_relative_to(self.root):
            raise Mistake(f"{name}: lies outside of {self.root}")
        return RunFolder.open(path)


def state_of(path: Path) -> State:
    """Tell whether a run is being measured: then its process holds a lock on what it writes.

    The kernel's list of locks is read, since trying the lock might be in that process's way.
    """
    try:
        return "running" if (path / RECORDS_FILE).stat().st_ino in locks_held() else "ended"
    except OSError:
        return "ended"


def seen(folder: RunFolder) -> tuple[SweepJudgement, RunView]:
    """Judge a run, unless that was done since it last changed."""
    with suppress(OSError):
        changed = (folder.path / RECORDS_FILE).stat()
        return _seen(folder.path, changed.st_mtime_ns, changed.st_size)
    return _seen(folder.path, 0, 0)


@lru_cache(maxsize=64)
def _seen(path: Path, _changed_ns: int, _size: int) -> tuple[SweepJudgement, RunView]:
    folder = RunFolder.open(path)
    records = folder.records()
    judged = judge_sweep(folder.head, records)
    return judged, run_view(folder.head, records, judged)


def page_of(folder: RunFolder) -> Path:
    """Give the report, drawn anew where the run went on since."""
    page, records = folder.path / PAGE_FILE, folder.path / RECORDS_FILE
    with suppress(OSError):
        if page.stat().st_mtime_ns >= records.stat().st_mtime_ns:
            return page
    return write_report(folder.path, seen(folder)[1])
