"""What lets a run be repeated elsewhere: its experiment as a file, its part of the catalogue."""

import atexit
import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from webdyno.config import Catalogue
from webdyno.core.errors import OperationError, UserError
from webdyno.core.experiment import Experiment
from webdyno.core.files import (
    MIB,
    checked_files,
    everything_below,
    folder_inside,
    new_file,
    open_given,
    reading,
    write_whole,
)
from webdyno.core.run import CATALOGUE_FOLDER, EXPERIMENT_FILE
from webdyno.core.service import Service
from webdyno.core.text import in_shell
from webdyno.core.whose import FOLDER, trusted_users
from webdyno.host.copies import copy_opened, let_everybody_read
from webdyno.host.users import make_private, others_may_change, owner_of
from webdyno.host.workspace import Workspace
from webdyno.measure.planned import PlannedVariant, variants_of_all_points

MOST_KEPT_BYTES = 5 * 2**30
"""Of a catalogue that somebody else may have made: more than any twin of a site has."""


def keep_for_repeating(folder: Path, experiment: Experiment, catalogue: Catalogue) -> None:
    """Keep an experiment, and copies of what its variants are made of; raise OperationError."""
    variants = variants_of_all_points(experiment, catalogue)
    try:
        with _new_folder(folder, CATALOGUE_FOLDER) as kept:
            for name, path in _files_of(variants).items():
                _copy(path, kept / name)
            for service in _services(variants):
                if service.own:
                    _leave_to_owner(kept / "services" / service.folder.name, service.folder)
    except OSError as error:
        raise OperationError(
            f"{folder}: the catalog's part in this run can't be kept there: {error}"
        ) from error
    # Last, so that it says that all the rest is there.
    write_whole(folder / EXPERIMENT_FILE, experiment.toml())


@contextmanager
def _new_folder(folder: Path, name: str) -> Iterator[Path]:
    """Make a folder in another's folder, and yield a path that leads to it alone."""
    with folder_inside(folder, folder) as place:
        os.mkdir(name, dir_fd=place)
        made = os.open(name, FOLDER | os.O_NOFOLLOW, dir_fd=place)
    try:
        if os.fstat(made).st_uid != os.geteuid():
            raise PermissionError(f"somebody else's {name} is there")
        yield Path(f"/proc/self/fd/{made}")
    finally:
        os.close(made)


def _leave_to_owner(copy: Path, source: Path) -> None:
    """Leave a copy to whom the original belongs: as him run the programs that it names.

    From the bottom up, so that he can exchange nothing before all that is in it is his.
    """
    if owner := owner_of(source):
        deepest_first = sorted(everything_below(copy), key=lambda path: -len(path.parts))
        for path in deepest_first:
            os.chown(path, owner.uid, owner.gid, follow_symlinks=False)
        os.chown(copy, owner.uid, owner.gid)


def is_kept(folder: Path) -> bool:
    """Whether a folder holds what `keep_for_repeating` puts there."""
    return (folder / CATALOGUE_FOLDER).is_dir() and (folder / EXPERIMENT_FILE).is_file()


def kept_catalogue(folder: Path) -> Catalogue:
    """Return the catalogue as it was when a run began; what the run doesn't use is as it is now.

    So is all of it where the folder has no copy. What others may change is as it is when it is
    first asked for: what was agreed to is what runs. Raise UserError for a run of somebody else,
    for one that was killed while its copy was made, and for a copy that holds something else than
    files, such as a pipe.
    """
    if not (folder / CATALOGUE_FOLDER).is_dir():
        _refuse_of_others(folder, folder.stat())
        return Catalogue.load()
    return Catalogue.load([kept_folder(folder)])


def kept_folder(folder: Path) -> Path:
    """Return where a run's catalog lies out of others' reach; raise UserError as above."""
    kept = folder / CATALOGUE_FOLDER
    if not (folder / EXPERIMENT_FILE).is_file():
        raise UserError(f"{folder}: this run was ended before it began; remove it and begin again")
    size = sum(path.stat().st_size for path in checked_files(kept).values())
    if size > MOST_KEPT_BYTES:
        raise UserError(f"{kept} has more than {MOST_KEPT_BYTES // MIB} MiB, the most that is read")
    if others_may_change(kept):
        kept = _out_of_reach(folder.absolute())
        checked_files(kept)
    return kept


