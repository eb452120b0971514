"""What a container engine does: have images, and start a variant's containers by a script.

The containers of a variant have a network of their own that leads nowhere else, the CPUs of its
servers, and the variant's folder; the last one is what clients ask. Scripts of all engines end
alike: a head of the engine's own says what `run`, `inside` and `volume` are in shell, and lines
start the containers by these.
"""

import json
import os
import re
import shlex
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any, ClassVar

from webdyno.core.errors import OperationError, UserError
from webdyno.core.files import MIB, read_named
from webdyno.core.format import duration, last_lines
from webdyno.core.service import Need
from webdyno.core.text import ACCOUNT
from webdyno.host.children import run_program
from webdyno.host.machine import allowed_cpus
from webdyno.host.this_machine import Testbed
from webdyno.host.workspace import Workspace
from webdyno.systems.containers.compose_relations import Awaits, health_words
from webdyno.systems.target import Notify

WITHIN_S, BUILD_WITHIN_S = 600.0, 3600.0
SHOWN_LINES = 25
SCRIPT = "start.sh"
SCRIPTS = Path(__file__).parent
"""Where the parts of scripts are."""
NETWORK = "--network="
COMMENTS = (re.compile(r"[^\S\x1c-\x1f]*#"), re.compile("#"))
"""How comments among a step's lines begin: to BuildKit also behind blanks, which are Go's."""
QUOTES = str.maketrans("", "", "\\`\"'")
NAMED_VOLUME = re.compile(r"--volume=([A-Za-z0-9][\w.-]*):")


@dataclass(frozen=True)
class Image:
    """An image that is there."""

    id: str
    ports: tuple[int, ...]
    """The TCP ports that it exposes."""
    environment: dict[str, str]
    health: tuple[str, ...] = ()
    """The command that says whether a container of it is healthy."""


@dataclass(frozen=True)
class Build:
    """How an image is built."""

    file: Path
    context: Path
    options: Sequence[str] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    """Values of arguments that the options name: everybody can read a command line."""
    is_revision: bool = False
    """Whether a revision's author wrote the file."""


@dataclass(frozen=True)
class Container:
    """One container of a variant."""

    name: str
    image: Image
    names: Sequence[str] = ()
    """By which others know it as well."""
    environment: dict[str, str] = field(default_factory=dict)
    options: Sequence[str] = ()
    """For `run`, of which all engines have these."""
    entrypoint: Sequence[str] | None = None
    """In the place of the image's own; empty for none."""
    command: Sequence[str] = ()
    """In the place of the image's own."""
    ports: Sequence[int] = ()
    """Where it says that it listens; as its image says unless given."""
    awaits: Awaits = ""
    """What is waited for before those behind it are started."""
    health: Sequence[str] = ()
    """The command that says whether it is healthy."""


@dataclass(frozen=True)
class StartFiles:
    """How containers are started, by files next to those of their variables."""

    texts: Mapping[str, str]
    """By name; SCRIPT is one of them."""
    start: Sequence[str]
    """The command."""
    own: Mapping[str, Any] = field(default_factory=dict)
    """Keys that say how it is watched and ended, where it isn't as any server."""


