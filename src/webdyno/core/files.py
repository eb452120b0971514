"""Files that are written whole, folders that are opened without links of others.

Whatever is written by name is written here: no link leads elsewhere, whoever put it there.
"""

import errno
import hashlib
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from webdyno.core.errors import OperationError, UserError
from webdyno.core.whose import FOLDER, followed, trusted_users

MIB = 2**20


@contextmanager
def reading(named: object) -> Iterator[None]:
    """Raise UserError where the file can't be read; `named` is its path, or what names it."""
    try:
        yield
    except FileNotFoundError:
        raise UserError(f"{named}: there is no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise unreadable(named, error) from error


def unreadable(named: object, error: OSError | ValueError) -> UserError:
    return UserError(f"{named}: can't be read: {cause_of(error)}")


@contextmanager
def writing(path: Path, then: str = "") -> Iterator[None]:
    """Raise OperationError where the file can't be written; `then` is what to do once it can be."""
    try:
        yield
    except OSError as error:
        raise OperationError(f"{path}: can't be written: {cause_of(error)}{then}") from error


def cause_of(error: OSError | ValueError) -> str:
    """Return why a file can't be read or written."""
    if not isinstance(error, OSError):
        return str(error)
    fix = "; make room" if error.errno in {errno.ENOSPC, errno.EDQUOT} else ""
    return f"{error.strerror or error}{fix}"


STREAMS = re.compile(r"/dev/(stdout|stderr|null|tty|fd/\d+)|/proc/self/fd/\d+")
"""Names of what a process has open, or nothing: these are written to, not replaced."""


@contextmanager
def replacing(path: Path, below: Path | None = None) -> Iterator[Path]:
    """Return a path to write a file to, which takes its place at the end, or is gone if that fails.

    No link is followed, as the folder may be somebody else's: what lies there by that name is
    replaced if it is a link, and refused if it is neither link nor file. `below` and the folders
    between it and the file are made; the latter have to be folders, no links.
    """
    if STREAMS.fullmatch(str(path)):
        yield path
        return
    name, unfinished = path.name, f".{path.name}.{secrets.token_hex(8)}"
    with folder_inside(path.parent, below) as folder:
        with suppress(FileNotFoundError):
            mode = os.lstat(name, dir_fd=folder).st_mode
            if not (stat.S_ISREG(mode) or stat.S_ISLNK(mode)):
                raise OSError(errno.EINVAL, "there is something that is no regular file")
        try:
            yield Path(f"/proc/self/fd/{folder}", unfinished)
            os.replace(unfinished, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(unfinished, dir_fd=folder)
            raise


@contextmanager
def folder_inside(folder: Path, below: Path | None = None, *, makes: bool = True) -> Iterator[int]:
    """Open a folder, to name files in it; `makes` makes `below`, and folders from there to it.

    Raise NotADirectoryError where one of the latter is a link, also if it leads to a folder; as
    root also where a link of another user's is on the way to the folder, who may have put it there
    a moment ago.
    """
    place = folder if below is None else below
    if below is not None and makes:
        below.mkdir(parents=True, exist_ok=True)
    there = _opened_folder(place)
    try:
        for part in folder.relative_to(place).parts:
            if part == "..":
                raise NotADirectoryError(errno.ENOTDIR, f"{folder} leads out of {place}")
            if makes:
                with suppress(FileExistsError):
                    os.mkdir(part, dir_fd=there)
            try:
                inner = os.open(part, FOLDER | os.O_NOFOLLOW, dir_fd=there)
            except NotADirectoryError:
                said = f"{part} in {place} is a link, or no folder; remove it"
                raise NotADirectoryError(errno.ENOTDIR, said) from None
            os.close(there)
            there = inner
        yield there
    finally:
        os.close(there)


def named_folder(path: Path) -> tuple[Path, int]:
    """Return where a folder is and the id of its owner, whatever somebody puts there later.

    As root raise OSError where a link of another user's is on the way to it, or is it.
    """
    opened = _opened_folder(path)
    try:
        return Path(f"/proc/self/fd/{opened}").readlink(), os.fstat(opened).st_uid
    finally:
        os.close(opened)


def _opened_folder(place: Path) -> int:
    if os.geteuid() != 0:
        return os.open(place, FOLDER)

    def refuse_links(part: int, _: Path) -> None:
        status = os.fstat(part)
        if stat.S_ISLNK(status.st_mode) and status.st_uid not in trusted_users():
            goal = os.readlink("", dir_fd=part)
            said = f"a link of user {status.st_uid}'s to {goal} is on the way; name that folder"
            raise NotADirectoryError(errno.ENOTDIR, said)

    end = followed(place, refuse_links)
    try:
        return os.open(".", FOLDER, dir_fd=end)
    finally:
        os.close(end)


def write_whole(
    path: Path,
    content: str | bytes,
    then: str = "",
    *,
    below: Path | None = None,
    mode: int = 0o666,
) -> None:
    """Write a file as a whole or not at all, as `replacing` has it; `mode` is less the umask.

    Raise OperationError when it can't be written; `then` is what to do once it can be.
    """
    # Half a character, as JSON may hold it, must not cost the file.
    data = content if isinstance(content, bytes) else content.encode(errors="backslashreplace")
    with writing(path, then), replacing(path, below) as unfinished:
        new = os.O_EXCL if unfinished != path else 0
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | new | os.O_CLOEXEC, mode)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)


