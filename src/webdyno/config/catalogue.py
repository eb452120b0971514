"""The catalogue: services, stacks, sites, experiments and studies, webdyno's own and users'.

What isn't webdyno's own is known by the sum over its files.
"""

import hashlib
import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel

from webdyno.config.checks import WrittenTable, fits
from webdyno.config.experiment import Draft, Override
from webdyno.config.reading import MOST_BYTES, TomlFile, build, nearest
from webdyno.core.errors import UserError
from webdyno.core.experiment import Experiment, Level
from webdyno.core.files import checked_files, digest_of, everything_below, read_own, reading
from webdyno.core.registry import STACKS, load_extensions
from webdyno.core.service import Service
from webdyno.core.stack import Site, Stack
from webdyno.core.study import Publication
from webdyno.core.text import in_shell
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
    folders: tuple[Path, ...] = ()
    """Those of users, whose code a part of it is: see `webdyno.launch.foreign`."""

    @classmethod
    def load(cls, extra_dirs: Iterable[Path] = ()) -> "Catalogue":
        """Read those of installed packages, webdyno's own and users'; names of later ones win."""
        folders = [*extra_dirs]
        for folder in folders:
            _demand_catalogue(folder, f"--catalog {folder}")
        read = _without_users()
        if folders:
            read = replace(read.joined_by(folders, replaces=True), folders=tuple(folders))
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
                f"where only you can write, or close it to them (chmod -R go-w {in_shell(others)})"
            )
        return TomlFile(file, content)

    def joined_by(self, folders: Sequence[Path], *, replaces: bool = False) -> "Catalogue":
        """Return it with what lies in some folders, whose names win.

        With `replaces` what had services of these names gets the new ones.
        """
        added = {
            path.parent.name: _read(Service, path, {})
            for path in _files(folders, "services/*/service.toml")
        }
        services = {**self.services, **added}
        renewed = added.keys() & self.services.keys() if replaces else set[str]()

        def read(model: type[M], parts: Iterable[Stack | Site], kind: str) -> dict[str, M]:
            file = f"{kind}.toml"
            again = (
                part.folder / file
                for part in parts
                if any(role.service.name in renewed for role in part.services.values())
            )
            paths = [*again, *_files(folders, f"{kind}s/*/{file}")]
            return {path.parent.name: _read(model, path, services) for path in paths}

        stacks = read(Stack, self.stacks.values(), "stack")
        sites = read(Site, self.sites.values(), "site")
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
    if not others:
        below = everything_below(folder)
        others = next((part for part in below if is_others_to_change(part, groups=False)), None)
    if others:
        raise UserError(
            f"{place}: others may change {others}, so what runs while you are asked: copy "
            "the catalog to where only you can write, or close it to them (chmod -R go-w "
            f"{in_shell(others)})"
        )


@cache
def _without_users() -> Catalogue:
    """Return what installed packages and webdyno itself have, whose names win."""
    added = load_extensions(STACKS, Path)
    for each in added:
        _demand_catalogue(each.value, each.place)
    return Catalogue({}, {}, {}, {}).joined_by([*(each.value for each in added), BUILT_IN])


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


def files_of(folder: Path) -> dict[str, Path]:
    """Return the files and folders of a catalog by their path in it, in the order of names.

    Raise UserError for links that lead out of it, and for what is neither file nor folder.
    """
    kinds = [kind for kind in KINDS if (folder / kind).is_dir()]
    for kind in kinds:
        if not (folder / kind).resolve().is_relative_to(folder.resolve()):
            raise UserError(f"{folder / kind} leads out of {folder}: a catalog's files stay inside")
    return {
        f"{kind}/{name}": path
        for kind in kinds
        for name, path in checked_files(folder / kind).items()
    }


def content_of(files: Mapping[str, Path]) -> str | None:
    """Return the sum over a catalog's files; None where all are as in webdyno's own."""
    summed_up, is_ours = hashlib.sha256(), True
    for name, path in sorted(files.items()):
        if path.is_file():
            with reading(path):
                digest, kind = digest_of(path), "x" if path.stat().st_mode & 0o100 else "f"
        elif path.is_symlink():  # to a folder, whose files it has under another name
            leads_to = os.path.relpath(path.resolve(), path.parent.resolve())
            digest, kind = hashlib.sha256(os.fsencode(leads_to)).digest(), "l"
        else:
            continue
        summed_up.update(os.fsencode(f"{name}\0{kind}") + digest)
        is_ours = is_ours and kind != "l" and _is_built_in(name, digest)
    return None if is_ours else summed_up.hexdigest()


def _is_built_in(name: str, digest: bytes) -> bool:
    ours = BUILT_IN / name
    return ours.is_file() and digest_of(ours) == digest
