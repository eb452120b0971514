"""`webdyno.toml` of a repository: how its program is started, and how it is measured."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from webdyno.definitions import CommandLine
from webdyno.definitions.toml_file import KeyPath, TomlFile
from webdyno.definitions.validation import build
from webdyno.model.app import PROJECT_FILE, App
from webdyno.model.errors import UserError

APP, REQUESTS = "app", "requests"
LEAST = '[app]\nbuild = "make"\nstart = "./server --port $PORT"'
"""For messages: what such a file needs at least, more or less."""
GIT = ".git"


@dataclass(frozen=True)
class Project:
    """A `webdyno.toml`; all but `[app]` are keys of an experiment."""

    file: TomlFile

    @classmethod
    def around(cls, folder: Path) -> "Project | None":
        """Find the file in a folder or those around it, up to the top of the repository."""
        for each in (folder, *folder.parents):
            if (each / PROJECT_FILE).is_file():
                return cls(TomlFile(each / PROJECT_FILE))
            if (each / GIT).exists():
                break
        return None

    @property
    def folder(self) -> Path:
        return self.file.path.parent

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
