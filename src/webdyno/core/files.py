"""Files that others made, read within limits; files written whole; folders opened without links.

Whatever is written by name is written here: no link leads elsewhere, whoever put it there. What is
read is a regular file, of no more than a size.
"""

import errno
import hashlib
import io
import logging
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from webdyno.core.errors import OperationError, UserError
from webdyno.core.text import in_shell
from webdyno.core.whose import FOLDER, followed, opened, trusted_users

logger = logging.getLogger(__name__)

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
    """Open a folder, to name files in it; `makes` makes `below`, what is above it, and the way.

    Raise NotADirectoryError where one of the latter is a link, also if it leads to a folder; as
    root also where a link of another user's is on the way to the folder, who may have put it there
    a moment ago.
    """
    place = folder if below is None else below
    if below is not None and makes:
        place = next(part for part in (below, *below.parents) if os.path.lexists(part))
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


def make_folder(folder: Path, below: Path | None = None) -> None:
    """Make a folder as `folder_inside` does, and raise what that raises."""
    with folder_inside(folder, below or folder):
        pass


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
    end = followed(place, _refuse_others_link)
    try:
        return os.open(".", FOLDER, dir_fd=end)
    finally:
        os.close(end)


def _refuse_others_link(part: int, _: Path) -> None:
    status = os.fstat(part)
    if stat.S_ISLNK(status.st_mode) and status.st_uid not in trusted_users():
        goal = os.readlink("", dir_fd=part)
        said = f"a link of user {status.st_uid}'s to {goal} is on the way; name that place itself"
        raise NotADirectoryError(errno.ENOTDIR, said)


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


def append_text(path: Path, text: str, *, mode: int = 0o666) -> None:
    """Add a text to a file, on a line of its own; raise OperationError where that can't be.

    `mode` is as in `write_whole`.
    """
    with writing(path), open_here(path, os.O_RDWR | os.O_APPEND, mode=mode) as file:
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


def _demand_listed(folder: Path) -> None:
    if not os.access(folder, os.R_OK | os.X_OK):
        raise UserError(f"{folder} can't be listed: chmod u+rx {in_shell(folder)}")


def checked_files(folder: Path) -> dict[str, Path]:
    """Return the files and folders below a folder, by their path in it, in the order of names.

    Raise UserError for a symbolic link that leads out of the folder, for what is neither file nor
    folder, such as a pipe, which would keep its reader waiting for ever, and for a folder in which
    files can be found by their names alone, since it can't be listed.
    """
    inside = folder.resolve()
    files: dict[str, Path] = {}
    _demand_listed(folder)
    for path in everything_below(folder):
        if not path.resolve().is_relative_to(inside):
            raise UserError(f"{path} leads out of {folder}: a catalog's files stay inside")
        if not (path.is_file() or path.is_dir()):
            raise UserError(f"{path} is no file and no folder; remove it")
        if path.is_dir():
            _demand_listed(path)
        files[path.relative_to(folder).as_posix()] = path
    return dict(sorted(files.items()))


