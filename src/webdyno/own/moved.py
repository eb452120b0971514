"""What has become of a configuration."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from webdyno.bench.users import ServerUser, name_of
from webdyno.model.mistake import Mistake

FOLDER, PORT, MODULES = "@webdyno-folder@", "@webdyno-port@", "@webdyno-modules@"
"""Stand for the run's folder and port, and for where Apache's modules are, in what becomes a
template."""
CERTIFICATE, KEY = "@webdyno-certificate@", "@webdyno-key@"
KEY_AND_CERTIFICATE = "@webdyno-key-and-certificate@"
"""Stand for the files of the run's own certificate."""
HOST = "127.0.0.1"
HTTP, HTTPS = 80, 443
SHOWN = {
    FOLDER: "RUN",
    PORT: "$PORT",
    CERTIFICATE: "RUN/certificate.pem",
    KEY: "RUN/key.pem",
    KEY_AND_CERTIFICATE: "RUN/key-and-certificate.pem",
}


@dataclass(frozen=True)
class Wanted:
    """What is asked of a configuration."""

    file: Path
    root: Path | None = None
    """The document root, in the place of what the file names."""
    protocol: str = "http"
    """What clients speak with it: http, https, h2 or h2c."""
    user: ServerUser | None = None
    """Whom it runs as; None for ourselves."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Its variables."""

    @property
    def is_secure(self) -> bool:
        """Whether clients speak with it over TLS."""
        return self.protocol in {"https", "h2"}

    def may_read(self, path: str) -> bool:
        """Whether the server will be able to read a file that its configuration names."""
        file = Path(beside(path, self.file))
        return self.user.may_read(file) if self.user else os.access(file, os.R_OK)

    def unreadable(self, now: str, before: str) -> str:
        """Say that the run's own certificate is shown, and why."""
        return f"{shown(now)} (the run's own), not {before}: {name_of(self.user)} can't read that"

    def listens_nowhere(self) -> Mistake:
        """Say that there is nothing that could be asked."""
        if self.is_secure:
            return Mistake(
                f"{self.file} listens nowhere for HTTP with TLS, which load.protocol = "
                f'"{self.protocol}" asks for; give it such a listener, or load.protocol = "http"'
            )
        return Mistake(
            f"{self.file} listens nowhere for HTTP without TLS, which is what is asked for; give "
            'it such a listener, or load.protocol = "https"'
        )

    def measured(self, ports: list[int]) -> int:
        """Choose, among the ports that would do, the one that is measured: the usual one first."""
        if not ports:
            raise self.listens_nowhere()
        usual = HTTPS if self.is_secure else HTTP
        return usual if usual in ports else ports[0]


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
    environment: dict[str, str] = field(default_factory=dict)
    """Variables that it needs, as templates."""
    knows_comments: bool = True
    """Whether its format has lines that begin with #."""


def shown(text: str) -> str:
    """Write our marks as people read them."""
    for mark, word in SHOWN.items():
        text = text.replace(mark, word)
    return text


def beside(path: str, file: Path) -> str:
    """Give a path that was relative to a file as an absolute one."""
    return path if path.startswith("/") else str(file.parent / path)
