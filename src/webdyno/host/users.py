"""The user whom servers run as, and files that pass between him and us.

When we are root, nothing may be written, chmod-ed or chown-ed by its path where he could exchange
that path for a symbolic link. So there are two kinds of folders: private ones, which nobody but us
can enter and in which paths are what they seem, and those that he was given, in which we do nothing
more. Filling comes before giving (`hand_over`); what he leaves is copied, never adopted
(`workspace.take_back`), since he may still have its folders open.
"""

import os
import pwd
import stat
import subprocess
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from webdyno.core.errors import OperationError, UserError
from webdyno.core.files import everything_below, folder_inside, writing
from webdyno.core.hiding import SECRETS
from webdyno.core.text import in_shell
from webdyno.core.whose import (
    has_others,
    is_others_to_change,
    others_are_here,
    others_place,
    sudo_caller,
    trusted_users,
)

CANDIDATES = ("www-data", "nobody")
PRIVATE, SHARED, ENTERED, OPEN = 0o700, 0o750, 0o711, 0o755
"""Modes of folders: for us alone; with a group; for all who know what a file in there is called;
for all."""


@dataclass(frozen=True)
class ServerUser:
    """A user other than the one who started webdyno."""

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...] = ()
    """All his groups; his own alone unless given."""

    @property
    def called_sudo(self) -> bool:
        return self.uid == sudo_caller()

    def may_exchange(self, path: Path) -> Path | None:
        """Return the folder on the way to `path` in which this user could replace what is there."""
        return next((folder for folder in (path, *path.parents) if self._may_write(folder)), None)

    def kept_out_by(self, path: Path) -> Path | None:
        """Return the folder on the way to `path`, or that itself, which this user may not enter."""
        return next(
            (
                folder
                for folder in (*reversed(path.parents), path)
                if not self._may(stat.S_IXOTH, folder)
            ),
            None,
        )

    def may_read(self, file: Path) -> bool:
        """Whether this user may read a file; not if it isn't there."""
        try:
            return not self.kept_out_by(file.parent) and self._may(stat.S_IROTH, file)
        except FileNotFoundError:
            return False

    def may_read_opened(self, handle: int) -> bool:
        """Whether this user may read a file that is open, whatever its path leads to by now."""
        where = Path(f"/proc/self/fd/{handle}").readlink()
        readable = self._has(stat.S_IROTH, os.fstat(handle))
        return readable and not self.kept_out_by(where.parent)

    def _may(self, others_bit: int, path: Path) -> bool:
        return self._has(others_bit, path.stat())

    def _has(self, others_bit: int, status: os.stat_result) -> bool:
        """The owner's bit lies six above that of others."""
        if status.st_uid == self.uid:
            return bool(status.st_mode & others_bit << 6)
        is_member = status.st_gid in (self.gid, *self.groups)
        return bool(status.st_mode & (others_bit << 3 if is_member else others_bit))

    def _may_write(self, folder: Path) -> bool:
        try:
            status = folder.stat()
        except FileNotFoundError:  # we are to make it
            return False
        by_group = status.st_gid == self.gid and status.st_mode & stat.S_IWGRP
        by_others = status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX
        return status.st_uid == self.uid or bool(by_group or by_others)


def server_user() -> ServerUser | None:
    """Return the unprivileged user for servers when webdyno runs as root, else None: ourselves."""
    if os.geteuid() != 0:
        return None
    for name in CANDIDATES:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return ServerUser(name, entry.pw_uid, entry.pw_gid)
    return ServerUser("nobody", 65534, 65534)


def caller(folder: Path, owner: int | None = None) -> ServerUser | None:
    """Return who called sudo, else the owner of a folder; None when that is ourselves.

    `owner` is the id of who it was known to be, who may have put another folder in its place.
    Raise OperationError where that is a third one's: then nobody agreed to whom it runs as.
    """
    if os.geteuid() != 0:
        return None
    if (uid := sudo_caller()) is not None:
        return _user(uid, folder)
    there = folder.stat().st_uid
    if owner and there not in {owner, 0}:
        raise OperationError(
            f"{folder} belongs to {_user(there, folder).name}, and belonged to "
            f"{_user(owner, folder).name} when it was named; begin the run again"
        )
    uid = owner or there
    return _user(uid, folder) if uid else None


