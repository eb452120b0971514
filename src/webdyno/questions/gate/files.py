"""A revision's files, and whether it would be measured by other rules than a project's."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from webdyno.config.checks import check_tables
from webdyno.config.requests import files_sent
from webdyno.core.files import MIB, read_named
from webdyno.core.tables import toml_data
from webdyno.systems.repository import is_blob

if TYPE_CHECKING:
    from webdyno.systems.project import Project
    from webdyno.systems.repository import Repository, Revision

MOST_NAMED_BYTES = 256 * MIB


@dataclass(frozen=True)
class Files:
    """What a revision consists of."""

    repository: "Repository"
    revision: "Revision"

    def rules_differ(self, project: "Project") -> bool:
        """Whether it would be measured by other rules than the project's, its program aside."""
        from webdyno.systems.project import APP

        try:
            own = toml_data(self._project_text())
        except ValueError:
            return True
        data = {**project.file.data, APP: None}
        tables = check_tables(project.file.data, project.file.place)
        sent = files_sent(tables, project.folder, project.file.place)
        is_other = _written({**own, APP: None}) != _written(data)
        return is_other or any(self._differs(path) for _, path in sent)

    def _differs(self, file: Path) -> bool:
        """Whether a file that requests are made of is another one here; not if it isn't of here."""
        top, path = self.repository.top.resolve(), Path(os.path.normpath(file.absolute()))
        if not path.is_relative_to(top):
            return False
        there = self.repository.blob_of(self.revision, path.relative_to(top))
        here = read_named(path, MOST_NAMED_BYTES)
        # Git may have made its line breaks those of another system.
        return there is None or not (
            is_blob(here, there) or is_blob(here.replace(b"\r\n", b"\n"), there)
        )

    def _project_text(self) -> str:
        """Return what stands in the file that is found from here up, as `Project.around` does."""
        from webdyno.systems.target import PROJECT_FILE

        top = self.repository.top.resolve()
        here = Path.cwd().relative_to(top)
        texts = (
            self.repository.file_of(self.revision, folder / PROJECT_FILE)
            for folder in (here, *here.parents)
        )
        return next((text for text in texts if text is not None), "")


def _written(data: object) -> str:
    """Return data as they would be sent: 1, 1.0 and true are equal to Python."""
    return json.dumps(data, sort_keys=True, default=repr)
