"""The files of a site: made and set up once, kept for later starts by what they were made of."""

import fcntl
import hashlib
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from webdyno.bench import Bench
from webdyno.bench.workspace import Workspace, home_folder, open_folder
from webdyno.model.mistake import Trouble
from webdyno.model.site import MadeFile, Site
from webdyno.stack.commands import CommandError, run_command
from webdyno.stack.layout import Place, lay_out
from webdyno.stack.needs import find, found
from webdyno.stack.render import render_text
from webdyno.stack.roles import settle_parts

KEPT_FOR_S = 5 * 86_400
"""Shorter than the ten days after which systems clean up single files in temporary folders."""


@dataclass(frozen=True)
class PreparedSite:
    """A site that is set up. Nobody but webdyno's own user may write to it."""

    folder: Path
    lock: IO[str] | None = field(default=None, compare=False)
    """Its lock keeps the files from being swept away; None while they are made."""

    def release(self) -> None:
        """Let the files be swept away when they are old; safe to call twice."""
        if self.lock is not None:
            self.lock.close()

    @property
    def root(self) -> Path:
        """Document root."""
        return self.folder / "root"

    @property
    def app(self) -> Path:
        """Code of applications."""
        return self.folder / "app"

    @property
    def state(self) -> Path:
        """What the site's code may change; every start works on a copy."""
        return self.folder / "state"

    def data(self) -> dict[str, Path]:
        """Data folders of its services, by role; every start works on a copy."""
        return {path.name: path for path in sorted((self.folder / "data").glob("*"))}

    def files(self) -> Iterator[tuple[str, Path]]:
        """Files under the document root, each with the path it is asked for by."""
        for path in sorted(self.root.rglob("*")):
            if path.is_file():
                yield f"/{path.relative_to(self.root)}", path


def prepare_site(site: Site, bench: Bench) -> PreparedSite:
    """Give a site's files; they are made anew when anything they are made of has changed.

    They stay as they are until they are released, or this process ends.
    """
    sites = open_folder(home_folder() / "sites")
    _sweep(sites)
    kept = sites / f"{site.name}-{_fingerprint(site)}"
    lock = _lock_of(kept)
    try:
        fcntl.flock(lock, fcntl.LOCK_SH)
        if not kept.is_dir():
            fcntl.flock(lock, fcntl.LOCK_EX)  # one at a time; another run may have been quicker
            if not kept.is_dir():
                _make(site, kept, bench)
            fcntl.flock(lock, fcntl.LOCK_SH)
    except BaseException:
        lock.close()
        raise
    return PreparedSite(kept, lock)


