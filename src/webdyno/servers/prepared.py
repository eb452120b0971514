"""What servers find when they start: files of a site, and data of services that a set-up filled.

Both are made once and kept for later starts, by what they were made of: files for later runs as
well, data as long as this process lives. A killed one's are swept away with its workspace.
"""

import atexit
import fcntl
import hashlib
import json
import logging
import os
import re
import shutil
import socket
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from webdyno.core.errors import OperationError
from webdyno.core.files import checked_files, digest_of, everything_below
from webdyno.core.stack import Site
from webdyno.host.control_group import ControlGroup
from webdyno.host.copies import copy_readable, let_everybody_read, take_back
from webdyno.host.this_machine import Testbed
from webdyno.host.users import OPEN, hand_over, make_private, open_to_servers
from webdyno.host.warden import remove_tree
from webdyno.host.workspace import Workspace, home_folder, open_folder, open_lock
from webdyno.servers.layout import Deployment, lay_out
from webdyno.servers.needs import find, paths_of_needs
from webdyno.servers.output import CommandError, run_checked
from webdyno.servers.ready import Address, connect
from webdyno.servers.service import RunningService
from webdyno.servers.service_graph import NewSocket, Role, resolve_services

logger = logging.getLogger(__name__)

FORMAT = 2
"""Format of the kept folder; one of another format is made again."""
KEPT_FOR_S = 5 * 86_400
"""Shorter than the ten days after which systems clean up single files in temporary folders."""
LARGEST_BYTES = 1_000_000
"""memcached takes items up to 1 MiB, key and header included; larger files stay on the disk."""
LONGEST_KEY_BYTES = 250


@dataclass(frozen=True)
class PreparedSite:
    """A site that is set up. Nobody but webdyno's own user may write to it."""

    folder: Path
    lock: IO[bytes] | None = field(default=None, compare=False)
    """Its lock keeps the files from being swept away; None while they are made."""

    def release(self) -> None:
        """Let the files be swept away when they are old; safe to call twice."""
        if self.lock is not None:
            self.lock.close()

    @property
    def root(self) -> Path:
        return self.folder / "root"

    @property
    def app(self) -> Path:
        return self.folder / "app"

    @property
    def private(self) -> Path:
        """What nobody but us can get at: masters of state and data."""
        return self.folder / "private"

    @property
    def state(self) -> Path:
        """What the site's code may change; every start works on a copy."""
        return self.private / "state"

    def data(self) -> dict[str, Path]:
        """Data folders of its services, by role; every start works on a copy."""
        return {path.name: path for path in sorted((self.private / "data").glob("*"))}

    def files(self) -> Iterator[tuple[str, Path]]:
        """Files under the document root, each with the path it is asked for by; no links."""
        for path in sorted(everything_below(self.root)):
            if path.is_file() and not path.is_symlink():
                yield f"/{path.relative_to(self.root)}", path


def prepare_site(site: Site, testbed: Testbed) -> PreparedSite:
    """Return a site's files, kept until released, made again when their sources have changed."""
    sites = open_folder(home_folder() / "sites")
    _sweep(sites)
    kept = sites / f"{site.name}-{_fingerprint(site)}"
    lock = _lock_of(kept)
    logger.debug("waits for the lock of %s", kept)
    try:
        fcntl.flock(lock, fcntl.LOCK_SH)
        if not kept.is_dir():
            fcntl.flock(lock, fcntl.LOCK_EX)  # one at a time; another run may have been quicker
            if not kept.is_dir():
                _make(site, kept, testbed)
            fcntl.flock(lock, fcntl.LOCK_SH)
        open_to_servers(kept, testbed.user)
    except BaseException:
        lock.close()
        raise
    return PreparedSite(kept, lock)


def site_view(
    site: Site, folder: Path, state: Path, settings: Mapping[str, object]
) -> dict[str, object]:
    return {
        "root": str(folder / "root"),
        "app": str(folder / "app"),
        "state": str(state),
        "index": site.web.index,
        "fallback": site.web.fallback,
        "php_extensions": site.php_extensions,
        "settings": settings,
    }


