"""A run's folder: its head in `run.json`, what was measured in `slots.jsonl`, a folder per variant.

`slots.jsonl` is the one truth of a run. It is only ever appended to, a line at a time, so that
whatever ends webdyno leaves every finished slot behind. Format: docs/reference/run-folder.md.
"""

import fcntl
import io
import json
import logging
import os
import stat
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Self, TypeVar

from pydantic import ValidationError

from webdyno.config.reading import first_fault
from webdyno.core.errors import OperationError, UserError
from webdyno.core.files import (
    MIB,
    cause_of,
    folder_inside,
    make_folder,
    read_given,
    reading,
    unreadable,
    write_whole,
    writing,
)
from webdyno.core.migration import OLDEST_FORMAT, migrated_head
from webdyno.core.records import Record, RoundRecord
from webdyno.core.run import (
    CONFIRMATION_FOLDER,
    FORMAT,
    MOST_DIGITS,
    MOST_STACKS_BYTES,
    RUNS_FOLDER,
    RunHead,
    profile_run,
    read_stacks,
    round_path,
    stacks_file,
    variant_folder,
    written_stacks,
)
from webdyno.host.users import close_to_others
from webdyno.host.workspace import locks_held, open_lock
from webdyno.measure.records_file import MOST_RECORDS_BYTES, RECORDS_FILE, records_of, whole_lines
from webdyno.measure.redact import line_of, names_in, without_secrets

if TYPE_CHECKING:  # numpy takes a while to import
    from webdyno.evidence.point_data import RunData

logger = logging.getLogger(__name__)

HEAD_FILE = "run.json"
LOCK_FILE = ".lock"
"""Held by the process that appends. Nobody but its owner can open it, and so hold it."""
MOST_HEAD_BYTES = 16 * MIB
WITHOUT, MOST_WORDS_BYTES = ".txt", 4096
"""The file, next to where profile rounds would lie, that says why there are none."""

Write = Callable[[int, bytes], int]
R = TypeVar("R", bound=Record)

_ONE_READS = Lock()
"""One thread at a time reads records, as their memory is measured by the growth of the process."""


def newest_run(below: Path) -> Path | None:
    """Return the folder of the run that began last, of those in a folder; None where none is."""
    began_at = run_folders(below)
    return max(began_at, key=began_at.__getitem__, default=None)


def run_folders(below: Path, depth: int = 1) -> dict[Path, float]:
    """Return the folders of runs so deep below a folder, and when each began.

    What can't be looked into is passed over, such as a link to a name that is too long.
    """
    places = [below]
    for _ in range(depth):
        above, places = places, []
        for place in above:
            with suppress(OSError):
                places += place.iterdir()
    began_at = {}
    for place in places:
        with suppress(OSError):
            began_at[place] = (place / HEAD_FILE).lstat().st_mtime
    return began_at


def run_around(path: Path) -> Path | None:
    """Return the run's folder that another run lies in, as those of `explain` do; None for none."""
    around = None
    for folder in path.parents[:2]:
        is_inside = ".." not in path.relative_to(folder).parts
        if is_inside and os.path.lexists(folder / HEAD_FILE):
            around = folder
    return around


