"""Parts of the catalogue that aren't webdyno's own: what they run, and how to know them again."""

import hashlib
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from webdyno.definitions.catalogue import BUILT_IN
from webdyno.model.files import checked_files
from webdyno.model.service import Arguments, Need, Service
from webdyno.model.site import Site
from webdyno.model.stack import Stack

SHOWN_LETTERS = 160


@dataclass(frozen=True)
class ForeignPart:
    """A service or site of somebody else's: it runs commands of its own."""

    folder: Path
    fingerprint: str
    """Of all its files; the same wherever it lies."""
    runs: tuple[str, ...]
    """Its commands, for people."""
    packages: tuple[str, ...]
    """What it may ask to be installed."""


def foreign_parts(stacks: Iterable[Stack], sites: Iterable[Site]) -> list[ForeignPart]:
    """Give the parts that stacks and sites are made of and that aren't webdyno's own."""
    wanted = list(sites)
    roles = [stack.services for stack in stacks] + [site.services for site in wanted]
    services = {role.service.folder: role.service for each in roles for role in each.values()}
    parts = [_service(service) for service in services.values() if _is_foreign(service.folder)]
    own_sites = {site.folder: site for site in wanted if _is_foreign(site.folder)}
    return parts + [_site(site) for site in own_sites.values()]


def _is_foreign(folder: Path) -> bool:
    return not folder.resolve().is_relative_to(BUILT_IN)


def _service(service: Service) -> ForeignPart:
    commands = [
        service.check,
        *service.initialise,
        service.start,
        service.version.command,
        *(version.command for version in service.modules.values()),
    ]
    neighbours = {
        name: path
        for name in service.files.values()
        if (path := service.folder.parent / name).is_file()
    }
    return ForeignPart(
        folder=service.folder,
        fingerprint=_fingerprint(service.folder, neighbours.values()),
        runs=tuple(_shown(commands)),
        packages=_packages(service.needs.values()),
    )


def _site(site: Site) -> ForeignPart:
    commands = list(_shown(site.setup))
    if any((site.folder / name).is_dir() for name in ("root", "app")):
        commands.append("its files in root/ and app/, where a server runs such")
    return ForeignPart(
        folder=site.folder,
        fingerprint=_fingerprint(site.folder, []),
        runs=tuple(commands),
        packages=_packages(site.requires.values()),
    )


def _shown(commands: Sequence[Arguments]) -> Iterator[str]:
    for words in commands:
        line = " ".join(shlex.join(words).split())
        if line:
            yield line if len(line) <= SHOWN_LETTERS else f"{line[:SHOWN_LETTERS]}…"


def _packages(needs: Iterable[Need]) -> tuple[str, ...]:
    return tuple(sorted({need.apt for need in needs}))


def _fingerprint(folder: Path, neighbours: Iterable[Path]) -> str:
    digest = hashlib.sha256(f"{folder.parent.name}/{folder.name}\0".encode())
    files = [*checked_files(folder).items(), *((path.name, path) for path in neighbours)]
    for name, path in files:
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        digest.update(f"{name}\0{content}\0".encode())
    return digest.hexdigest()
