"""`[app]` of a `webdyno.toml`: how a user's own program is built, started and reached."""

from typing import Annotated, Self

from pydantic import Field, JsonValue, model_validator

from webdyno.core.base import Model, Seconds
from webdyno.core.files import RoleName
from webdyno.core.request import WrittenPath
from webdyno.core.service import Text, Variable
from webdyno.core.setting import Setting

PROJECT_FILE = "webdyno.toml"
"""Lies at the top of a repository, or of the part of it that is the program."""


Words = Annotated[Text, Field(min_length=1)]
SettingName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]


class DeclaredSettings(Model):
    """Settings of a user's program that may be changed, and tuned."""

    settings: dict[SettingName, Setting]


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
    """With `start` or `image`: services of the catalogue that run next to it with data of their
    own, by role: with `db = "postgresql"` it finds the database by `$DATABASE_URL`, `$PGHOST`,
    `$DB_HOST` and so on."""
    setup: Text | None = None
    """A line of shell that fills them, such as migrations and fixtures: run in `dir` once for each
    revision, with the variables that `start` has. Each start gets a copy of what it left."""
    prepare: Text | None = None
    """The same before each start, outside of any timing: for what can't be copied."""
    ready: WrittenPath | None = None
    """It is ready once this path is answered with a status of 2xx or 3xx."""
    ready_within: Seconds | None = None
    """It has so long to become ready; 20 s unless given."""
    settings: dict[str, JsonValue] = {}
    """Settings that variants may change and `webdyno tune` tunes, as `workers = { type = "whole",
    min = 1, max = 16 }`; `start` finds the value in `$WORKERS`."""

    @property
    def way(self) -> tuple[str, str]:
        """Give the key that says how it is started, and its value."""
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
