"""`webdyno.toml` of a repository: how its program is started and measured."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, JsonValue, model_validator

from webdyno.config import CommandLine
from webdyno.config.checks import check_tables
from webdyno.config.reading import KeyPath, TomlFile, build
from webdyno.config.requests import files_sent
from webdyno.core.base import Model, Seconds
from webdyno.core.errors import UserError
from webdyno.core.paths import ReadyPath
from webdyno.core.service import Text, Variable
from webdyno.core.tables import as_table, is_table
from webdyno.core.text import RoleName
from webdyno.host.users import ServerUser, caller, refuse_of_others
from webdyno.systems.repository import top_around
from webdyno.systems.target import PROJECT_FILE

APP, REQUESTS, VARIANTS, FACTORS, STATE = "app", "requests", "variants", "factors", "state"
LEAST = '[app]\nbuild = "make"\nstart = "./server --port $PORT"'
"""For messages: what such a file needs at least, more or less."""


Words = Annotated[Text, Field(min_length=1)]


class App(Model):
    """What serves HTTP, in any revision of its repository: a program, container or server."""

    start: Words | None = None
    """A line of shell that serves HTTP on `$PORT` of 127.0.0.1, and stays in the foreground."""
    image: Words | None = None
    """Instead of it a container, as behind `image:`: the folder of a Dockerfile, `"."`, or
    `"compose.yaml#web"`, both as the revision has them, or an image's name."""
    conf: Words | None = None
    """Instead of it a web server's configuration, as behind `conf:`: a file of the revision."""
    root: Text | None = None
    """With `conf`: the document root, in the place of what the configuration names."""
    backends: dict[Text, Text] = {}
    """With `conf`: what answers in the place of hosts that it passes requests on to, the same for
    all revisions, as in `app = "cmd:./server --port $PORT"`."""
    build: Text | None = None
    """A line of shell that makes what is started: once for each revision, outside of any timing."""
    build_variables: list[Variable] = []
    """Names of variables of your shell that `build` gets as well, such as `JAVA_HOME`. A secret
    belongs into `environment`."""
    dir: str = "."
    """Where both run: a folder, relative to the file."""
    environment: dict[Variable, Text] = {}
    """Variables for both; `${env:NAME}` stands for a secret."""
    services: dict[RoleName, str] = {}
    """With `start` or `image`: services of the catalogue, or containers, that run next to it with
    data of their own, by role: with `db = "postgresql"` it finds the database by `$DATABASE_URL`,
    `$PGHOST`, `$DB_HOST` and so on; with `db = "image:mongo:7"` by `$MONGODB_URI`."""
    setup: Text | None = None
    """A line of shell that fills them, such as migrations and fixtures: run in `dir` once for each
    revision, with the variables that `start` has. Each start gets a copy of what it left."""
    prepare: Text | None = None
    """The same before each start, outside of any timing: for what can't be copied."""
    ready: ReadyPath | None = None
    """It is ready once this path is answered with a status of 2xx or 3xx; `"grpc"`: once gRPC's
    health service says SERVING."""
    ready_within: Seconds | None = None
    """It has so long to become ready; 20 s unless given."""
    settings: dict[str, JsonValue] = {}
    """Settings that variants may change and `webdyno tune` tunes, as `workers = { type = "whole",
    min = 1, max = 16 }`; `start` finds the value in `$WORKERS`."""

    @property
    def way(self) -> tuple[str, str]:
        """The key that says how it is started, and its value."""
        given = {"start": self.start, "image": self.image, "conf": self.conf}
        return next((key, value) for key, value in given.items() if value is not None)

    @model_validator(mode="after")
    def _has_one_way(self) -> Self:
        given = [way for way in (self.start, self.image, self.conf) if way is not None]
        if len(given) != 1:
            raise ValueError("[app] says how it starts by one of start, image and conf")
        if self.root is not None and self.conf is None:
            raise ValueError("root is for a configuration, conf")
        if self.backends and self.conf is None:
            raise ValueError("backends are for a configuration, conf")
        if self.settings and self.image is not None:
            raise ValueError("settings are for start and conf; a container has none")
        return self


@dataclass(frozen=True)
class Project:
    """A `webdyno.toml`; all but `[app]` are keys of an experiment."""

    file: TomlFile

    @classmethod
    def around(cls, folder: Path) -> "Project | None":
        """Find the file in a folder or, in a repository, in those around it up to its top.

        Raise UserError where it may be somebody else's, and where it names files that root may
        read, but not who its programs run as: they would be sent what is in them.
        """
        top = top_around(folder) or folder
        for each in (folder, *folder.parents):
            if (file := each / PROJECT_FILE).is_file():
                for path in (each, file):
                    refuse_of_others(path, top)
                user = caller(each)
                project = cls(TomlFile(file))
                # Who owned it before it was read could have put a folder of ours in its place.
                project._refuse_others(user or caller(each))
                return project
            if each == top:
                break
        return None

    @property
    def folder(self) -> Path:
        return self.file.path.parent

    def _refuse_others(self, user: ServerUser | None) -> None:
        """Refuse systems, which the command line names, and what its author may not do or read."""
        data = {key: value for key, value in self.file.data.items() if key != APP}
        for key in (VARIANTS, FACTORS):
            if key in data:
                raise UserError(
                    f"{self.file.place((key,))}: what is compared is named on the command line; "
                    "leave it out"
                )
        if user is None:
            return
        files = files_sent(check_tables(data, self.file.place), self.folder, self.file.place)
        if not user.called_sudo:
            refused = (STATE,) if STATE in data else next((where for where, _ in files), None)
            if refused is not None:
                raise UserError(
                    f"{self.file.place(refused)}: of a file of {user.name} root runs no commands "
                    f"and reads no other files; call webdyno as {user.name}"
                )
        for where, path in files:
            if not user.may_read(file := path.resolve()):
                raise UserError(
                    f"{self.file.place(where)}: {user.name}, as whom the program runs, may not "
                    f"read {file}, whose content it would get; allow that, or leave it out"
                )

    def app(self) -> App:
        """Read `[app]`; raise UserError, with file and line, where it isn't right."""
        keys = self.file.data.get(APP)
        if not is_table(keys):
            raise UserError(
                f"{self.file.path}: there is no [app], which says how to start it:\n\n{LEAST}"
            )
        app = build(App, keys, lambda where: self.file.place((APP, *where)))
        if Path(app.dir).is_absolute() or ".." in Path(app.dir).parts:
            place = self.file.place((APP, "dir"))
            raise UserError(f"{place}: dir is a folder inside the repository")
        return app


@dataclass(frozen=True)
class ProjectSource:
    """An experiment of a command line and, where that says nothing, of a project's file."""

    command_line: CommandLine
    project: Project

    @property
    def data(self) -> dict[str, Any]:
        """Both, table by table; paths of the command line replace the file's requests."""
        own_data = self.command_line.data
        excluded = {APP, REQUESTS} if "paths" in own_data.get("load", {}) else {APP}
        data = {key: value for key, value in self.project.file.data.items() if key not in excluded}
        for key, value in own_data.items():
            data[key] = as_table(data.get(key)) | value if is_table(value) else value
        return data

    @property
    def folder(self) -> Path:
        return self.project.folder

    def place(self, where: KeyPath) -> str:
        """Return the flag, or file and line."""
        parts = [where[:depth] for depth in range(1, len(where) + 1)]
        is_flag = any(part in self.command_line.flags for part in parts)
        if is_flag or (where and where[0] not in self.project.file.data):
            return self.command_line.place(where)
        return self.project.file.place(where)