class RunFolder:
    """A run on disk, which one process at a time may append to until it leaves the context."""

    def __init__(self, path: Path, head: RunHead, write: Write = os.write) -> None:
        self.path = path
        self.head = head
        self._write = write
        self._file: int | None = None
        self._lock: int | None = None

    @classmethod
    def create(cls, path: Path, head: RunHead) -> Self:
        """Begin a run in a new or empty folder, and hold it; raise UserError, OperationError."""
        is_first = path.parent.name == RUNS_FOLDER.name and not path.parent.exists()
        try:
            make_folder(path, run_around(path))  # raises where a link within that run leads there
            if is_first:  # what is measured is no change of the working tree
                write_whole(path.parent / ".gitignore", "*\n")
            if any(path.iterdir()):
                raise UserError(
                    f"{path} is not empty: a run needs a folder of its own. "
                    "Name another one with --output."
                )
            close_to_others(path)  # what is sent, and configurations, come into it
        except OSError as error:
            raise OperationError(f"{path}: can't begin a run there: {cause_of(error)}") from error
        write_whole(path / HEAD_FILE, head.model_dump_json(indent=2) + "\n")
        logger.debug("made the run's folder %s", path)
        folder = cls(path, head)
        folder.hold()
        return folder

    @classmethod
    def open(cls, path: Path) -> Self:
        """Read the head of a run that exists. Raises UserError when the folder holds none.

        Of one within another run's folder no folder on the way there may be a link.
        """
        file = path / HEAD_FILE
        try:
            text = read_given(file, MOST_HEAD_BYTES, below=run_around(path)).decode()
        except (FileNotFoundError, NotADirectoryError):
            raise UserError(
                f"{path} holds no run: there is no {HEAD_FILE} in it. "
                "Give the folder that `webdyno run` named at its end."
            ) from None
        except (OSError, ValueError) as error:  # ValueError: not UTF-8, or a NUL in the path
            raise unreadable(file, error) from error
        return cls(path, _parse_head(file, text))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the run; `append` and `hold` take it again."""
        for descriptor in (self._file, self._lock):
            if descriptor is not None:
                os.close(descriptor)
        self._file = self._lock = None

    def hold(self) -> None:
        """Take the run for appending; raise UserError when another process is appending to it."""
        if self._file is not None:
            return
        # In the open folder, whatever somebody puts in its place meanwhile.
        around = run_around(self.path)
        with writing(self.path), folder_inside(self.path, around, makes=False) as folder:
            lock = open_lock(self.path / LOCK_FILE, folder)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._file = _opened_for_appending(self.path / RECORDS_FILE, folder)
            except BlockingIOError:
                os.close(lock)
                raise UserError(
                    f"{self.path}: another webdyno is adding to this run. "
                    "Wait until it has ended, or begin another run with --output."
                ) from None
            except BaseException:
                os.close(lock)
                raise
            self._lock = lock

    @cached_property
    def _names(self) -> frozenset[str]:
        return names_in(self.head)

    def cleaned(self, record: R) -> R:
        """Return a record without secrets: before texts of others in it are cut or gone on with."""
        return without_secrets(record, self._names)

    def append(self, record: R) -> R:
        """Add a record as one line, handed to the kernel before this returns; return what is kept.

        That is the record without secrets. The end of a round is also forced to the disk. Raises
        OperationError, as on a full disk; what was there before stays whole.
        """
        self.hold()
        assert self._file is not None  # noqa: S101 (hold took it)
        record = self.cleaned(record)
        line = line_of(record)
        size = os.fstat(self._file).st_size
        if size + len(line) > MOST_RECORDS_BYTES:
            raise OperationError(
                f"{self.path / RECORDS_FILE}: full: a run keeps {MOST_RECORDS_BYTES // MIB} MiB of "
                "records at most. `webdyno report` shows what was measured; go on in another run."
            )
        with writing(self.path / RECORDS_FILE):
            try:
                written = 0
                while written < len(line):
                    written += self._write(self._file, line[written:])
                if isinstance(record, RoundRecord):
                    os.fsync(self._file)
            except OSError:
                os.ftruncate(self._file, size)
                raise
        return record

    def data(self) -> "RunData":
        """Read everything measured so far as the judge needs it; raises UserError at a bad line."""
        from webdyno.evidence.point_data import RunData

        again = self.path / CONFIRMATION_FOLDER
        second = RunFolder.open(again) if (again / HEAD_FILE).exists() else None
        return RunData(
            self.head,
            self.records(),
            dict(self._profiles()),
            RunData(second.head, second.records()) if second else None,
        )

    def _profiles(self) -> "Iterator[tuple[int, RunData | str]]":
        """Read the profile rounds of a gate's points, or why there are none."""
        from webdyno.evidence.point_data import RunData

        paths = profile_run(self.path, 0).parent.glob("profile-*")
        for path in sorted(paths, key=lambda path: path.suffix != WITHOUT):  # rounds count more
            _, _, number = path.stem.partition("-")
            if not number.isdecimal() or len(number) > MOST_DIGITS:
                continue
            if path.suffix == WITHOUT:
                with suppress(OSError):
                    why = read_given(path, MOST_WORDS_BYTES, below=self.path)
                    yield int(number), why.decode(errors="replace").strip()
            elif (path / HEAD_FILE).exists():
                profile = RunFolder.open(path)
                yield int(number), RunData(profile.head, profile.records())

    def keep_without_profile(self, point: int, why: str) -> None:
        """Keep why a gate's point has no profile rounds; raise OperationError if that fails."""
        file = profile_run(self.path, point).with_suffix(WITHOUT)
        write_whole(file, f"{why}\n", below=self.path)

    def records(self) -> list[Record]:
        """Read everything measured so far, in order; raise UserError at a bad line."""
        file = self.path / RECORDS_FILE
        with _ONE_READS, reading(file):
            try:
                return list(records_of(file, run_around(self.path)))
            except FileNotFoundError:
                return []

    def round_log(self, point: int, round_number: int, name: str) -> Path:
        """Return a path for what a round keeps; raise UserError where it leads out of the run."""
        log = round_path(self.path, point, round_number) / name
        if not log.resolve().is_relative_to(self.path.resolve()):
            raise UserError(f"{log} leads out of {self.path}: remove that symbolic link")
        return log

    def round_folder(self, point: int, round_number: int, variant: str) -> Path:
        """Return a variant's folder in a round (configs, error logs), made if it isn't there."""
        folder = self.round_log(point, round_number, variant_folder(variant))
        try:
            with folder_inside(folder, self.path):
                return folder
        except OSError as error:
            raise OperationError(f"{folder}: can't be made: {cause_of(error)}") from error

    def add_stacks(self, variant: str, stacks: Mapping[str, int]) -> None:
        """Add samples of a variant's stacks to those kept; raise UserError, OperationError."""
        file, kept = stacks_file(self.path, variant), Counter[str]()
        with reading(file), suppress(FileNotFoundError):
            given = read_given(file, MOST_STACKS_BYTES, below=self.path)
            kept = read_stacks(given.decode(errors="replace"))
        kept.update(stacks)
        write_whole(file, written_stacks(kept), below=self.path)


