"""The catalogue: services, stacks, sites, experiments and studies, webdyno's own and users'.

What isn't webdyno's own is known by what it runs, and by the sum of its files.
"""

import hashlib
import logging
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel

from webdyno.config.checks import WrittenTable, fits
from webdyno.config.experiment import Draft, Override
from webdyno.config.reading import MOST_BYTES, TomlFile, build, nearest
from webdyno.core.errors import UserError
from webdyno.core.experiment import Experiment, Level, State
from webdyno.core.files import checked_files, digest_of, everything_below, read_own
from webdyno.core.registry import STACKS, load_extensions
from webdyno.core.run import EXPERIMENT_FILE
from webdyno.core.service import Arguments, Need, Service, Version, loads_code
from webdyno.core.stack import Site, Stack
from webdyno.core.study import Publication
from webdyno.core.whose import is_others_to_change, opened

logger = logging.getLogger(__name__)

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")

KINDS = ("services", "stacks", "sites", "experiments")
BUILT_IN = Path(__file__).resolve().parents[1] / "systems/catalog"


@dataclass(frozen=True)
class Catalogue:
    """Everything that can be named in an experiment or on the command line."""

    services: Mapping[str, Service]
    stacks: Mapping[str, Stack]
    sites: Mapping[str, Site]
    experiments: Mapping[str, Path]
    """Files; an experiment is read when it is asked for."""

    @classmethod
    def load(cls, extra_dirs: Iterable[Path] = ()) -> "Catalogue":
        """Read those of installed packages, webdyno's own and users'; names of later ones win."""
        folders = [*extra_dirs]
        for folder in folders:
            _demand_catalogue(folder, f"--catalog {folder}")
        read = _of_folders([*_package_folders(), *folders]) if folders else _without_users()
        logger.debug(
            "the catalog has %d services, %d stacks, %d sites and %d experiments",
            *(len(read.services), len(read.stacks), len(read.sites), len(read.experiments)),
        )
        return read

    def stack(self, name: str) -> Stack:
        """Return a stack; raise UserError with the nearest names if there is none of that name."""
        return _choose(self.stacks, "stack", name)

    def site(self, name: str) -> Site:
        """Return a site; raise UserError with the nearest names if there is none of that name."""
        return _choose(self.sites, "site", name)

    def sites_for(self, stack: Stack) -> list[Site]:
        """The sites that a stack can serve, those that need the least first."""
        fitting = [site for site in self.sites.values() if fits(stack, site)]
        return sorted(fitting, key=lambda site: (len(site.services), len(site.requires), site.name))

    def experiment(self, name_or_file: str, overrides: Sequence[Override] = ()) -> Experiment:
        """Read an experiment by name, or from a file, with overrides applied.

        Raise UserError when there is none, or when what it names doesn't exist or fit together.
        """
        return Draft.of(self.experiment_file(name_or_file), overrides).check(self)

    def experiment_file(self, name_or_file: str) -> TomlFile:
        """Read an experiment's file; raise UserError when there is none of that name.

        Also for a file that others may change: what it says is run and read.
        """
        if not (name_or_file.endswith(".toml") or "/" in name_or_file):
            return TomlFile(_choose(self.experiments, "experiment", name_or_file))
        file = Path(name_or_file)
        content, others = read_own(file, MOST_BYTES)
        if others:
            raise UserError(
                f"{file}: others may change {others}, so what is run and read: copy the file to "
                "where only you can write"
            )
        return TomlFile(file, content)

    def joined_by(self, folders: Sequence[Path]) -> "Catalogue":
        """Return it with what lies in some folders, whose names win."""
        services = {
            **self.services,
            **{
                path.parent.name: _read(Service, path, {})
                for path in _files(folders, "services/*/service.toml")
            },
        }
        stacks = {
            path.parent.name: _read(Stack, path, services)
            for path in _files(folders, "stacks/*/stack.toml")
        }
        sites = {
            path.parent.name: _read(Site, path, services)
            for path in _files(folders, "sites/*/site.toml")
        }
        experiments = {path.stem: path for path in _files(folders, "experiments/*.toml")}
        return replace(
            self,
            services=services,
            stacks={**self.stacks, **stacks},
            sites={**self.sites, **sites},
            experiments={**self.experiments, **experiments},
        )


