"""Copies of folders that somebody else may be changing, and archives unpacked into our folders.

A tree that somebody else can change meanwhile is read by a `tar` that runs as the servers' user, so
that nothing gets into the copy which he may not read; we unpack it into a private folder, plain
files first and symbolic links last, so that no path leads out of it.
"""

import os
import stat
import subprocess
import tarfile
import tempfile
from collections.abc import Iterable, Sequence
from math import inf
from pathlib import Path, PurePosixPath
from typing import IO

from webdyno.core.errors import OperationError
from webdyno.core.files import everything_below, new_file
from webdyno.host.children import identity, must, run_program
from webdyno.host.users import ServerUser, everybody_enters
from webdyno.host.warden import remove_tree

SOMETHING_EXCLUDED = 1
"""Exit code of a `tar` that passed over files."""
CHUNK_BYTES = 1 << 20
PERMISSIONS = 0o777


def take_back(source: Path, target: Path, user: ServerUser | None) -> None:
    """Copy a tree that belongs to the servers' user into a private folder that is there.

    Symbolic links stay links; modes stay, owners don't: all is ours. Raise OperationError for what
    is no file, folder or link.
    """
    if _copy(source, target, user):
        raise OperationError(f"can't copy {source}: it changed meanwhile")


def copy_opened(folder: int, target: Path, user: ServerUser | None, most_bytes: int) -> None:
    """Copy an open folder that anybody may change, as `take_back`: at most so many bytes."""
    if _copy(folder, target, user, most_bytes=most_bytes):
        raise OperationError("it changed while it was copied")


def copy_readable(
    source: Path, target: Path, user: ServerUser | None, without: Iterable[str]
) -> None:
    """Copy what everybody may read of a tree, some entries of its top excluded.

    What symbolic links point to is copied in their place; links to nothing are excluded. Raise
    OperationError for a folder that is closed to others: they could read the copy.
    """
    if not _is_open(source):
        raise OperationError(f"{source} is closed to other users, who could read a copy of it")
    links = [path for path in everything_below(source) if path.is_symlink()]
    closed = [str(path.relative_to(source)) for path in links if not _is_open(path)]
    excluded = [f"--exclude=./{name}" for name in (*without, *closed)]
    options = ["--dereference", "--ignore-failed-read", "--anchored", "--no-wildcards", *excluded]
    _copy(source, target, user, options, links=False)
    for path in [*everything_below(target)]:
        if path.is_dir() and not path.stat().st_mode & stat.S_IXOTH:
            remove_tree(path)
        elif path.is_file() and not path.stat().st_mode & stat.S_IROTH:
            path.unlink()


def _is_open(path: Path) -> bool:
    """Whether everybody may read a file or enter a folder, and get there."""
    real = path.resolve()
    if not real.exists():
        return False
    needed = stat.S_IROTH if real.is_file() else stat.S_IROTH | stat.S_IXOTH
    return real.stat().st_mode & needed == needed and everybody_enters(real.parent)


def copy_own(source: Path, target: Path) -> None:
    """Copy the content of a private folder into another one, owners and holes in files included."""
    words = ["cp", "-a", "--reflink=auto", "--sparse=always", f"{source}/.", str(target)]
    must(run_program(words, within_s=None), f"can't copy {source} to {target}")


def let_everybody_read(top: Path) -> None:
    """Let everybody read a folder of ours, whatever our umask is, and nobody write."""
    for path in (top, *everything_below(top)):
        if not path.is_symlink():
            executable = path.is_dir() or path.stat().st_mode & 0o100
            path.chmod(0o755 if executable else 0o644)


def _copy(
    source: Path | int,
    target: Path,
    user: ServerUser | None,
    options: Sequence[str] = (),
    *,
    links: bool = True,
    most_bytes: float = inf,
) -> int:
    """Return the exit code, if no worse than SOMETHING_EXCLUDED; an open folder is a number.

    It needs no warden: when we die, `tar` ends at its next write to the pipe.
    """
    is_open = isinstance(source, int)
    place = "." if is_open else str(source)
    command = ["tar", "--create", "--hard-dereference", "--directory", place, *options, "."]
    with tempfile.TemporaryFile() as said:
        with subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=said,
            cwd=f"/proc/self/fd/{source}" if is_open else None,  # entered before it is that user
            start_new_session=user is not None,  # out of reach of our terminal
            **identity(user),
        ) as process:
            assert process.stdout is not None  # noqa: S101 (it is a pipe, see above)
            try:
                unpack(process.stdout, target, links=links, most_bytes=most_bytes)
            except BaseException as error:
                process.kill()
                if isinstance(error, tarfile.TarError):
                    raise OperationError(f"can't copy {source}: {error}") from None
                raise
        if process.returncode not in {0, SOMETHING_EXCLUDED}:
            said.seek(0)
            raise OperationError(
                f"can't copy {source}: {said.read()[-500:].decode(errors='replace')}"
            )
    return process.returncode


def unpack(archive: IO[bytes], target: Path, *, links: bool, most_bytes: float = inf) -> None:
    """Unpack an archive that anybody may have written; `target` is private and empty.

    Raise TarError for a member that would lie outside or is no file, folder or, where there may be
    some, symbolic link; and for more than so many bytes.
    """
    symbolic: list[tuple[Path, str]] = []
    unpacked_bytes = 0
    with tarfile.open(fileobj=archive, mode="r|") as members:
        for member in members:
            if member.name.startswith("/") or ".." in PurePosixPath(member.name).parts:
                raise tarfile.ExtractError(f"{member.name} lies outside")
            path = target / member.name
            unpacked_bytes += member.size
            if unpacked_bytes > most_bytes:
                raise tarfile.ExtractError(f"it has more than {most_bytes:,} bytes")
            if member.isdir():
                path.mkdir(exist_ok=True, parents=True)
                path.chmod(member.mode & PERMISSIONS | 0o700)
            elif member.isreg():
                content = members.extractfile(member)
                assert content is not None  # noqa: S101 (of a plain file there is one)
                _write(content, path, member.mode & PERMISSIONS)
                # Compiled code knows what it was made of by the time of its last change.
                os.utime(path, (member.mtime, member.mtime))
            elif member.issym() and links:
                symbolic.append((path, member.linkname))
            else:
                raise tarfile.ExtractError(f"{member.name} is no file, folder or link")
        while archive.read(CHUNK_BYTES):  # the padding behind the end
            pass
    for path, goal in symbolic:
        path.symlink_to(goal)


def _write(content: IO[bytes], path: Path, mode: int) -> None:
    """Where a file holds nothing but zeros the disk gets a hole."""
    with new_file(path) as file:
        while chunk := content.read(CHUNK_BYTES):
            if chunk.count(0) == len(chunk):
                file.seek(len(chunk), os.SEEK_CUR)
            else:
                file.write(chunk)
        file.truncate()
    path.chmod(mode)
