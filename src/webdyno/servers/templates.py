"""What is to be filled in of a service's or a site's templates, and what came out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from webdyno.core.service import Service, Version

Context = Mapping[str, Any]
"""What templates can name; an unknown name is a mistake in the template."""

AS_WRITTEN = (
    *("check", "initialise", "before_start", "start", "ready", "tidy", "snapshot", "restore"),
    *("counts", "query", "environment", "facts"),
)
"""Keys of a service that are filled in as they stand."""


@dataclass(frozen=True)
class Job:
    """Templates that are filled in with the same names."""

    texts: Mapping[str, Any]
    """Short templates in lists and mappings, however deep; what comes back has the same form."""
    where: Path
    """The file that they stand in."""
    context: Context
    files: Mapping[str, str] = field(default_factory=dict)
    """Name of a configuration file, and the name of the template it is made from."""
    folder: Path | None = None
    """Where those lie: `OTHER/FILE` is one of a neighbouring folder."""


@dataclass(frozen=True)
class RenderedJob:
    """The rendered templates of a job."""

    texts: Mapping[str, Any]
    files: Mapping[str, str]

    def words(self, key: str) -> list[str]:
        """Return a command line; words that came out empty are excluded."""
        return without_empty(self.texts[key])


def without_empty(words: Sequence[str]) -> list[str]:
    return [word for word in words if word]


def service_job(service: Service, context: Context) -> Job:
    """Return all that a service's definition wants filled in."""
    status = service.status
    return Job(
        texts={key: getattr(service, key) for key in AS_WRITTEN}
        | {
            "setup": service.own.setup if service.own else [],
            "removed_by": service.own.removed_by if service.own else [],
            "variables": {} if service.own else service.variables,
            "version": service.version.command if isinstance(service.version, Version) else [],
            "modules": {name: version.command for name, version in service.modules.items()},
            "status": {
                "path": status.path,
                "workers": status.workers or "",
                "password": status.password or "",
            }
            if status
            else {},
        },
        where=service.folder / "service.toml",
        context=context,
        files=service.files,
        folder=service.folder,
    )
