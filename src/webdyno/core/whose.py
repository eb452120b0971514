"""Who may change a file or folder, or what leads there: asked of what was opened, not of its name.

What is named may be exchanged between two looks; what is open stays what it is.
"""

import errno
import grp
import os
import pwd
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

from webdyno.core.kernel import kernel_lines, mounts

FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
PART = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
MOST_LINKS = 40
"""On the way to a file; as the kernel has it."""
ACCESS_LIST = "system.posix_acl_access"
FIRST_PID_NAMESPACE = 0xEFFFFFFC
"""Its number in /proc: that of a machine, not of a container (PROC_PID_INIT_INO of Linux)."""
FIRST_GROUP_OF_PEOPLE, USERS = 1000, 100
"""Those below are a system's own, such as `staff` of Debian's /usr/local (login.defs(5)); `users`
is not, which may be everybody's first group."""
WAYS_IN = {"systemd", "init", "sshd", "dropbear", "login", "agetty", "cron", "crond", "atd"}
"""Programs that begin others as users who weren't there."""


def sudo_caller() -> int | None:
    """Return the id of who became root by sudo; None where nobody did, or root itself called it."""
    said = os.environ.get("SUDO_UID", "") if os.geteuid() == 0 else ""
    return int(said) or None if said.isascii() and said.isdecimal() else None


def trusted_users() -> set[int]:
    """Return the ids of those who may do what we may."""
    return {0, os.geteuid(), sudo_caller() or 0}


def is_others_to_change(path: Path, *, groups: bool = True, on_the_way: bool = False) -> bool:
    """Whether somebody else may change a file, link or folder.

    By its group, if all `groups` count, or where that has other members, as by an access control
    list, whose mask stands in the group's place (acl(5)). Of a folder that is just `on_the_way` its
    sticky bit, as /tmp has it, keeps others from exchanging what is in it, not from adding to that.
    What is gone they may have taken away, and bring back.
    """
    try:
        part = os.open(path, PART)
    except FileNotFoundError:
        return True
    try:
        return _is_others(part, groups=groups, on_the_way=on_the_way)
    finally:
        os.close(part)


def _is_others(part: int, *, groups: bool, on_the_way: bool) -> bool:
    status = os.fstat(part)
    by_group = status.st_mode & stat.S_IWGRP and (
        groups or has_others(status.st_gid, of_root=status.st_uid == 0) or _has_list(part)
    )
    writable = status.st_mode & stat.S_IWOTH or by_group
    is_sticky = stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX
    protected = (on_the_way and is_sticky) or stat.S_ISLNK(status.st_mode)
    is_open = bool(writable and not protected)
    return status.st_uid not in trusted_users() or (is_open and others_are_here())


@cache
def others_are_here() -> bool:
    """Whether another user may act on this machine.

    Not so in a container in which nobody's but our and root's processes run, and none that lets
    users in: a CI job's, whose checkout everybody may write.
    """
    try:
        return not _is_container() or any(map(_lets_others_in, Path("/proc").glob("[0-9]*")))
    except OSError:
        return True


def _is_container() -> bool:
    """Whether processes and files are our own, but for what is mounted: of an image's layers."""
    kinds = [mount.kind for mount in mounts() if mount.path == "/"]
    is_first = Path("/proc/self/ns/pid").stat().st_ino == FIRST_PID_NAMESPACE
    return not is_first and kinds[-1:] in (["overlay"], ["fuse.fuse-overlayfs"])


def _lets_others_in(process: Path) -> bool:
    """Whether a process is somebody else's, or begins such; not if it has ended."""
    with suppress(FileNotFoundError, ProcessLookupError):
        lines = kernel_lines(process / "status")
        said = dict(line.split(":", 1) for line in lines if ":" in line)
        users = {int(uid) for uid in said["Uid"].split()}
        return not users <= trusted_users() or said["Name"].strip() in WAYS_IN
    return False


