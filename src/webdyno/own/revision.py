"""`rev:REVISION`: a state of the user's repository, built and started as `webdyno.toml` says."""

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from webdyno.host.users import caller, server_user
from webdyno.model.app import PROJECT_FILE
from webdyno.model.mistake import Mistake
from webdyno.model.secret import secret_values
from webdyno.own import command, configuration, image
from webdyno.own.kind import Asked, Made, declared_knobs, users_environment
from webdyno.own.project import LEAST, Project
from webdyno.revisions import Recipe, Repository, built

WAYS: Mapping[str, Callable[[Asked], Made]] = {
    "start": command.make,
    "image": image.make,
    "conf": configuration.make,
}
"""By the key of `[app]`: what a revision's folder is turned into."""


def make(asked: Asked) -> Made:
    """Build a revision, unless that was done before, and have it started."""
    repository = Repository.around(asked.folder, asked.place)
    project = Project.around(asked.folder)
    if project is None:
        raise Mistake(
            f"{asked.place}: no {PROJECT_FILE} from {asked.folder} up to {repository.top} says how "
            "to build and start it; `webdyno init` there writes one. It needs at least\n\n"
            f"{LEAST}"
        )
    app = project.app()
    command.check_services(
        app.services, asked.services, lambda where: project.file.place(("app", "services", *where))
    )
    revision = repository.revision(asked.text, asked.place)
    if lacking := repository.left_out_of(asked.text):
        asked.tell(f"{asked.written} {lacking}")
    within = Path(os.path.relpath(project.folder, repository.top)) / app.dir
    variables = {**app.environment, **asked.keys.environment}
    secret_values(variables.values(), os.environ)
    environment = users_environment(repository.top, variables)
    recipe = Recipe(app.build, within, environment)
    folder = built(repository, revision, recipe, asked.written, asked.tell) / within
    keys = asked.keys.replace(
        environment=variables,
        root=app.root,
        services={**app.services, **asked.keys.services},
        prepare=asked.keys.prepare or app.prepare,
        ready=asked.keys.ready or app.ready,
        ready_within=asked.keys.ready_within or app.ready_within,
    )
    declared = declared_knobs(app.knobs, lambda where: project.file.place(("app", "knobs", *where)))
    way, text = app.way
    if way != "start" and (keys.services or keys.prepare):
        place = project.file.place(("app",))
        raise Mistake(f"{place}: services and prepare are for an app that `start` starts")
    if way == "conf":
        _tell_if_closed(folder, asked)
    files = folder.resolve()
    here = replace(asked, text=text, keys=keys, folder=files, knobs={**declared, **asked.knobs})
    made = WAYS[way](here)
    return replace(made, service={**made.service, "version": revision.text})


def _tell_if_closed(folder: Path, asked: Asked) -> None:
    """Tell of pages that a server can't read since root's own folders are closed to its user."""
    user = caller(folder) or server_user()
    if user and (closed := user.kept_out_by(folder)):
        asked.tell(
            f"{asked.written}: {user.name}, as whom its server runs, may not enter {closed}: pages "
            "of the revision can't be read there; XDG_CACHE_HOME says where else revisions are kept"
        )
