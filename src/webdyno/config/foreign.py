"""What isn't webdyno's own: what it runs, and how to know it again."""

import hashlib
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from webdyno.config.catalogue import BUILT_IN
from webdyno.core.experiment import State
from webdyno.core.files import checked_files, digest_of
from webdyno.core.run import EXPERIMENT_FILE
from webdyno.core.service import Arguments, Need, Service, Version
from webdyno.core.stack import Site, Stack

SHOWN_LETTERS = 2_000
"""Of a command that somebody is asked to agree to."""
LINE_BREAK = "⏎"


@dataclass(frozen=True)
class ForeignPart:
    """A service, a site or an experiment, which runs commands of its own."""

    folder: Path
    fingerprint: str
    """Of all its files; the same wherever it lies."""
    runs: tuple[str, ...]
    """Its commands, for people."""
    packages: tuple[str, ...]
    """What it may ask to be installed."""
    is_ours: bool
    """Whether it is webdyno's own, or an unchanged copy of that, as runs keep it."""
    in_folder: Path | None = None
    """The folder as whose user it runs; None: as the servers' user."""
    in_container: bool = False
    """Whether it starts containers."""
    kept_in: Path | None = None
    """Belongs to whom it runs as, where that isn't the owner of `folder`."""


def foreign_parts(stacks: Iterable[Stack], sites: Iterable[Site]) -> list[ForeignPart]:
    """Give the parts that stacks and sites are made of and that aren't webdyno's own."""
    wanted = list(sites)
    roles = [stack.services for stack in stacks] + [site.services for site in wanted]
    services = {role.service.folder: role.service for each in roles for role in each.values()}
    parts = [_service(service) for service in services.values()]
    parts += [_site(site) for site in {site.folder: site for site in wanted}.values()]
    return [part for part in parts if not part.is_ours]


def _service(service: Service) -> ForeignPart:
    commands = [
        *(service.build.commands if service.build else []),
        service.check,
        *service.initialise,
        *service.before_start,
        service.own.setup if service.own else [],
        service.start,
        service.ready,
        service.tidy,
        service.snapshot,
        service.restore,
        service.query,
        service.counts,
        *([service.version.command] if isinstance(service.version, Version) else []),
        *(version.command for version in service.modules.values()),
    ]
    neighbours = _neighbours(service)
    for name in neighbours:
        service.path_of(name)  # it leads nowhere else
    fingerprint = _fingerprint(service.folder, neighbours)
    return ForeignPart(
        folder=service.folder,
        fingerprint=fingerprint,
        is_ours=fingerprint == _fingerprint(BUILT_IN / "services" / service.name, neighbours),
        runs=tuple(_shown(commands, service.folder / "service.toml")),
        packages=_packages(service.needs.values()),
        in_folder=Path(service.own.folder or service.folder) if service.own else None,
        in_container=service.own is not None and service.own.container_port is not None,
    )


def _neighbours(service: Service) -> list[str]:
    """Name the files of other services' folders that a service has, as it may: `OTHER/FILE`."""
    if service.build is None:
        return list(service.files.values())
    program = service.build.program
    inside = checked_files(service.path_of(program)) if service.path_of(program).is_dir() else {}
    return [*service.files.values(), *(f"{program}/{name}" for name in inside)]


def _site(site: Site) -> ForeignPart:
    commands = list(_shown(site.setup, site.folder / "site.toml"))
    if any((site.folder / name).is_dir() for name in ("root", "app")):
        commands.append("its files in root/ and app/, where a server runs such")
    fingerprint = _fingerprint(site.folder, [])
    return ForeignPart(
        folder=site.folder,
        fingerprint=fingerprint,
        is_ours=fingerprint == _fingerprint(BUILT_IN / "sites" / site.name, []),
        runs=tuple(commands),
        packages=_packages(site.requires.values()),
    )


def commands_around_rounds(
    states: Iterable[State], folder: Path, kept_in: Path | None = None
) -> list[ForeignPart]:
    """Give what experiments run before and after their rounds, as the user of a run's folder.

    Or of that which `kept_in` names, whose experiment it is. They run in the current folder, and
    are others in another one: `./reset.sh` is what lies there.
    """
    parts = (_around_rounds(state, folder, kept_in) for state in states)
    return list({part.fingerprint: part for part in parts if part.runs}.values())


def _around_rounds(state: State, folder: Path, kept_in: Path | None) -> ForeignPart:
    commands = [f"state.before_round: {command}" for command in state.before_round]
    commands += [f"state.after_round: {command}" for command in state.after_round]
    return ForeignPart(
        folder=folder,
        fingerprint=hashlib.sha256("\0".join([str(Path.cwd()), *commands]).encode()).hexdigest(),
        runs=tuple(_shortened(command, folder / EXPERIMENT_FILE) for command in commands),
        packages=(),
        is_ours=False,
        in_folder=folder,
        kept_in=kept_in,
    )


def _shown(commands: Sequence[Arguments], file: Path) -> Iterator[str]:
    for words in commands:
        if line := shlex.join(words):
            yield _shortened(line, file)


def _shortened(line: str, file: Path) -> str:
    """Return a command in one line, with its line breaks shown; say what of a long one is cut."""
    shown = " ".join(line.replace("\n", f" {LINE_BREAK} ").split())
    if len(shown) <= SHOWN_LETTERS:
        return shown
    cut = len(shown) - SHOWN_LETTERS
    return f"{shown[:SHOWN_LETTERS]}… ({cut:,} more letters: read {file})"


def _packages(needs: Iterable[Need]) -> tuple[str, ...]:
    return tuple(sorted({need.apt for need in needs}))


def _fingerprint(folder: Path, templates: Iterable[str]) -> str:
    """Sum up a folder's files, and those of the templates that lie in neighbouring folders."""
    digest = hashlib.sha256(f"{folder.parent.name}/{folder.name}\0".encode())
    path_of = {name: folder.parent / name for name in templates}
    neighbours = {name: path for name, path in path_of.items() if path.is_file()}
    files = [*checked_files(folder).items(), *neighbours.items()]
    for name, path in files:
        content = digest_of(path).hex() if path.is_file() else ""
        digest.update(f"{name}\0{content}\0".encode())
    return digest.hexdigest()
