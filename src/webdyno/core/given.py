"""Files that are read, whoever made them or names them: regular ones, of no more than a size."""

import errno
import io
import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from webdyno.core.errors import UserError
from webdyno.core.files import MIB, folder_inside, reading, unreadable
from webdyno.core.whose import opened

logger = logging.getLogger(__name__)


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

    Raise UserError where it can't be read, is no regular file or larger than `most_bytes`.
    """
    named = f"{place}: {file}" if place else str(file)
    with reading(named):
        return read_given(file, most_bytes, follow=True, named=named)


def read_own(file: Path, most_bytes: int) -> tuple[bytes, Path | None]:
    """Read a file as `read_named`; return also what of it or the way there others may change."""
    try:
        with reading(file), opened(file) as end:
            there = Path(f"/proc/self/fd/{end.descriptor}")
            return read_given(there, most_bytes, follow=True, named=str(file)), end.others
    except ValueError as error:  # a NUL in the path
        raise unreadable(file, error) from None


def neighbor(file: Path, name: str, place: str) -> Path:
    """Return the path of a file that another one names, whose content is to be sent.

    Raise UserError where name or link leads out of that one's folder, and where others may change
    that one, and so have put anything in the other's place by the time that it is read.
    """
    with reading(file), opened(file) as end:
        if end.others:
            raise UserError(
                f"{place}: others may change {end.others}, and {name} would be sent: copy both "
                "files to where only you can write"
            )
    folder = file.parent
    path = folder / name
    if not path.resolve().is_relative_to(folder.resolve()):
        raise UserError(
            f"{place}: {name} isn't below {folder.absolute()}, where the file lies that names it: "
            "put it there"
        )
    return path


def read_given(
    file: Path,
    most_bytes: int,
    *,
    follow: bool = False,
    named: str = "",
    below: Path | None = None,
) -> bytes:
    """Read a file that somebody else may have made, such as one of a run's folder.

    As `open_given`; raise UserError for a file of more than `most_bytes` as well. None of the
    folders `below` which it lies may be a link: raise OSError for one.
    """
    opens = (
        open_given_inside(file, below) if below else open_given(file, follow=follow, named=named)
    )
    with opens as given:
        content = bytearray()
        while part := given.read(min(MIB, most_bytes + 1 - len(content))):
            content += part
    if len(content) > most_bytes:
        raise _too_large(named or file, most_bytes)
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
