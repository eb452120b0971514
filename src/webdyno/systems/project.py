"""`webdyno.toml` of a repository: how its program is started and measured; `rev:REVISION` by it."""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tomli_w

from webdyno.config import CommandLine
from webdyno.config.reading import KeyPath, TomlFile, build
from webdyno.core.errors import UserError
from webdyno.core.text import secret_values
from webdyno.host.users import caller, refuse_of_others, server_user
from webdyno.systems.app import PROJECT_FILE, App
from webdyno.systems.command import check_services
from webdyno.systems.kinds import KIND_OF_APP, KINDS
from webdyno.systems.revisions.builds import Recipe, built
from webdyno.systems.revisions.repository import GIT, Repository
from webdyno.systems.target import (
    GeneratedService,
    TargetSpec,
    declared_settings,
    users_environment,
)

if TYPE_CHECKING:  # these take a while to import
    from webdyno.systems.layouts.app import FoundApp
    from webdyno.systems.layouts.logins import Login

APP, REQUESTS = "app", "requests"
LEAST = '[app]\nbuild = "make"\nstart = "./server --port $PORT"'
"""For messages: what such a file needs at least, more or less."""


@dataclass(frozen=True)
class Project:
    """A `webdyno.toml`; all but `[app]` are keys of an experiment."""

    file: TomlFile

    @classmethod
    def around(cls, folder: Path) -> "Project | None":
        """Find the file in a folder or those around it, up to the top of the repository.

        Raise UserError where it may be somebody else's, and where it names files that root may
        read, but not who its programs run as: they would be sent what is in them.
        """
        for each in (folder, *folder.parents):
            if (file := each / PROJECT_FILE).is_file():
                refuse_of_others(each)
                refuse_of_others(file)
                project = cls(TomlFile(file))
                project._refuse_unreadable()
                return project
            if (each / GIT).exists():
                break
        return None

    @property
    def folder(self) -> Path:
        return self.file.path.parent

    def _refuse_unreadable(self) -> None:
        user = caller(self.folder)
        if user is None:
            return
        experiment = {key: value for key, value in self.file.data.items() if key != APP}
        for where, name in _files_in(experiment):
            path = (self.folder / name).resolve()
            if path.exists() and not user.may_read(path):
                raise UserError(
                    f"{self.file.place(where)}: {user.name}, as whom the program runs, may not "
                    f"read {path}, whose content it would get; allow that, or leave it out"
                )

    def app(self) -> App:
        """Read `[app]`; raise UserError, with file and line, where it isn't right."""
        app = self.file.data.get(APP)
        if not isinstance(app, dict):
            raise UserError(
                f"{self.file.path}: there is no [app], which says how to start it:\n\n{LEAST}"
            )
        built = build(App, app, lambda where: self.file.place((APP, *where)))
        if Path(built.dir).is_absolute() or ".." in Path(built.dir).parts:
            place = self.file.place((APP, "dir"))
            raise UserError(f"{place}: dir is a folder inside the repository")
        return built


def _files_in(value: object, where: KeyPath = ()) -> Iterator[tuple[KeyPath, str]]:
    """Yield the files that keys name whose content is sent: `body_file`, `replay_file`, `file`."""
    if isinstance(value, str):
        if where and str(where[-1]).endswith("file"):
            yield where, value
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield from _files_in(each, (*where, key))
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from _files_in(each, (*where, number))


@dataclass(frozen=True)
class ProjectSource:
    """An experiment of a command line and, where that says nothing, of a project's file."""

    command_line: CommandLine
    project: Project

    @property
    def data(self) -> dict[str, Any]:
        """Give both, table by table; paths of the command line replace the file's requests."""
        own_data = self.command_line.data
        excluded = {APP, REQUESTS} if "paths" in own_data.get("load", {}) else {APP}
        data = {key: value for key, value in self.project.file.data.items() if key not in excluded}
        for key, value in own_data.items():
            known = data.get(key)
            both = isinstance(known, dict) and isinstance(value, dict)
            data[key] = {**known, **value} if both else value  # type: ignore[dict-item]
        return data

    @property
    def folder(self) -> Path:
        return self.project.folder

    def place(self, where: KeyPath) -> str:
        """Name the flag, or file and line."""
        is_flag = any(
            where[:depth] in self.command_line.flags for depth in range(1, len(where) + 1)
        )
        if is_flag or (where and where[0] not in self.project.file.data):
            return self.command_line.place(where)
        return self.project.file.place(where)


BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def project_text(
    app: "FoundApp", requests: Mapping[str, int | None], login: "Login | None" = None
) -> str:
    """Give the file's text; comments stand where its user has to look.

    `requests` are paths, each with the status of its response where that has to be written.
    """
    load = list(_toml_lines(_load_table(app, login)))
    parts = ["[app]", *(f"# {doubt}" for doubt in app.doubts), *_toml_lines(_app_table(app))]
    if load:
        parts += ["", "[load]", *load]
    for step in login.steps if login else ():
        parts += ["", "[[login]]", *_toml_lines(step)]
    for path, status in requests.items():
        parts += ["", "[[requests]]", *_toml_lines({"path": path, "status": status})]
    return "\n".join(parts) + "\n"


def _app_table(app: "FoundApp") -> dict[str, object]:
    return {
        "dir": app.dir if app.dir != "." else None,
        "build": app.build,
        "services": app.services,
        "setup": app.setup,
        "prepare": app.prepare if app.start else None,
        "start": app.start,
        "image": app.image,
        "conf": app.conf,
        "root": app.root,
        "ready_within": app.ready_within_s,
        "environment": app.environment,
    }


def _load_table(app: "FoundApp", login: "Login | None") -> dict[str, object]:
    headers = {**app.headers, **(login.headers if login else {})}
    return {"connections": app.connections or None, "headers": headers}


def _toml_lines(pairs: Mapping[str, object], within: str = "") -> Iterator[str]:
    """Write what is given, each value in a line of its own: dotted keys stay in their table."""
    for name, value in pairs.items():
        key = within + (name if BARE_KEY.fullmatch(name) else _toml(name))
        if isinstance(value, Mapping):
            yield from _toml_lines(value, f"{key}.")
        elif value is not None:
            yield f"{key} = {_toml(value)}"


def _toml(value: object) -> str:
    return tomli_w.dumps({"key": value}).strip().removeprefix("key = ")


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
    check_services(
        app.services, spec.services, lambda where: project.file.place(("app", "services", *where))
    )
    revision = repository.revision(spec.text, spec.place)
    if lacking := repository.excluded_from(spec.text):
        spec.notify(f"{spec.written} {lacking}")
    within = Path(os.path.relpath(project.folder, repository.top)) / app.dir
    variables = {**app.environment, **spec.keys.environment}
    secret_values(variables.values(), os.environ)
    environment = users_environment(repository.top, variables)
    recipe = Recipe(app.build, within, environment, app.build_variables, spec.fresh)
    top = built(repository, revision, recipe, spec.written, spec.notify).resolve()
    folder = (top / within).resolve()
    if not folder.is_relative_to(top):
        raise UserError(
            f"{project.file.place((APP, 'dir'))}: leads out of the repository: {folder}"
        )
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
        _check_is_open(folder, spec)
    settings = {**declared, **spec.settings}
    in_revision = replace(spec, text=text, keys=keys, folder=folder, settings=settings, within=top)
    made = KINDS[KIND_OF_APP[way]].make(in_revision)
    return replace(made, service={**made.service, "version": revision.text})


def _check_is_open(folder: Path, spec: TargetSpec) -> None:
    """Report pages that a server can't read since root's own folders are closed to its user."""
    user = caller(folder) or server_user()
    if user and (closed := user.kept_out_by(folder)):
        spec.notify(
            f"{spec.written}: {user.name}, as whom its server runs, may not enter {closed}: pages "
            "of the revision can't be read there; XDG_CACHE_HOME says where else revisions are kept"
        )