def open_given(file: Path, *, follow: bool = False, named: str = "") -> io.FileIO:
    """Open a file that somebody else may have made; a symbolic link only with `follow`.

    Messages call it `named`, or by its path. It never waits for a pipe and reads no device. Raise
    UserError for what isn't a regular file, OSError for what can't be opened.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    logger.debug("reads %s", named or file)
    try:
        descriptor = os.open(file, flags)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise UserError(
                f"{named or file} is a symbolic link; put the file itself there"
            ) from None
        if error.errno == errno.ENXIO:  # a socket
            raise _irregular(named or file) from None
        raise
    except ValueError as error:  # a NUL in the path
        raise unreadable(named or file, error) from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _irregular(named or file)
    return io.FileIO(descriptor)


def open_given_inside(file: Path, below: Path | None = None) -> io.FileIO:
    """Open a file of a folder that somebody else may be changing, such as a log of his run.

    As `open_given` has it; raise OSError also where links lead there, as `folder_inside` does.
    """
    with folder_inside(file.parent, below, makes=False) as folder:
        return open_given(Path(f"/proc/self/fd/{folder}", file.name), named=str(file))


def _irregular(named: object) -> UserError:
    return UserError(f"{named} is not a regular file; put one there")


def read_named(file: Path, most_bytes: int, place: str = "") -> bytes:
    """Read a file that the user names, at a place that messages begin with.

    Raise UserError where it can't be read, is no regular file or larger than `most_bytes`, and
    where a link of another user's leads there, to a file of the caller's perhaps.
    """
    named = f"{place}: {file}" if place else str(file)
    with reading(named), open_named(file, named) as given:
        return _content(given, most_bytes, named)


def open_named(file: Path, named: str) -> io.FileIO:
    """Open a file that the user names, as `read_named` has it; raise OSError for such a link."""
    try:
        end = followed(file, _refuse_others_link)
    except ValueError as error:  # a NUL in the path
        raise unreadable(named, error) from None
    try:
        return open_given(Path(f"/proc/self/fd/{end}"), follow=True, named=named)
    finally:
        os.close(end)


def read_own(file: Path, most_bytes: int) -> tuple[bytes, Path | None]:
    """Read a file as `read_named`; return also what of it or the way there others may change."""
    try:
        with reading(file), opened(file) as end:
            there = Path(f"/proc/self/fd/{end.descriptor}")
            with open_given(there, follow=True, named=str(file)) as given:
                return _content(given, most_bytes, file), end.others
    except ValueError as error:  # a NUL in the path
        raise unreadable(file, error) from None


def neighbor(file: Path, name: str, place: str) -> Path:
    """Return the path of a file that another one names, whose content is to be sent.

    Raise UserError where name or link leads out of that one's folder, and where others may change
    either file or what leads there, and so have anything there by the time that it is read.
    """
    folder, path = file.parent, file.parent / name
    try:
        for part, said in ((file, str(file)), (path, f"{place}: {path}")):
            with reading(said), opened(part) as end:
                if end.others:
                    raise UserError(
                        f"{place}: others may change {end.others}, and {name} would be sent: copy "
                        "both files to where only you can write"
                    )
    except ValueError as error:  # a NUL in its name, or what is no letter
        raise unreadable(f"{place}: {name!r}", error) from None
    if not path.resolve().is_relative_to(folder.resolve()):
        raise UserError(
            f"{place}: {name} isn't below {folder.absolute()}, where the file lies that names it: "
            "put it there"
        )
    return path


def read_given(file: Path, most_bytes: int, *, below: Path | None = None) -> bytes:
    """Read a file that somebody else may have made, such as one of a run's folder.

    As `open_given`; raise UserError for a file of more than `most_bytes` as well. None of the
    folders `below` which it lies may be a link: raise OSError for one.
    """
    with open_given_inside(file, below) if below else open_given(file) as given:
        return _content(given, most_bytes, file)


def _content(given: io.FileIO, most_bytes: int, named: object) -> bytes:
    content = bytearray()
    while part := given.read(min(MIB, most_bytes + 1 - len(content))):
        content += part
    if len(content) > most_bytes:
        raise _too_large(named, most_bytes)
    return bytes(content)


def given_lines(given: io.FileIO, file: Path, most_bytes: int) -> Iterator[bytes]:
    """Read an open file that somebody else may have made line by line; close it at the end.

    Raise UserError for a file of more than `most_bytes`, at once if it has them now.
    """
    with io.BufferedReader(given) as lines:
        if os.fstat(lines.fileno()).st_size > most_bytes:
            raise _too_large(file, most_bytes)
        left = most_bytes
        while line := lines.readline(left + 1):
            left -= len(line)
            if left < 0:
                raise _too_large(file, most_bytes)
            yield line


def _too_large(named: object, most_bytes: int) -> UserError:
    return UserError(f"{named} is larger than {most_bytes // MIB} MiB, the most that is read")