def owner_of(folder: Path) -> ServerUser | None:
    """Return the user whom a folder belongs to; None when that is root, or we aren't root."""
    uid = folder.stat().st_uid
    return _user(uid, folder) if os.geteuid() == 0 and uid != 0 else None


def stranger_of(folder: Path) -> str | None:
    """Return the name of whose a folder is, unless it is ours, root's, or whose who called sudo."""
    uid = folder.stat().st_uid
    return None if uid in trusted_users() else _user(uid, folder).name


def programs_user(run: Path, folder: Path, owner: int | None = None) -> ServerUser | None:
    """Return whom a user's own program runs as that a run may name; None when that is ourselves.

    `run` is where the run keeps what it says of that program, `folder` where it runs by what that
    says, which may be anybody's. So, but for sudo, the owner of the one goes before that of the
    other. `owner` is as `caller` takes it.
    """
    return (owner_of(run) if sudo_caller() is None else None) or caller(folder, owner)


def others_may_change(folder: Path) -> bool:
    """Whether somebody else may exchange a folder, or what is in it; not who called sudo."""
    ways = {folder.absolute(), folder.resolve()}
    above = {path for way in ways for path in way.parents}
    return any(is_others_to_change(path, on_the_way=True) for path in above) or any(
        map(is_others_to_change, (*ways, *everything_below(folder)))
    )


def refuse_shared(place: Path, user: ServerUser | None) -> None:
    """Raise OperationError where others may exchange a place from which what is built runs as us.

    `user` is whose it is, as whom it runs.
    """
    is_ours = user is None or user.uid in trusted_users()
    if is_ours and (others := others_place(place)):
        raise OperationError(
            f"others may change {others}, and what is built runs from there: chmod go-w "
            f"{in_shell(others)} and rm -rf {in_shell(place)}, or set XDG_CACHE_HOME to a folder "
            "of yours alone"
        )


def refuse_of_others(path: Path, folder: Path) -> None:
    """Raise UserError for files of another user that decide what is built, run and read.

    As Git has it, and with what vouches for a repository's top folder there: `safe.directory` of
    your settings (https://git-scm.com/docs/git-config#Documentation/git-config.txt-safedirectory).
    """
    uid = path.stat().st_uid
    if uid in trusted_users() or _is_vouched(folder.resolve()):
        return
    name = _user(uid, folder).name
    vouch = f"git config --global --add safe.directory {in_shell(folder)}"
    raise UserError(
        f"{path} belongs to {name}, and says what is run and read: call webdyno as {name}, or, if "
        f"you trust all of it, say so as for Git: {vouch}"
    )


def _is_vouched(folder: Path) -> bool:
    words = ("git", "config", "--type=path", "--get-all", "safe.directory")
    vouched: list[str] = []
    # Never that of the current folder's repository, which isn't ours to believe.
    for scope in ("--system", "--global"):
        with suppress(OSError):
            done = subprocess.run(
                [*words[:2], scope, *words[2:]], capture_output=True, text=True, check=False
            )
            vouched += done.stdout.splitlines()
    if "" in vouched:  # which takes back those before it
        vouched = vouched[len(vouched) - vouched[::-1].index("") :]
    above = {f"{each}/*" for each in folder.parents}
    return any(each in {"*", str(folder)} or each in above for each in vouched)


def _user(uid: int, folder: Path) -> ServerUser:
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:  # as in a container, with a folder from outside
        return ServerUser(f"user {uid}", uid, folder.stat().st_gid)
    groups = os.getgrouplist(entry.pw_name, entry.pw_gid)
    return ServerUser(entry.pw_name, uid, entry.pw_gid, tuple(groups))


def everybody_enters(folder: Path) -> bool:
    """Whether all users may enter a folder, and get there."""
    return all(each.stat().st_mode & stat.S_IXOTH for each in (folder, *folder.parents))


def home_of(user: ServerUser | None) -> Path:
    """Return a user's home folder; `/` where he has none."""
    try:
        return Path(pwd.getpwuid(uid_of(user)).pw_dir)
    except KeyError:
        return Path("/")


