"""The runs of a folder: which there are, what they say, and how new ones begin."""

import logging
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Literal, NamedTuple

from webdyno.core.errors import OperationError, UserError
from webdyno.host.children import ending_with_us, interrupt, words_of
from webdyno.measure.folder import HEAD_FILE, RunFolder, is_held
from webdyno.measure.records_file import RECORDS_FILE
from webdyno.media.document import Headlines
from webdyno.report.brief import outcome
from webdyno.report.result_page import html_page
from webdyno.report.show import RunView
from webdyno.report.view import JudgedRun, see

logger = logging.getLogger(__name__)

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


Agrees = Callable[[str], bool]
"""Asks a person whether something may be done."""
END_WITHIN_S = 30.0
LOG_BYTES = 4_000


class Begun(NamedTuple):
    """A run that was begun from the page."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    @property
    def said(self) -> str:
        """The end of what it said."""
        with suppress(OSError), self.log.open("rb") as file:
            file.seek(max(0, self.log.stat().st_size - LOG_BYTES))
            return file.read(LOG_BYTES).decode(errors="replace")
        return ""


class Starter:
    """One run at a time: two on one machine measure each other."""

    def __init__(self, root: Path, agrees: Agrees | None = None) -> None:
        """Begin runs in that folder; `agrees` asks on the terminal, None where nobody is there."""
        self._root = root
        self._agrees = agrees
        self._asking = Lock()
        self.last: Begun | None = None

    @property
    def is_busy(self) -> bool:
        """Whether a run that was begun here is under way."""
        return self.last is not None and self.last.process.poll() is None

    def begin(
        self, call: str, arguments: Mapping[str, object], own: Sequence[object] = ()
    ) -> Begun:
        """Begin a run by a call of the Python API; raise UserError during another one.

        `own` are systems that run what their author wrote: they take a yes on the terminal, as
        whoever has a page's address may not be who started it.
        """
        if not self._asking.acquire(blocking=False):
            raise UserError("another run waits for a yes on the terminal")
        try:
            if self.is_busy:
                raise UserError(
                    "another run is in progress, and two at once would distort each other: wait "
                    "for it"
                )
            if own:
                self._ask(call, own)
            return self._begin(call, arguments, allow_commands=bool(own))
        finally:
            self._asking.release()

    def _ask(self, call: str, own: Sequence[object]) -> None:
        named = " and ".join(map(str, own))
        if self._agrees is None:
            raise UserError(
                f"{named}: runs what its author wrote, which takes a yes on the terminal, and "
                f"`webdyno ui` has none here: type `webdyno {call} …` in one"
            )
        if not self._agrees(f"a page asks to build and run {named}; do that?"):
            raise UserError(f"{named}: not agreed to on the terminal; nothing was run")

    def _begin(self, call: str, arguments: Mapping[str, object], *, allow_commands: bool) -> Begun:
        self._root.mkdir(parents=True, exist_ok=True)
        name = f"{datetime.now().astimezone():%Y-%m-%d-%H%M%S}-{call}"
        log = self._root / f".{name}.log"
        given = {**arguments, "output": self._root / name, "report": True}
        try:
            with log.open("xb") as output:  # never into what somebody else has put there
                process = subprocess.Popen(
                    [
                        *ending_with_us("TERM"),
                        *words_of(call, given, allow_commands=allow_commands),
                    ],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
        except OSError as error:
            raise OperationError(f"{log}: can't begin a run: {error.strerror}") from error
        logger.debug("process %d is the run %s", process.pid, name)
        self.last = Begun(name, process, log)
        return self.last

    def interrupt(self) -> None:
        """Press Ctrl-C: the run ends with what there is."""
        if self.last is not None and self.is_busy:
            self.last.process.send_signal(signal.SIGINT)

    def end(self) -> None:
        """Interrupt the run under way and wait for it to clean up."""
        if self.last is not None:
            interrupt(self.last.process, END_WITHIN_S)
