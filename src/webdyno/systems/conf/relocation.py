"""What all servers have in common whose configuration is moved: to our port, folder and user."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import regex

from webdyno.core.errors import OperationError, UserError
from webdyno.core.files import write_whole
from webdyno.core.format import listed, listed_to
from webdyno.core.load import SECURE
from webdyno.core.service import Origin
from webdyno.host.children import in_session, no_orphans
from webdyno.host.users import ServerUser, hand_over, make_private, name_of
from webdyno.systems.conf.config_files import ConfigFiles
from webdyno.systems.conf.passing import Backends, PassedOn

FOLDER, PORT, MODULES = "@webdyno-folder@", "@webdyno-port@", "@webdyno-modules@"
"""Stand for the run's folder and port, and for where Apache's modules are, in what becomes a
template."""
CERTIFICATE, KEY = "@webdyno-certificate@", "@webdyno-key@"
KEY_AND_CERTIFICATE = "@webdyno-key-and-certificate@"
"""Stand for the files of the run's own certificate."""
HOST = "127.0.0.1"
HTTP, HTTPS = 80, 443
NO_OTHER_USER = "an ordinary user has no other"
SHOWN_NAMES = 10
PATTERN_WITHIN_S = 1.0
CRYPTO_POLICIES = Path("/etc/crypto-policies")
SHOWN = {
    FOLDER: "RUN",
    PORT: "$PORT",
    CERTIFICATE: "RUN/certificate.pem",
    KEY: "RUN/key.pem",
    KEY_AND_CERTIFICATE: "RUN/key-and-certificate.pem",
}


def port_of(address: str) -> int | None:
    """Return the port of `80`, `*:80` or `[::]:80`; None where any port is meant."""
    last = address.rpartition(":")[2]
    return int(last) if last.isascii() and last.isdecimal() and len(last) <= 5 else None


def is_like(pattern: str, host: str) -> bool:
    """Whether a host is like a server's regular expression; so is all where nobody can say."""
    try:
        return bool(regex.search(pattern, host, regex.IGNORECASE, timeout=PATTERN_WITHIN_S))
    except (regex.error, TimeoutError):
        return True


def why_no_ciphers(ciphers: str) -> str:
    """Return why a list of ciphers is excluded; empty where it isn't."""
    if ciphers.startswith("PROFILE=") and not CRYPTO_POLICIES.is_dir():
        return "only Red Hat's OpenSSL knows such a profile"
    return ""


@dataclass(frozen=True)
class RelocationRequest:
    """Which configuration is to run, as whom, and what clients will ask of it."""

    file: Path
    root: Path | None = None
    """The document root, in the place of what the file names."""
    protocol: str = "http"
    """What clients speak with it: http, https, h2 or h2c."""
    user: ServerUser | None = None
    """Whom it runs as; None for ourselves."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Its variables."""
    given: Mapping[str, str] = field(default_factory=dict)
    """Those of them that the user gives: a template's variables are filled from these."""

    files: ConfigFiles = field(default_factory=ConfigFiles)
    """Reads the file and what it includes."""
    port: int | None = None
    """The port of its own that is to be measured; else one is chosen."""
    host: str = ""
    """The name that requests ask for; empty where that is the run's address."""
    folder: Path | None = None
    """Where relative paths begin, unless what they name lies next to the file."""
    backends: Backends = field(default_factory=Backends)
    """What answers in the place of hosts that it names."""
    notes: list[str] = field(default_factory=list)
    """What people learn of the choice, before what was changed."""

    @property
    def is_secure(self) -> bool:
        return self.protocol in SECURE

    def may_read(self, path: str) -> bool:
        """Whether the server will be able to read a file that its configuration names."""
        file = Path(absolute(path, self.file))
        try:
            return self.user.may_read(file) if self.user else os.access(file, os.R_OK)
        except (OSError, ValueError):  # a name that is too long, or below a file
            return False

    def folder_of(self, path: str) -> str:
        """Return a folder where webdyno is called, or next to the file; else the path as it is."""
        places = [folder / path for folder in (self.folder, self.file.parent) if folder is not None]
        return next((str(place) for place in places if os.path.isdir(place)), path)  # noqa: PTH112 (any name)

    def unreadable(self, now: str, before: str) -> str:
        """Return a sentence on the run's own certificate in the place of another one."""
        ours = f"{with_marks_shown(now)} (the run's own)"
        return f"{ours}, not {before}: {name_of(self.user)} can't read that"

    def listens_nowhere(self) -> UserError:
        """Return the error for a configuration of which nothing can be asked."""
        if self.is_secure:
            return UserError(
                f"{self.file} listens nowhere for HTTP with TLS, which load.protocol = "
                f'"{self.protocol}" asks for; give it such a listener, or ask without TLS: '
                "--set load.protocol=http"
            )
        if self.files.found_nothing:
            return UserError(
                f"{self.file} listens nowhere for HTTP: {'; '.join(self.files.found_nothing)}. Put "
                "the files with its servers there, or give the configuration of one of them"
            )
        return UserError(
            f"{self.file} listens nowhere for HTTP without TLS, which is what is requested; give "
            "it such a listener, or ask with TLS: --set load.protocol=https"
        )

    def choose_port(
        self,
        ports: Sequence[int],
        unlikely: Mapping[int, str] | None = None,
        with_host: Collection[int] = (),
    ) -> int:
        """Choose the port that is measured, among those that would do, and note the choice.

        It is the one requested, else one where the host is known, else the usual one, else the
        first. `unlikely` has the reasons against some: they are chosen where there is no other.
        """
        distinct, against = list(dict.fromkeys(ports)), unlikely or {}
        if not distinct:
            raise self.listens_nowhere()
        ports_there = listed(map(str, distinct))
        if self.port is not None and self.port not in distinct:
            raise UserError(
                f"{self.file}#{self.port}: it listens on port {ports_there} for HTTP "
                f"{'with' if self.is_secure else 'without'} TLS; name one of these"
            )
        likely = [port for port in distinct if port not in against] or distinct
        likely = [port for port in distinct if port in with_host] or likely
        usual = HTTPS if self.is_secure else HTTP
        port = self.port or (usual if usual in likely else likely[0])
        why = f" ({against[port]})" if port in against else ""
        with_tls = "redirects" in why and not self.is_secure
        other = "; --set load.protocol=https asks with TLS" if with_tls else ""
        if len(distinct) > 1:
            self.notes.append(
                f"measured is port {port}{why}, of {ports_there}; "
                f"conf:{self.file.name}#PORT measures another one{other}"
            )
        elif why:
            self.notes.append(f"measured is port {port}{why}, the only one{other}")
        return port

    def note_site(self, measured: str, names: Iterable[str]) -> None:
        """Note which of several sites answers, and how to ask for another one."""
        distinct = list(dict.fromkeys(names))
        shown = listed_to(SHOWN_NAMES, distinct)
        if self.host and measured:
            self.notes.append(f"measured is site {measured}, as --host {self.host} asks for")
        elif self.host:
            known = f"; those there are {shown}" if distinct else ""
            self.notes.append(f"no site is called {self.host}, so the default one answers{known}")
        elif measured and len(distinct) > 1:
            self.notes.append(
                f"measured is site {measured}, of {shown}; --host NAME asks for another"
            )