PROXIES = {"HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "ALL_PROXY", "NO_PROXY"}
"""Variables that engines pass on to a build, in capitals; so do small letters."""
HEEDED = re.compile(
    r"PATH|HOME|USER|PWD|TMPDIR|TERM|TZ|LANG|(?:LC|LD|XDG|BUILDAH|BUILDKIT|BUILDX|CONTAINERS)_\w+|"
    r"CONTAINER_(?:HOST|CONNECTION|SSHKEY)|REGISTRY_AUTH_FILE|STORAGE_(?:DRIVER|OPTS)|SSH_AUTH_SOCK|"
    r"DOCKER_(?:HOST|CONTEXT|CONFIG|CERT_PATH|TLS\w*|API_VERSION|BUILDKIT|DEFAULT_PLATFORM|CLI_\w+|"
    r"CONTENT_TRUST\w*)|SSL_CERT_(?:FILE|DIR)|DBUS_\w+|GO(?:DEBUG|GC|MAXPROCS|MEMLIMIT|TRACEBACK)"
)
"""Others by which they themselves work."""


def heeds(name: str) -> bool:
    """Whether engines work by a variable, so that a build can't have another value of it."""
    return name.upper() in PROXIES or bool(HEEDED.fullmatch(name))


class Engine(ABC):
    """A container engine, called so that it works on this machine."""

    title: ClassVar[str]
    needs: ClassVar[Mapping[str, Need]]
    network: ClassVar[str]
    """How clients reach a container, for the pre-flight check."""
    without_proxies: ClassVar[Sequence[str]] = ()
    """Options of a build that gets no proxies but those that arguments name."""
    version: str

    @abstractmethod
    def words(self) -> list[str]:
        """Return the words before a subcommand that has to do with its images."""

    @abstractmethod
    def find(self, name: str, notify: Notify) -> Image:
        """Find an image here, or fetch it; raise OperationError where it isn't to be had."""

    @abstractmethod
    def start_files(
        self, written: str, containers: Sequence[Container], *, inside: bool
    ) -> StartFiles:
        """Return what starts containers; `inside`: in the network of the services behind them."""

    def build_words(self) -> list[str]:
        """Return the words that build an image."""
        return [*self.words(), "build"]

    def build_variables(self, folder: Path) -> Mapping[str, str]:  # noqa: ARG002 (files for them)
        """Return variables for a build, next to those of who calls."""
        return {}

    def revision_options(self, folder: Path) -> list[str]:  # noqa: ARG002 (files for them)
        """Return options by which a revision's build takes no files of this machine for images."""
        return []

    def inspect(self, name: str) -> Image | None:
        """Return an image that it has; None where it hasn't."""
        done = run([*self.words(), "image", "inspect", "--", name])
        return None if done.returncode else image_of(done.stdout)

    def build(self, name: str, build: Build, notify: Notify) -> Image:
        """Build an image, as a child of a warden; raise OperationError with its log's end."""
        if any(file.name.endswith(".in") for file in (build.file, build.file.resolve())):
            raise UserError(
                f"{build.file}: Podman has C's preprocessor read files of that name, which can "
                "include any file of this machine: rename it"
            )
        if build.is_revision:
            _refuse_links(build)
            _refuse_networks(build.file)
        notify(f"building {name} …")
        began = time.monotonic()
        testbed = Testbed().with_user(None)
        with Workspace() as workspace:
            place = workspace.make_kept()
            log, made = place / "build.log", place / "image"
            # Podman keeps there what builds that name a cache leave for the next ones.
            apart = {"TMPDIR": str(place)} if build.is_revision else {}
            code = testbed.run(
                [
                    *(*self.build_words(), "--file", str(build.file), "--iidfile", str(made)),
                    *(self.revision_options(place) if build.is_revision else []),
                    *(*build.options, *self._proxies_of(build), str(build.context)),
                ],
                cwd=build.context,
                env={**os.environ, **build.variables, **self.build_variables(place), **apart},
                log=log,
                workspace=workspace,
                within_s=BUILD_WITHIN_S,
                cpus=sorted(allowed_cpus()),
            )
            if code != 0:
                how = f"exit code {code}" if code is not None else "no end in an hour"
                end = last_lines(log.read_text(errors="replace"), SHOWN_LINES)
                raise OperationError(
                    f"building {name} failed with {how}; the end of its log:\n{end}"
                )
            image = self.inspect(made.read_text().strip())
        if image is None:
            raise OperationError(f"building {name} gave no image that {self.title} knows")
        notify(f"built {name} in {duration(time.monotonic() - began)}")
        return image

    def _proxies_of(self, build: Build) -> list[str]:
        """Return options by which a revision's build gets no account at the caller's proxies."""
        proxies = {name: text for name, text in os.environ.items() if name.upper() in PROXIES}
        if not build.is_revision or not any(map(ACCOUNT.search, proxies.values())):
            return []
        named = (f"--build-arg={name}={ACCOUNT.sub('', text)}" for name, text in proxies.items())
        return [*self.without_proxies, *named]


def _refuse_links(build: Build) -> None:
    """Engines read files of what to leave out as root, and quote what they can't read of them."""
    ends = (".dockerignore", ".containerignore")
    names = {*ends, *(f"{build.file.name}{end}" for end in ends)}
    for path in (folder / name for folder in (build.context, build.file.parent) for name in names):
        if os.path.lexists(path) and (path.is_symlink() or not path.is_file()):
            raise UserError(
                f"{path}: put a regular file there: a revision has no link in its place"
            )


def _refuse_networks(file: Path) -> None:
    """Newer engines let a step of a build choose the machine's own network.

    Where a step begins and which lines are its own, each engine says by itself. So no file has
    that option, whatever it would be a part of, and however it is broken into lines or quoted.
    """
    lines = read_named(file, MIB).decode(errors="replace").split("\n")
    readings = (
        "".join(line.rstrip() for line in lines if not comment.match(line)) for comment in COMMENTS
    )
    if any(NETWORK in reading.translate(QUOTES) for reading in readings):
        raise UserError(
            f"{file} has {NETWORK}…: a revision's build has no other network; to a program of its "
            "own say it with a blank instead of ="
        )


def image_of(inspected: str) -> Image:
    """Read what an engine prints of an image; where its health check stands depends on it."""
    (described, *_) = json.loads(inspected)
    config: dict[str, Any] = described.get("Config") or {}
    ports = [key.partition("/") for key in config.get("ExposedPorts") or {}]
    pairs = (pair.partition("=") for pair in config.get("Env") or [])
    health = described.get("Healthcheck") or config.get("Healthcheck") or {}
    return Image(
        id=described["Id"],
        ports=tuple(int(port) for port, _, kind in ports if kind != "udp" and port.isdecimal()),
        environment={variable: value for variable, _, value in pairs},
        health=health_words(health.get("Test") or []),
    )


def start_lines(containers: Sequence[Container], words: Callable[[Container], str]) -> list[str]:
    """Return what starts containers in shell, given the words of shell for each.

    The last one, which clients ask, takes the script's place.
    """
    *others, front = containers
    lines = [shell_part("others.sh")] if others else []
    # Containers that are started at once would each want to make it.
    lines += [f"volume {name}" for name in named_volumes(containers)]
    for other in others:
        how = "ended" if other.awaits == "ended" else "beside"
        lines.append(f"{how} {other.name} {words(other)}")
        if other.awaits == "healthy":
            lines.append(f"healthy {other.name} {shlex.join(other.health)}")
    return [*lines, f"run {front.name} {words(front)}\n"]


def named_volumes(containers: Sequence[Container]) -> list[str]:
    """Return the names of volumes that are shared, or last longer than a container."""
    named = (NAMED_VOLUME.match(option) for each in containers for option in each.options)
    return list(dict.fromkeys(name[1] for name in named if name))


def shell_part(file: str, **values: str) -> str:
    """Read a part of scripts, with values in the places of their names, as in `@run@`."""
    text = (SCRIPTS / file).read_text(encoding="utf-8")
    return re.sub(r"@(\w+)@", lambda match: values[match[1]], text)


def variables_file(name: str) -> str:
    return f"{name}.env"


def run(words: Sequence[str]) -> CompletedProcess[str]:
    return run_program(words, within_s=WITHIN_S)


def end_of(done: CompletedProcess[str]) -> str:
    return last_lines(done.stderr or done.stdout, SHOWN_LINES)