def made_text(path: str, size_bytes: int) -> bytes:
    """Make text of a length: lines of 63 hexadecimal digits, the same wherever it is made.

    Line n is the SHA-256 of `PATH:n`, its last digit replaced by the line's end.
    """
    lines = (
        hashlib.sha256(f"{path}:{number}".encode()).hexdigest()[:63]
        for number in range(size_bytes // 64 + 1)
    )
    return "\n".join(lines).encode().ljust(size_bytes, b"\n")[:size_bytes]


def _make(site: Site, kept: Path, testbed: Testbed) -> None:
    logger.debug("sets up site %s in %s", site.name, kept)
    with Workspace() as workspace:
        made = PreparedSite(make_private(workspace.path / "_made"))
        for folder in (made.root, made.app):
            folder.mkdir()
        make_private(made.private)
        for folder in (made.state, made.private / "data"):
            folder.mkdir()
        needs = paths_of_needs(f"site {site.name}", site.requires)
        _fill(site, made, needs, testbed)
        if site.setup:
            _set_up(site, made, needs, testbed, workspace)
        for top in (made.root, made.app):
            let_everybody_read(top)
        os.utime(made.folder)  # the age that counts is that of the whole
        made.folder.rename(kept)


def _fill(
    site: Site, made: PreparedSite, needs: Mapping[str, str | None], testbed: Testbed
) -> None:
    base = needs.get(site.base or "")
    if base is not None:
        copy_readable(Path(base), made.root, testbed.user, site.without)
    for name, path in checked_files(site.folder).items():
        target = made.folder / name
        if name.partition("/")[0] not in {"root", "app"}:
            continue
        if path.is_dir():
            target.mkdir(exist_ok=True)
        else:
            shutil.copy(path, target)
    for pattern, file in site.files.items():
        for number in range(1, file.count + 1):
            path_in_root = pattern.replace("{n}", str(number))
            target = made.root / path_in_root
            target.parent.mkdir(parents=True, exist_ok=True)
            text = file.text
            target.write_bytes(
                made_text(path_in_root, file.size_bytes or 0) if text is None else text.encode()
            )


def _set_up(
    site: Site,
    made: PreparedSite,
    needs: Mapping[str, str | None],
    testbed: Testbed,
    workspace: Workspace,
) -> None:
    """Run the site's commands while its data services run, then keep what they have made.

    Meanwhile document root, app and state are the servers' user's; what is kept are copies.
    """
    live = make_private(workspace.path / "_site")
    kept = {live / "root": made.root, live / "app": made.app, live / "state": made.state}
    for theirs, ours in kept.items():
        ours.rename(theirs)
        make_private(ours)
        hand_over(theirs, testbed.user)
    live.chmod(OPEN)
    view = site_view(site, live, live / "state", {n: k.default for n, k in site.settings.items()})
    roles = resolve_services(site.services, len(testbed.split.servers))
    logs = make_private(workspace.path / "_log")
    laid_out = lay_out(roles, Deployment(testbed, workspace, logs, site, view, set_up_needs=needs))
    services = laid_out.services
    group = ControlGroup.create(workspace.name)
    try:
        for service in services.values():
            service.start([group.entry(service.role.name)] if group else [])
            service.wait_until_it_listens()
        for words in laid_out.setup:
            run_checked(
                words,
                cwd=live / "app",
                environment=laid_out.environment,
                testbed=testbed,
                workspace=workspace,
            )
    except CommandError as error:
        raise OperationError(f"site {site.name} can't be set up: {error.how}\n{error}") from None
    finally:
        for service in services.values():
            service.stop()
        if group is not None:
            group.end()
    for role, service in services.items():
        if data := service.role.service.data:
            kept[service.home / data] = make_private(made.private / "data" / role)
    for theirs, ours in kept.items():
        take_back(theirs, ours, testbed.user)
        if ours.is_relative_to(made.private):
            hand_over(ours, testbed.user)


def _sweep(sites: Path) -> None:
    for kept in sites.glob("*/"):
        if time.time() - kept.stat().st_mtime < KEPT_FOR_S:
            continue
        with _lock_of(kept) as lock, suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with suppress(OSError):  # it is tried again
                remove_tree(kept)


def _lock_of(kept: Path) -> IO[bytes]:
    return os.fdopen(open_lock(kept.with_suffix(".lock")), "rb")


def _fingerprint(site: Site) -> str:
    """Definition, files, and the programs that made them."""
    definition = site.model_dump_json(exclude={"folder", "services"})
    digest = hashlib.sha256(f"{FORMAT}\0{definition}".encode())
    for top in [site.folder, *(part.service.folder for part in site.services.values())]:
        for name, path in checked_files(top).items():
            if path.is_file():
                digest.update(f"{name}\0".encode())
                digest.update(digest_of(path))
    needs = [
        *site.requires.values(),
        *(need for part in site.services.values() for need in part.service.needs.values()),
    ]
    for need in needs:
        if path_found := find(need):
            digest.update(f"{path_found} {Path(path_found).stat().st_mtime_ns}\0".encode())
    return digest.hexdigest()[:16]


def preload(
    address: Address, files: Iterable[tuple[str, Path]], new_socket: NewSocket = socket.socket
) -> None:
    """Store files in a memcached; raise OperationError when it doesn't take one."""
    with connect(address, new_socket) as connection, connection.makefile("rb") as responses:
        for key, path in files:
            # Escaped as nginx does it: a key can't hold spaces and control characters.
            escape = re.compile(rb"[\x00-\x20%\x7f]")
            name = escape.sub(lambda char: b"%%%02X" % char[0][0], os.fsencode(key))
            body = path.read_bytes()
            if len(body) <= LARGEST_BYTES and len(name) <= LONGEST_KEY_BYTES:
                connection.sendall(b"set %b 0 0 %d\r\n%b\r\n" % (name, len(body), body))
                if (said := responses.readline()) != b"STORED\r\n":
                    raise OperationError(f"memcached does not take {key}: {said.decode().strip()}")


class FilledData:
    """Data folders of services, by the set-up that filled them."""

    def __init__(self) -> None:
        self._made: dict[str, dict[str, Path]] = {}
        self._workspace: Workspace | None = None

    def of(self, roles: Sequence[Role]) -> Mapping[str, Path] | None:
        """Return the data of services, by role; None where such a set-up hasn't run yet."""
        return self._made.get(_set_up_key(roles))

    def keep(self, roles: Sequence[Role], services: Iterable[RunningService]) -> None:
        """Keep the data of services that a set-up filled, and that don't run."""
        if self._workspace is None:
            self._workspace = Workspace()
            atexit.register(self._workspace.remove)
        top = make_private(self._workspace.path / str(len(self._made)))
        kept = {}
        for service in services:
            data = service.home / (service.role.service.data or ".")
            kept[service.role.name] = folder = make_private(top / service.role.name)
            take_back(data, folder, service.testbed.user)
            hand_over(folder, service.testbed.user)
        self._made[_set_up_key(roles)] = kept


def _set_up_key(roles: Sequence[Role]) -> str:
    """A set-up's name by all that it depends on: services, settings, the program if it fills."""
    said = [
        (role.name, role.service.model_dump_json(exclude={"folder"}), dict(role.settings))
        for role in roles
        if role.service.own is None or role.service.own.setup
    ]
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


FILLED = FilledData()
"""That of this process."""
