"""What has become of a configuration."""

from dataclasses import dataclass, field
from pathlib import Path

FOLDER, PORT, MODULES = "@webdyno-folder@", "@webdyno-port@", "@webdyno-modules@"
"""Stand for the run's folder and port, and for where Apache's modules are, in what becomes a
template."""
HOST = "127.0.0.1"
HTTP, HTTPS = 80, 443


@dataclass(frozen=True)
class Moved:
    """A configuration that can be started anywhere, and how."""

    name: str
    """Of its file."""
    text: str
    changes: list[str]
    """What isn't as its author wrote it, for people."""
    start: list[str]
    """Templates, as in `service.toml`; so is `check`."""
    check: list[str]
    folders: list[str] = field(default_factory=list)


def shown(text: str) -> str:
    """Write our marks as people read them."""
    return text.replace(FOLDER, "RUN").replace(PORT, "$PORT")


def beside(path: str, file: Path) -> str:
    """Give a path that was relative to a file as an absolute one."""
    return path if path.startswith("/") else str(file.parent / path)
