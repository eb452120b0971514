"""What lets a run be repeated elsewhere: its experiment as a file, its part of the catalogue."""

import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from webdyno.definitions import Catalogue
from webdyno.model.mistake import Trouble
from webdyno.model.run import CATALOGUE_FOLDER, EXPERIMENT_FILE, RunHead
from webdyno.model.service import Service
from webdyno.run.point import PlannedArm


def keep_for_repeating(folder: Path, head: RunHead, arms: Iterable[PlannedArm]) -> None:
    """Put the resolved experiment into a run's folder, and copies of what its arms are made of.

    Raise Trouble when the disk doesn't take them.
    """
    try:
        (folder / EXPERIMENT_FILE).write_text(head.experiment_toml(), encoding="utf-8")
        for kind, part in sorted(set(_parts(arms))):
            target = folder / CATALOGUE_FOLDER / kind / part.name
            shutil.copytree(part, target, ignore=_not_to_be_copied, ignore_dangling_symlinks=True)
    except OSError as error:
        raise Trouble(
            f"{folder}: the catalogue's part in this run can't be kept there: {error}"
        ) from error


def kept_catalogue(folder: Path) -> Catalogue:
    """Give the catalogue as it was when a run began; what the run doesn't use is as it is now."""
    kept = folder / CATALOGUE_FOLDER
    return Catalogue.load([kept] if kept.is_dir() else [])


def _parts(arms: Iterable[PlannedArm]) -> Iterator[tuple[str, Path]]:
    for arm in arms:
        yield "stacks", arm.stack.folder
        yield "sites", arm.site.folder
        for part in (*arm.stack.services.values(), *arm.site.services.values()):
            for folder in _folders_of(part.service):
                yield "services", folder


def _folders_of(service: Service) -> Iterator[Path]:
    """Give a service's own folder, and the neighbours that it takes templates from."""
    yield service.folder
    for template in service.files.values():
        neighbour = service.folder.parent / Path(template).parts[0]
        if not (service.folder / template).exists() and neighbour.is_dir():
            yield neighbour


def _not_to_be_copied(folder: str, names: list[str]) -> list[str]:
    """Sockets, pipes and devices hold no content; reading one can last for ever."""
    return [name for name in names if not _has_content(os.path.join(folder, name))]  # noqa: PTH118


def _has_content(path: str) -> bool:
    try:
        kind = os.stat(path).st_mode  # noqa: PTH116 (text comes in and goes out)
    except OSError:
        return False
    return stat.S_ISREG(kind) or stat.S_ISDIR(kind)