def new_file(path: Path, mode: int = 0o600) -> IO[bytes]:
    """Make a file, which nobody but us can open before it is opened to others."""
    new = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    return os.fdopen(os.open(path, new, mode), "wb")


def open_here(path: Path, flags: int, below: Path | None = None, mode: int = 0o666) -> IO[bytes]:
    """Open a regular file to write into it where it is, made if it isn't there; follow no link.

    Raise OSError for what is something else. `below` and `mode` are as in `write_whole`.
    """
    safe = os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with folder_inside(path.parent, below) as folder:
        descriptor = os.open(path.name, flags | safe, mode, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "is no regular file")
    return os.fdopen(descriptor, "r+b" if flags & os.O_RDWR else "wb")


def append_text(path: Path, text: str) -> None:
    """Add a text to a file, on a line of its own; raise OperationError where that can't be."""
    with writing(path), open_here(path, os.O_RDWR | os.O_APPEND) as file:
        if (length := file.seek(0, os.SEEK_END)) and os.pread(
            file.fileno(), 1, length - 1
        ) != b"\n":
            text = f"\n{text}"  # the last line was cut off
        file.write(text.encode(errors="backslashreplace"))


def state_folder() -> Path:
    """Return the folder for what outlives a run: XDG Base Directory Specification."""
    home = os.environ.get("XDG_STATE_HOME", "")
    base = Path(home) if home.startswith("/") else Path.home() / ".local/state"
    return base / "webdyno"


def digest_of(file: Path) -> bytes:
    """Return the SHA-256 of a file of any size."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").digest()


def everything_below(folder: Path) -> Iterator[Path]:
    """Return all files, links and folders below a folder, without following links.

    However deep they are, as far as a path can be long. What can't be listed is passed over.
    """
    to_list = [folder]
    while to_list:
        with suppress(OSError), os.scandir(to_list.pop()) as entries:
            for entry in entries:
                yield Path(entry.path)
                if entry.is_dir(follow_symlinks=False):
                    to_list.append(Path(entry.path))


def checked_files(folder: Path) -> dict[str, Path]:
    """Return the files and folders below a folder, by their path in it, in the order of names.

    Raise UserError for a symbolic link that leads out of the folder, and for what is neither file
    nor folder, such as a pipe, which would keep its reader waiting for ever.
    """
    inside = folder.resolve()
    files: dict[str, Path] = {}
    for path in everything_below(folder):
        if not path.resolve().is_relative_to(inside):
            raise UserError(f"{path} leads out of {folder}: a catalog's files stay inside")
        if not (path.is_file() or path.is_dir()):
            raise UserError(f"{path} is no file and no folder; remove it")
        files[path.relative_to(folder).as_posix()] = path
    return dict(sorted(files.items()))
