"""Removes folders that servers wrote into: however deep, and whatever rights they left there.

A warden, which has nothing but the standard library, runs this file by its path.
"""

import os
import secrets
from contextlib import suppress

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
PASSES = 3
"""Number of attempts where something is still being written."""


def remove_tree(path: str | os.PathLike[str]) -> None:
    """Remove a folder with all that is in it; nothing where it isn't there.

    Folders in it are first moved up to its top, so that no path becomes too long and nothing
    recurses. No symbolic link is followed. Raise OSError for what can't be removed.
    """
    try:
        top = _opened(os.fspath(path), None)
    except FileNotFoundError:
        return
    try:
        for _ in range(PASSES):
            _empty(top)
            if not os.listdir(top):  # noqa: PTH208 (by descriptor)
                break
    finally:
        os.close(top)
    with suppress(FileNotFoundError):  # two runs may remove what a third one left
        os.rmdir(path)  # noqa: PTH106 (nothing needless is imported)


def _empty(top: int) -> None:
    folders = _without_files(top)
    while folders:
        name = folders.pop()
        try:
            folder = _opened(name, top)
        except FileNotFoundError:
            continue
        try:
            for inner in _without_files(folder):
                moved = secrets.token_hex(16)
                with suppress(FileNotFoundError):
                    _move(inner, folder, moved, top)
                    folders.append(moved)
        finally:
            os.close(folder)
        with suppress(FileNotFoundError):
            os.rmdir(name, dir_fd=top)


def _without_files(folder: int) -> list[str]:
    """Remove everything but folders from a folder, and name those."""
    folders = []
    for name in os.listdir(folder):
        try:
            os.unlink(name, dir_fd=folder)
        except IsADirectoryError:
            folders.append(name)
        except FileNotFoundError:
            pass
    return folders


def _move(name: str, source: int, moved: str, target: int) -> None:
    try:
        os.rename(name, moved, src_dir_fd=source, dst_dir_fd=target)
    except PermissionError:  # of the folder itself, whose `..` changes
        os.close(_opened(name, source))
        os.rename(name, moved, src_dir_fd=source, dst_dir_fd=target)


def _opened(name: str, parent: int | None) -> int:
    """Open a folder that we may read and change, made so where it is ours and wasn't."""
    place = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        with suppress(PermissionError):
            os.chmod(f"/proc/self/fd/{place}", 0o700)  # noqa: PTH101 (a link would be followed)
        return os.open(f"/proc/self/fd/{place}", FOLDER & ~os.O_NOFOLLOW)
    finally:
        os.close(place)