def _has_list(part: int) -> bool:
    with suppress(OSError):  # a file system without such
        return ACCESS_LIST in os.listxattr(f"/proc/self/fd/{part}")
    return False


@cache
def has_others(group: int, *, of_root: bool = False) -> bool:
    """Whether a group may have a member who may not do what we may.

    Not if nobody else is known to be in it, and it is the first one of somebody trusted, called as
    he is, or a system's own, `of_root`'s file: who is in others, a directory of accounts (LDAP)
    needn't list.
    """
    try:
        entry = grp.getgrgid(group)
    except KeyError:
        return True
    members = {each.pw_uid for each in pwd.getpwall() if each.pw_gid == group}
    for name in entry.gr_mem:
        with suppress(KeyError):
            members.add(pwd.getpwnam(name).pw_uid)
    is_systems = of_root and group < FIRST_GROUP_OF_PEOPLE and group != USERS
    is_listed = is_systems or _is_namesakes(entry)
    return not (is_listed and members <= trusted_users())


def _is_namesakes(group: grp.struct_group) -> bool:
    try:
        namesake = pwd.getpwnam(group.gr_name)
    except KeyError:
        return False
    return namesake.pw_gid == group.gr_gid and namesake.pw_uid in trusted_users()


class Opened(NamedTuple):
    """A file or folder at the end of a path, and whose the way there is."""

    descriptor: int
    """Of O_PATH: it is read by its name in /proc/self/fd."""
    others: Path | None
    """What somebody else may change or exchange, of the way there or at its end; the first such."""


@contextmanager
def opened(path: Path) -> Iterator[Opened]:
    """Open a file or folder, each part of the way, and each link on it, looked at as it is opened.

    Raise OSError where it isn't there: whose it will be, nobody knows.
    """
    descriptor, others = _looked_at(path)
    if others is None and _is_others(descriptor, groups=False, on_the_way=False):
        others = path
    try:
        yield Opened(descriptor, others)
    finally:
        os.close(descriptor)


def others_place(path: Path, *, is_above: bool = False) -> Path | None:
    """Return what others may change or exchange of a place of ours, or of the way there; or None.

    `is_above`: of a folder that others may add to, as to /tmp, but where what is ours stays that.
    None also where nobody else acts, or whose something is can't be seen, as in a sandbox of one
    user (user_namespaces(7)). Raise OSError where it isn't there.
    """
    if not others_are_here() or Path("/proc/self/uid_map").read_text().split()[:2] != ["0", "0"]:
        return None
    if not is_above:
        with opened(path) as end:
            return end.others
    descriptor, others = _looked_at(path)
    os.close(descriptor)
    return others


def _looked_at(path: Path) -> tuple[int, Path | None]:
    others: list[Path] = []

    def look(part: int, place: Path) -> None:
        if _is_others(part, groups=False, on_the_way=True):
            others.append(place)

    return followed(path, look), next(iter(others), None)


def followed(path: Path, look: Callable[[int, Path], None]) -> int:
    """Open what is at the end of a path, part by part, as O_PATH has it.

    `look` gets each part that was opened, links too, and where it is, before it leads further.
    """
    there, links, place = os.open("/", FOLDER), 0, Path("/")
    ahead = [*reversed(path.absolute().parts[1:])]
    try:
        while ahead:
            name = ahead.pop()
            part = os.open(name, PART, dir_fd=there)
            try:
                look(part, place / name)
                if not stat.S_ISLNK(os.fstat(part).st_mode):
                    there, part, place = part, there, place / name
                    continue
                goal = os.readlink("", dir_fd=part)
            finally:
                os.close(part)
            links += 1
            if links > MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
            if goal.startswith("/"):
                os.close(there)
                there, place = os.open("/", FOLDER), Path("/")
            ahead += reversed([each for each in Path(goal).parts if each != "/"])
        return os.dup(there)
    finally:
        os.close(there)