def site_view(
    site: Site, prepared: PreparedSite, state: Path, knobs: Mapping[str, object]
) -> dict[str, object]:
    """The site as templates see it."""
    return {
        "root": str(prepared.root),
        "app": str(prepared.app),
        "state": str(state),
        "index": site.web.index,
        "fallback": site.web.fallback,
        "php_extensions": site.php_extensions,
        "knobs": knobs,
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


def _make(site: Site, kept: Path, bench: Bench) -> None:
    workspace = bench.workspace()
    try:
        scratch = PreparedSite(workspace.path / "site")
        for folder in (scratch.root, scratch.app, scratch.state, scratch.folder / "data"):
            folder.mkdir(parents=True)
        needs = found(f"site {site.name}", site.requires)
        _fill(site, scratch, needs)
        if site.setup:
            _set_up(site, scratch, needs, bench, workspace)
        _protect(scratch)
        os.utime(scratch.folder)  # the age that counts is that of the whole
        scratch.folder.rename(kept)
    finally:
        workspace.remove()


def _fill(site: Site, scratch: PreparedSite, needs: Mapping[str, str | None]) -> None:
    base = needs.get(site.base or "")
    if base is not None:
        shutil.copytree(
            base,
            scratch.root,
            ignore=lambda folder, _: site.without if folder == base else [],
            ignore_dangling_symlinks=True,
            dirs_exist_ok=True,
        )
    for name, target in (("root", scratch.root), ("app", scratch.app)):
        if (site.folder / name).is_dir():
            shutil.copytree(site.folder / name, target, dirs_exist_ok=True)
    for pattern, file in site.files.items():
        for number in range(1, file.count + 1):
            path = pattern.replace("{n}", str(number))
            target = scratch.root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(_content(path, file))


def _set_up(
    site: Site,
    scratch: PreparedSite,
    needs: Mapping[str, str | None],
    bench: Bench,
    workspace: Workspace,
) -> None:
    """Run the site's commands while its data services run, then keep the services' data."""
    log_folder = workspace.path / "log"
    log_folder.mkdir()
    view = site_view(
        site, scratch, scratch.state, {name: knob.default for name, knob in site.knobs.items()}
    )
    roles = settle_parts(site.services, len(bench.split.servers))
    services, environment = lay_out(roles, Place(bench, workspace, log_folder, site, view))
    _change_owner(scratch.folder, bench.user.uid if bench.user else None)
    group = bench.control_group(workspace)
    try:
        for service in services.values():
            service.start([group.entry(service.role.name)] if group else [])
            service.wait_until_it_listens()
        for command in site.setup:
            words = [
                render_text(word, {"needs": needs, "site": view}, site.folder / "site.toml")
                for word in command
            ]
            run_command(
                words,
                cwd=scratch.app,
                environment=environment,
                user=bench.user,
                entry=bench.servers_entry(bench.user),
            )
    except CommandError as error:
        raise Trouble(f"site {site.name} can't be set up:\n{error}") from None
    finally:
        for service in services.values():
            service.stop()
        if group is not None:
            group.end()
    for role, service in services.items():
        if data := service.role.service.data:
            (service.home / data).rename(scratch.folder / "data" / role)


def _protect(scratch: PreparedSite) -> None:
    """Let everybody read, whatever our umask is, and nobody write; state and data stay private."""
    for top in (scratch.root, scratch.app):
        _change_owner(top, os.geteuid())
        for path in (top, *top.rglob("*")):
            executable = path.is_dir() or path.stat().st_mode & 0o100
            path.chmod(0o755 if executable else 0o644)
    for folder in (scratch.folder, scratch.folder / "data"):
        _change_owner_of_one(folder, os.geteuid())
        folder.chmod(0o755)


def _change_owner(top: Path, uid: int | None) -> None:
    if uid is not None and os.geteuid() == 0:
        for path in (top, *top.rglob("*")):
            _change_owner_of_one(path, uid)


def _change_owner_of_one(path: Path, uid: int) -> None:
    if os.geteuid() == 0:
        os.chown(path, uid, -1, follow_symlinks=False)


def _content(path: str, file: MadeFile) -> bytes:
    return file.text.encode() if file.text is not None else made_text(path, file.size_bytes or 0)


def _sweep(sites: Path) -> None:
    """Remove what was made long ago and isn't in use."""
    for kept in sites.glob("*/"):
        if time.time() - kept.stat().st_mtime < KEPT_FOR_S:
            continue
        with _lock_of(kept) as lock, suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(kept, ignore_errors=True)


def _lock_of(kept: Path) -> IO[str]:
    return kept.with_suffix(".lock").open("a")


def _fingerprint(site: Site) -> str:
    """Tell apart whatever makes a difference: definition, files, the programs that made them."""
    definition = site.model_dump_json(exclude={"folder", "services"})
    digest = hashlib.sha256(definition.encode())
    folders = [site.folder, *(part.service.folder for part in site.services.values())]
    for top in folders:
        for path in sorted(top.rglob("*")):
            if path.is_file():
                digest.update(f"{path.relative_to(top)}\0".encode())
                digest.update(hashlib.sha256(path.read_bytes()).digest())
    needs = [
        *site.requires.values(),
        *(need for part in site.services.values() for need in part.service.needs.values()),
    ]
    for need in needs:
        if path_found := find(need):
            digest.update(f"{path_found} {Path(path_found).stat().st_mtime_ns}\0".encode())
    return digest.hexdigest()[:16]