def is_held(path: Path) -> bool:
    """Whether a process appends to the run in a folder.

    The kernel's list of locks is read, since trying the lock might be in that process's way. It
    names inodes, and one of another file system may have the same: so the owners are compared.
    """
    try:
        lock = (path / LOCK_FILE).lstat()
        holder = locks_held().get(lock.st_ino)
        return holder is not None and Path(f"/proc/{holder}").stat().st_uid in {0, lock.st_uid}
    except (OSError, ValueError):
        return False


def _opened_for_appending(file: Path, folder: int) -> int:
    """Open the records of a run whose lock is held, and cut off what is torn at their end."""
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with writing(file):
        descriptor = os.open(file.name, flags, 0o644, dir_fd=folder)
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise OperationError(f"{file}: can't be written: it is not a regular file")
    if status.st_nlink > 1:
        os.close(descriptor)
        raise OperationError(
            f"{file} has another name as well (a hard link), under which it would be changed, too; "
            "put a copy in its place"
        )
    try:
        _repair_end(descriptor, file)
    except OSError as error:
        os.close(descriptor)
        raise OperationError(f"{file}: can't be continued: {cause_of(error)}") from error
    return descriptor


def _parse_head(file: Path, text: str) -> RunHead:
    try:
        raw = json.loads(text)
        match raw:
            case {"format": file_format}:
                pass
            case _:
                file_format = None
        if isinstance(file_format, int) and file_format < OLDEST_FORMAT:
            raise UserError(f"{file}: made by an older version of webdyno; measure again")
        if file_format not in {OLDEST_FORMAT, FORMAT}:
            raise UserError(
                f"{file}: format {file_format!r:.40}, but this webdyno reads format {FORMAT}. "
                "Use the version of webdyno that made the run."
            )
        if file_format == OLDEST_FORMAT:
            text = json.dumps(migrated_head(raw))
        return RunHead.model_validate_json(text)
    except (ValueError, RecursionError) as error:
        problem = first_fault(error) if isinstance(error, ValidationError) else str(error)
        raise UserError(f"{file}: not the head of a run: {problem}") from error


def _repair_end(descriptor: int, file: Path) -> None:
    """Cut off what is torn, so that the next record begins a line of its own."""
    size = os.fstat(descriptor).st_size
    ends_at = 0
    for line in whole_lines(io.FileIO(descriptor, closefd=False), file):
        ends_at = line.ends_at
    if size and (size != ends_at + 1 or os.pread(descriptor, 1, ends_at) != b"\n"):
        os.ftruncate(descriptor, ends_at)
        if ends_at:
            os.write(descriptor, b"\n")