def name_of(user: ServerUser | None) -> str:
    """Return the name of a user, who may be ourselves."""
    if user is not None:
        return user.name
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return f"user {os.geteuid()}"


def uid_of(user: ServerUser | None) -> int:
    """Return the id of the servers' user, who may be ourselves."""
    return user.uid if user else os.geteuid()


def make_private(folder: Path) -> Path:
    """Make a folder that nobody but us can enter, to be filled before others see it."""
    folder.mkdir(mode=PRIVATE)
    return folder


def close_to_others(folder: Path) -> None:
    """Let nobody else enter a folder of ours; by sudo, who called that may still read it.

    In a container without others it stays open: to who looks at it from outside.
    """
    uid = sudo_caller()
    group = None if uid is None else _user(uid, folder).gid
    if group is not None and not has_others(group):
        share_with_group(folder, group)
    elif others_are_here():
        folder.chmod(PRIVATE)


def share_with_group(folder: Path, group: int) -> None:
    """Let a group enter and list a folder, and nobody else but its owner."""
    os.chown(folder, -1, group, follow_symlinks=False)
    folder.chmod(SHARED)


def make_closed(folder: Path) -> None:
    """Make a folder, and those above it, as far as they aren't there, closed to others."""
    for part in (*reversed(folder.parents), folder):
        if not part.exists():
            part.mkdir(mode=PRIVATE, exist_ok=True)


def hand_over(
    folder: Path,
    user: ServerUser | None,
    private: Sequence[Path] = (),
    *,
    among: Collection[ServerUser | None] | None = None,
) -> None:
    """Make the servers' user owner of a private folder with its content: the last we do to it.

    It has to lie in a folder of ours. Its own owner comes last, so that he can't enter before.
    Folders in it that are `private` stay closed to all others. Where `among` says all who have to
    get into the folder, it is closed to the rest, as far as its owner and one group can be enough.
    """
    for inner in private:
        inner.chmod(PRIVATE)
    if user is not None:
        try:
            for path in (*everything_below(folder), folder):
                os.chown(path, user.uid, user.gid, follow_symlinks=False)
        except PermissionError:
            raise OperationError(
                f"{folder} can't be given to {user.name}, as whom servers run: this root lacks "
                "capabilities. Run webdyno as an ordinary user, or with CAP_CHOWN, CAP_SETUID, "
                "CAP_SETGID, CAP_DAC_OVERRIDE and CAP_KILL"
            ) from None
    others = {each for each in among or () if each} - {user}
    if among is None or len(others) > 1:
        open_to_servers(folder, user or server_user())
    elif others:
        share_with_group(folder, others.pop().gid)


def open_to_servers(folder: Path, user: ServerUser | None) -> None:
    """Let servers, and what runs next to them, enter a folder of ours.

    They aren't all one user's where servers are another one's, but as ourselves nobody else's.
    """
    folder.chmod(PRIVATE if user is None else OPEN)


def log_mode() -> int:
    """Return the mode of a new log: closed to others while secrets may come into it."""
    return 0o600 if SECRETS.known else 0o644


def open_log(path: Path, user: ServerUser | None, *, closed: bool = False) -> BinaryIO:
    """Open a log for appending; raise OperationError when what is there isn't a log of ours.

    The servers' user may open it again, by way of /dev/stderr. Others may read it once no secret
    can be in it (`measure.redact`), unless it is `closed`.
    """
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
    with writing(path), folder_inside(path.parent) as folder:
        mode = 0o600 if closed else log_mode()
        log = os.fdopen(os.open(path.name, flags, mode, dir_fd=folder), "ab")
    status = os.fstat(log.fileno())
    is_new = status.st_uid == os.geteuid() and not status.st_size
    is_ours = status.st_uid == uid_of(user) or is_new
    if not (stat.S_ISREG(status.st_mode) and status.st_nlink == 1 and is_ours):
        log.close()
        raise OperationError(f"{path} is in the way of a server's log; remove it")
    if user is not None:
        os.fchown(log.fileno(), user.uid, user.gid)
    return log
