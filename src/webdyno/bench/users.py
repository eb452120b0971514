"""The user whom servers run as."""

import os
import pwd
from dataclasses import dataclass
from pathlib import Path

CANDIDATES = ("www-data", "nobody")


@dataclass(frozen=True)
class ServerUser:
    """A user other than the one who started webdyno."""

    name: str
    uid: int
    gid: int


def server_user() -> ServerUser | None:
    """Give the unprivileged user for servers when webdyno runs as root, else None: ourselves."""
    if os.geteuid() != 0:
        return None
    for name in CANDIDATES:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return ServerUser(name, entry.pw_uid, entry.pw_gid)
    return ServerUser("nobody", 65534, 65534)


def hand_over(path: Path, user: ServerUser | None) -> None:
    """Make a file or folder belong to the servers' user."""
    if user is not None:
        os.chown(path, user.uid, user.gid)
