"""`rev:REVISION`: a state of the user's repository, built and started as `webdyno.toml` says."""

import os
from dataclasses import replace
from pathlib import Path

from webdyno.model.app import PROJECT_FILE
from webdyno.model.mistake import Mistake
from webdyno.own import knobs
from webdyno.own.command import served_by
from webdyno.own.kind import Asked, Made, users_environment
from webdyno.own.project import LEAST, Project
from webdyno.revisions import Recipe, Repository, built


def make(asked: Asked) -> Made:
    """Build a revision, unless that was done before, and have it started."""
    repository = Repository.around(asked.folder, asked.place)
    project = Project.around(asked.folder)
    if project is None:
        raise Mistake(
            f"{asked.place}: no {PROJECT_FILE} from {asked.folder} up to {repository.top} says how "
            f"to build and start it; it needs at least\n\n{LEAST}"
        )
    app = project.app()
    revision = repository.revision(asked.text, asked.place)
    if lacking := repository.left_out_of(asked.text):
        asked.tell(f"{asked.written} {lacking}")
    within = Path(os.path.relpath(project.folder, repository.top)) / app.dir
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
    declared = knobs.read(app.knobs, lambda where: project.file.place(("app", "knobs", *where)))
    here = replace(asked, keys=keys, folder=folder.resolve(), knobs={**declared, **asked.knobs})
    return Made({**served_by(here, app.start), "version": revision.text})
