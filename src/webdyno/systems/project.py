"""`webdyno.toml` of a repository: how its program is started and measured."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from webdyno.config import CommandLine
from webdyno.config.reading import KeyPath, TomlFile, build
from webdyno.core.errors import UserError
from webdyno.host.users import caller, refuse_of_others
from webdyno.systems.repository import GIT
from webdyno.systems.tables import as_table, is_table
from webdyno.systems.target import (
    PROJECT_FILE,
    App,
)

APP, REQUESTS, VARIANTS, FACTORS, STATE = "app", "requests", "variants", "factors", "state"
LEAST = '[app]\nbuild = "make"\nstart = "./server --port $PORT"'
"""For messages: what such a file needs at least, more or less."""


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
        around = (folder, *folder.parents)
        tops = [number for number, each in enumerate(around) if (each / GIT).exists()]
        for each in around[: tops[0] + 1 if tops else 1]:
            if (file := each / PROJECT_FILE).is_file():
                refuse_of_others(each)
                refuse_of_others(file)
                project = cls(TomlFile(file))
                project._refuse_others()
                return project
        return None

    @property
    def folder(self) -> Path:
        return self.file.path.parent

    def _refuse_others(self) -> None:
        """Refuse systems, which the command line names, and what its author may not do or read."""
        data = {key: value for key, value in self.file.data.items() if key != APP}
        factors = as_table(data.get(FACTORS))
        named = [(FACTORS, key) for key in factors if str(key).startswith(f"{VARIANTS}.")]
        if VARIANTS in data or named:
            place = self.file.place(named[0] if named else (VARIANTS,))
            raise UserError(f"{place}: what is compared is named on the command line; leave it out")
        user = caller(self.folder)
        if user is None:
            return
        files = list(_files_in(data))
        is_caller = os.environ.get("SUDO_UID") == str(user.uid)
        if not is_caller and (
            refused := [(STATE,)] if STATE in data else [where for where, _ in files]
        ):
            raise UserError(
                f"{self.file.place(refused[0])}: of a file of {user.name} root runs no commands "
                f"and reads no other files; call webdyno as {user.name}"
            )
        for where, name in files:
            path = (self.folder / name).resolve()
            if not user.may_read(path):
                raise UserError(
                    f"{self.file.place(where)}: {user.name}, as whom the program runs, may not "
                    f"read {path}, whose content it would get; allow that, or leave it out"
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
