"""`rev:REVISION`: a state of the user's repository, built and started as `webdyno.toml` says."""

import os
from dataclasses import replace
from pathlib import Path

from webdyno.definitions.refusal import build
from webdyno.definitions.toml_file import TomlFile
from webdyno.model.app import PROJECT_FILE, App
from webdyno.model.mistake import Mistake
from webdyno.own.command import served_by
from webdyno.own.kind import Asked, Made, users_environment
from webdyno.revisions import Recipe, Repository, built
from webdyno.revisions.repository import WORKING_TREE

LEAST = '[app]\nbuild = "make"\nstart = "./server --port $PORT"'


def make(asked: Asked) -> Made:
    """Build a revision, unless that was done before, and have it started."""
    repository = Repository.around(asked.folder, asked.place)
    file = project_file(asked.folder, repository.top)
    if file is None:
        raise Mistake(
            f"{asked.place}: no {PROJECT_FILE} from {asked.folder} up to {repository.top} says how "
            f"to build and start it; it needs at least\n\n{LEAST}"
        )
    app = read_app(file)
    revision = repository.revision(asked.text, asked.place)
    _tell_of_changes(asked, repository)
    within = Path(os.path.relpath(file.parent, repository.top)) / app.dir
    variables = {**app.environment, **asked.keys.environment}
    environment = users_environment(repository.top, variables)
    recipe = Recipe(app.build, within, environment)
    folder = built(repository, revision, recipe, asked.written, asked.tell) / within
    keys = asked.keys.model_copy(
        update={
            "environment": variables,
            "ready": asked.keys.ready or app.ready,
            "ready_within": asked.keys.ready_within or app.ready_within,
        }
    )
    here = replace(asked, keys=keys, folder=folder.resolve())
    return Made({**served_by(here, app.start), "version": revision.text})


def project_file(folder: Path, top: Path) -> Path | None:
    """Find `webdyno.toml` in a folder or those around it, up to the top of the repository."""
    inside = [it for it in (folder, *folder.parents) if it.is_relative_to(top)]
    return next((path for it in inside if (path := it / PROJECT_FILE).is_file()), None)


def read_app(file: Path) -> App:
    """Read `[app]`; raise Mistake, with file and line, where it isn't right."""
    toml = TomlFile(file)
    app = toml.data.get("app")
    if not isinstance(app, dict):
        raise Mistake(f"{file}: there is no [app], which says how to start it:\n\n{LEAST}")
    found = build(App, app, lambda where: toml.place(("app", *where)))
    if Path(found.dir).is_absolute() or ".." in Path(found.dir).parts:
        raise Mistake(f"{toml.place(('app', 'dir'))}: dir is a folder inside the repository")
    return found


def _tell_of_changes(asked: Asked, repository: Repository) -> None:
    """A revision lacks what nobody has committed; say so, unless the working tree is asked for."""
    if asked.text != WORKING_TREE and asked.text.startswith("HEAD") and repository.changes():
        asked.tell(
            f"{asked.written} leaves out the changes of the working tree that aren't committed; "
            f"rev:{WORKING_TREE} has them"
        )