def _demand_catalogue(folder: Path, place: str) -> None:
    if not folder.is_dir():
        raise UserError(f"{place}: there is no such folder")
    if not any((folder / kind).is_dir() for kind in KINDS):
        raise UserError(
            f"{place}: no catalog, which has one of the folders {', '.join(KINDS)}, such as "
            "stacks/NAME/stack.toml"
        )
    with opened(folder) as end:
        others = end.others
    if not (others or end.is_closed):
        below = everything_below(folder)
        others = next((part for part in below if is_others_to_change(part, groups=False)), None)
    if others:
        raise UserError(
            f"{place}: others may change {others}, so what runs while you are asked: copy the "
            "catalog to where only you can write"
        )


@cache
def _without_users() -> Catalogue:
    return _of_folders(_package_folders())


def _package_folders() -> list[Path]:
    """Return the folders of installed packages, then webdyno's own, whose names win."""
    added = load_extensions(STACKS, Path)
    for each in added:
        _demand_catalogue(each.value, each.place)
    return [*(each.value for each in added), BUILT_IN]


def _of_folders(folders: Sequence[Path]) -> Catalogue:
    return Catalogue({}, {}, {}, {}).joined_by(folders)


def _choose(choices: Mapping[str, T], kind: str, name: str) -> T:
    if name not in choices:
        raise UserError(f"there is no {kind} named {name!r}; {nearest(name, choices)}")
    return choices[name]


def _files(folders: Iterable[Path], pattern: str) -> list[Path]:
    paths = (path for folder in folders for path in sorted(folder.glob(pattern)))
    return [path for path in paths if path.is_file()]


class _Role(WrittenTable):
    service: str | None = None


class _Roles(WrittenTable):
    services: dict[str, _Role] = {}


def _read(model: type[M], path: Path, services: Mapping[str, Service]) -> M:
    """Read a definition; its roles get services in the place of their names."""
    file = TomlFile(path)
    build(_Roles, file.data, file.place)
    data = {**file.data, "name": path.parent.name, "folder": path.parent}
    roles = {}
    for role, part in file.data.get("services", {}).items():
        name = part.get("service")
        if name is not None and name not in services:
            place = file.place(("services", role, "service"))
            raise UserError(f"{place}: there is no service {name!r}; {nearest(name, services)}")
        roles[role] = part if name is None else {**part, "service": services[name]}
    return build(model, data | ({"services": roles} if roles else {}), file.place)


def read_studies() -> dict[str, Publication]:
    """Return webdyno's studies by name."""
    studies = {}
    for path in sorted((BUILT_IN / "studies").glob("*.toml")):
        file = TomlFile(path)
        studies[path.stem] = build(Publication, {**file.data, "name": path.stem}, file.place)
    return studies