@dataclass(frozen=True)
class RelocatedConfig:
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
    passed_on: Sequence[PassedOn] = ()
    """Where it passes requests on, but for Unix sockets and programs that it starts."""
    origins: Sequence[Origin | None] = ()
    """Of each line of the text: where it stands in what the user wrote."""
    knows_comments: bool = True
    """Whether its format has lines that begin with #."""


def with_marks_shown(text: str) -> str:
    """Write our marks as people read them."""
    for mark, word in SHOWN.items():
        text = text.replace(mark, word)
    return text


def absolute(path: str, file: Path) -> str:
    return path if path.startswith("/") else str(file.parent / path)


WITHIN_S = 15
MOST_BYTES = 32_000_000
"""Of what it prints."""
MOST_CPU_S = 10
MOST_MEMORY_BYTES = 256_000_000
FOLDERS = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class ProgramOutput(NamedTuple):
    """What a program printed, and how it ended."""

    code: int
    printed: str
    complained: str


def program_path(name: str, package: str = "") -> str:
    """Return the path of a program that reads a configuration; raise OperationError without it."""
    if path := shutil.which(name, path=FOLDERS):
        return path
    raise OperationError(
        f"the configuration is read by the program {name}, which isn't here; on Debian and Ubuntu: "
        f"apt-get install {package or name}"
    )


@contextmanager
def readable(request: RelocationRequest, text: str, *, differs: bool = False) -> Iterator[Path]:
    """Put the configuration where its user can read it: the file itself, or a copy with this text.

    The file may be private to who calls webdyno, or the text may differ from it.
    """
    user = request.user
    if not differs and (user is None or user.may_read(request.file)):
        yield request.file
        return
    with tempfile.TemporaryDirectory() as above:
        folder = make_private(Path(above, "copy"))
        copy = folder / request.file.name
        write_whole(copy, text, mode=0o600)
        hand_over(folder, user)
        Path(above).chmod(0o711)
        yield copy


def run_reader(
    request: RelocationRequest,
    words: Sequence[str | Path],
    environment: Mapping[str, str],
    runs: Sequence[str] = (),
) -> ProgramOutput:
    """Run a program that reads the configuration; raise UserError where it comes to no end.

    What the configuration has it run, runs as that user as well; `runs` says where it does so.
    """
    user, folder = request.user, request.file.parent
    is_open = user is None or not user.kept_out_by(folder)
    most = (f"--data={MOST_MEMORY_BYTES}", f"--fsize={MOST_BYTES}", f"--cpu={MOST_CPU_S}")
    with tempfile.TemporaryFile() as printed, tempfile.TemporaryFile() as complained, no_orphans():
        with in_session(
            [program_path("prlimit", "util-linux"), *most, "--", *words],
            output=printed,
            errors=complained,
            user=user,
            environment={"PATH": FOLDERS, **environment},
            folder=folder if is_open else Path("/"),
        ) as process:
            try:
                code = process.wait(WITHIN_S)
            except subprocess.TimeoutExpired:
                raise _too_much(request, words, runs) from None
        texts = []
        for file in (printed, complained):
            file.seek(0)
            texts.append(file.read(MOST_BYTES).decode(errors="replace"))
    if code < 0:
        raise _too_much(request, words, runs)
    return ProgramOutput(code, *texts)


def _too_much(
    request: RelocationRequest, words: Sequence[str | Path], runs: Sequence[str]
) -> UserError:
    name = Path(words[0]).name
    if runs:
        return UserError(
            f"{'; '.join(runs)}: {name} needs too much time or memory for that; have it run what "
            "ends soon and prints little"
        )
    return UserError(
        f"{request.file}: {name} needs too much time or memory to read it; include less"
    )