@cache
def _out_of_reach(folder: Path) -> Path:
    """Copy the catalogue of a run of ours to where nobody else gets at it."""
    with reading(folder / CATALOGUE_FOLDER), folder_inside(folder) as run:
        kept = os.open(CATALOGUE_FOLDER, FOLDER | os.O_NOFOLLOW, dir_fd=run)
        try:
            for part in (run, kept):
                _refuse_of_others(folder, os.fstat(part))
            workspace = Workspace()
            atexit.register(workspace.remove)
            copy = make_private(make_private(workspace.path / "kept") / CATALOGUE_FOLDER)
            copy_opened(kept, copy, None, MOST_KEPT_BYTES)
            let_everybody_read(copy)  # and nobody write, who might in the original
        finally:
            os.close(kept)
    return copy


def _refuse_of_others(folder: Path, status: os.stat_result) -> None:
    """Raise UserError for a run of somebody else: he may have written all that it says to do."""
    if status.st_uid not in trusted_users():
        raise UserError(
            f"{folder} is somebody else's run, which can be read but not gone on with: copy it, "
            f"which makes it yours (cp -r {in_shell(folder)} …), or run webdyno as its owner"
        )


def _parts(variants: Iterable[PlannedVariant]) -> Iterator[tuple[str, Path]]:
    """Return the folders of what the variants are made of, each with its kind."""
    for variant in variants:
        yield "stacks", variant.stack.folder
        yield "sites", variant.site.folder
    for service in _services(variants):
        yield "services", service.folder


def _services(variants: Iterable[PlannedVariant]) -> Iterator[Service]:
    for variant in variants:
        for part in (*variant.stack.services.values(), *variant.site.services.values()):
            yield part.service


def files_to_keep(experiment: Experiment, catalogue: Catalogue) -> dict[str, Path]:
    """Return the files and folders that an experiment's variants are made of.

    By their paths in a run's part of the catalog. Raise UserError for links that lead elsewhere.
    """
    return _files_of(variants_of_all_points(experiment, catalogue))


def _files_of(variants: Sequence[PlannedVariant]) -> dict[str, Path]:
    files: dict[str, Path] = {}
    for kind, part in sorted(set(_parts(variants))):
        files |= _below(part, f"{kind}/{part.name}")
    for service in _services(variants):
        for name in _neighbours(service):
            path = service.path_of(name)
            if (kept := f"services/{name}") not in files:
                files |= _below(path, kept) if path.is_dir() else {kept: path.resolve()}
    return dict(sorted(files.items()))


def _below(folder: Path, name: str) -> dict[str, Path]:
    below = {f"{name}/{inside}": path for inside, path in checked_files(folder).items()}
    return {name: folder.resolve()} | below


def _neighbours(service: Service) -> Iterator[str]:
    """Yield what a service takes from neighbouring folders: `OTHER/FILE`, `OTHER/PROGRAM`."""
    wanted = [*([service.build.program] if service.build else []), *service.files.values()]
    return (name for name in wanted if not (service.folder / name).exists())


def _copy(source: Path, target: Path) -> None:
    """Copy a folder without what is in it, or a file; a link, which stays inside, goes on so."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_symlink():
        target.symlink_to(os.path.relpath(source.resolve(), source.parent.resolve()))
    elif source.is_dir():
        target.mkdir(exist_ok=True)
    else:
        _copy_file(source, target)


def _copy_file(source: Path, target: Path) -> None:
    """Copy a file that is no link, with its mode: whom it was closed to the copy is closed to."""
    with open_given(source) as given:
        mode = stat.S_IMODE(os.fstat(given.fileno()).st_mode)
        with new_file(target, mode) as copy:
            shutil.copyfileobj(given, copy)
