"""`rev:REVISION`: a state of the user's repository, built and started as `webdyno.toml` says."""

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from webdyno.host.users import caller, server_user
from webdyno.model.app import PROJECT_FILE
from webdyno.model.errors import UserError
from webdyno.model.text import secret_values
from webdyno.own import command, configuration, image
from webdyno.own.project import LEAST, Project
from webdyno.own.target import GeneratedService, TargetSpec, declared_settings, users_environment
from webdyno.revisions.builds import Recipe, built
from webdyno.revisions.repository import Repository

WAYS: Mapping[str, Callable[[TargetSpec], GeneratedService]] = {
    "start": command.make,
    "image": image.make,
    "conf": configuration.make,
}
"""By the key of `[app]`: what a revision's folder is turned into."""


def make(spec: TargetSpec) -> GeneratedService:
    """Build a revision, unless that was done before, and have it started."""
    repository = Repository.around(spec.folder, spec.place)
    project = Project.around(spec.folder)
    if project is None:
        raise UserError(
            f"{spec.place}: no {PROJECT_FILE} from {spec.folder} up to {repository.top} says how "
            "to build and start it; `webdyno init` there writes one. It needs at least\n\n"
            f"{LEAST}"
        )
    app = project.app()
    command.check_services(
        app.services, spec.services, lambda where: project.file.place(("app", "services", *where))
    )
    revision = repository.revision(spec.text, spec.place)
    if lacking := repository.excluded_from(spec.text):
        spec.tell(f"{spec.written} {lacking}")
    within = Path(os.path.relpath(project.folder, repository.top)) / app.dir
    variables = {**app.environment, **spec.keys.environment}
    secret_values(variables.values(), os.environ)
    environment = users_environment(repository.top, variables)
    recipe = Recipe(app.build, within, environment, spec.fresh)
    folder = built(repository, revision, recipe, spec.written, spec.tell) / within
    keys = spec.keys.replace(
        environment=variables,
        root=app.root,
        backends={**app.backends, **spec.keys.backends},
        services={**app.services, **spec.keys.services},
        setup=spec.keys.setup or app.setup,
        prepare=spec.keys.prepare or app.prepare,
        ready=spec.keys.ready or app.ready,
        ready_within=spec.keys.ready_within or app.ready_within,
    )
    declared = declared_settings(
        app.settings, lambda where: project.file.place(("app", "settings", *where))
    )
    way, text = app.way
    place = project.file.place(("app",))
    if way == "conf" and keys.services:
        raise UserError(f"{place}: services are for an app that `start` or `image` starts")
    if way != "start" and (keys.setup or keys.prepare):
        raise UserError(f"{place}: setup and prepare are for an app that `start` starts")
    if way != "conf" and keys.backends:
        raise UserError(
            f"{spec.place}: backends are for a configuration, and {project.file.place(('app',))} "
            f"has {way}"
        )
    if way == "conf":
        _tell_if_closed(folder, spec)
    files = folder.resolve()
    in_revision = replace(
        spec, text=text, keys=keys, folder=files, settings={**declared, **spec.settings}
    )
    made = WAYS[way](in_revision)
    return replace(made, service={**made.service, "version": revision.text})


def _tell_if_closed(folder: Path, spec: TargetSpec) -> None:
    """Tell of pages that a server can't read since root's own folders are closed to its user."""
    user = caller(folder) or server_user()
    if user and (closed := user.kept_out_by(folder)):
        spec.tell(
            f"{spec.written}: {user.name}, as whom its server runs, may not enter {closed}: pages "
            "of the revision can't be read there; XDG_CACHE_HOME says where else revisions are kept"
        )