def levels_first(study: Publication, name: str, experiment: Experiment) -> dict[str, list[Level]]:
    """Return the levels without which a study's claims about an experiment can't be judged.

    A factor that only some claims are confined to keeps its middle level for the others. Last come
    all load generators: the published way stands next to webdyno's own.
    """
    claims = [claim for claim in study.claims if claim.experiment == name]
    first: dict[str, list[Level]] = {}
    for factor in dict.fromkeys(factor for claim in claims for factor in claim.at):
        levels = experiment.factors[factor]
        middle = levels[(len(levels) - 1) // 2]
        wanted = [claim.at.get(factor, middle) for claim in claims]
        first[factor] = [level for level in levels if level in wanted]
    return first | {"generator": experiment.factors.get("generator", [])}


def check_study(study: Publication, catalogue: Catalogue) -> None:
    """Raise UserError when a study's claims can't be judged by its experiments."""
    for claim in study.claims:
        if claim.experiment not in study.experiments:
            raise UserError(f"study {study.name}: {claim.experiment} is none of its experiments")
        experiment = catalogue.experiment(claim.experiment)
        for variant in (*claim.variants, *([] if claim.is_figure else [claim.against])):
            if variant not in experiment.variants or claim.against in claim.variants:
                raise UserError(
                    f"study {study.name}: {claim.says!r}: {claim.experiment} has the variants "
                    f"{', '.join(experiment.variants)}; they say nothing of {variant}"
                )
        for factor, level in claim.at.items():
            if level not in experiment.factors.get(factor, []):
                raise UserError(
                    f"study {study.name}: {claim.says!r}: {factor} = {level} is no level of "
                    f"{claim.experiment}"
                )


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
    owner: int | None = None
    """The id of whose `in_folder` was known to be, as of `webdyno.core.service.Own.owner`."""


def foreign_parts(stacks: Iterable[Stack], sites: Iterable[Site]) -> list[ForeignPart]:
    """Return the parts that stacks and sites are made of and that aren't webdyno's own."""
    wanted = list(sites)
    roles = [stack.services for stack in stacks] + [site.services for site in wanted]
    services = {role.service.folder: role.service for each in roles for role in each.values()}
    parts = [_service_part(service) for service in services.values()]
    parts += [_site_part(site) for site in {site.folder: site for site in wanted}.values()]
    return [part for part in parts if not part.is_ours]


def _service_part(service: Service) -> ForeignPart:
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
        service.own.removed_by if service.own else [],
        *_loading_code(service.environment),
        *_loading_code(service.own.when_sampled if service.own else {}),
        *_loading_code(service.variables),
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
        owner=service.own.owner if service.own else None,
    )


def fingerprint_of(stack: Stack) -> str:
    """Sum up a stack and the services that it is made of; the same wherever they lie."""
    parts = [_service_part(role.service).fingerprint for role in stack.services.values()]
    return "-".join([_fingerprint(stack.folder, []), *parts])


def _loading_code(variables: Mapping[str, str]) -> Iterator[list[str]]:
    """Yield the variables that make programs run more than their own code."""
    return ([f"{name}={value}"] for name, value in variables.items() if loads_code(name))


def _neighbours(service: Service) -> list[str]:
    """Return the files of other services' folders that a service has: `OTHER/FILE`."""
    if service.build is None:
        return list(service.files.values())
    program = service.build.program
    inside = checked_files(service.path_of(program)) if service.path_of(program).is_dir() else {}
    return [*service.files.values(), *(f"{program}/{name}" for name in inside)]


def _site_part(site: Site) -> ForeignPart:
    commands = [*_shown([*site.setup, *_loading_code(site.environment)], site.folder / "site.toml")]
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


def commands_around_rounds(states: Iterable[State], folder: Path) -> list[ForeignPart]:
    """Return what experiments run before and after their rounds, as the user of a run's folder.

    They run in the current folder, and are others in another one: `./reset.sh` is what lies there.
    """
    parts: dict[str, ForeignPart] = {}
    for state in states:
        commands = [f"state.before_round: {command}" for command in state.before_round]
        commands += [f"state.after_round: {command}" for command in state.after_round]
        summed_up = "\0".join([str(Path.cwd()), *commands]).encode()
        fingerprint = hashlib.sha256(summed_up).hexdigest()
        if commands:
            parts[fingerprint] = ForeignPart(
                folder=folder,
                fingerprint=fingerprint,
                runs=tuple(_in_one_line(command, folder / EXPERIMENT_FILE) for command in commands),
                packages=(),
                is_ours=False,
                in_folder=folder,
            )
    return list(parts.values())


def _shown(commands: Sequence[Arguments], file: Path) -> Iterator[str]:
    for words in commands:
        if line := shlex.join(words):
            yield _in_one_line(line, file)


def _in_one_line(line: str, file: Path) -> str:
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
