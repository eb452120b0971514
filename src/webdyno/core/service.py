"""A service: one kind of server process, the template of its configuration, how to run it."""

from collections.abc import Iterable
from glob import has_magic
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import regex
from pydantic import AfterValidator, Field, model_validator

from webdyno.core.base import Model
from webdyno.core.errors import UserError
from webdyno.core.paths import ReadyPath
from webdyno.core.patterns import regular_expression
from webdyno.core.setting import Setting, SettingValue
from webdyno.core.text import InsidePath, OneLine, PackageName, PlainName, full_match


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("there is a NUL byte in it, which no program can be given")
    return text


def _has_a_group(pattern: str) -> str:
    if not regex.compile(pattern).groups:
        raise ValueError(f"{pattern!r} has no group: ( and ) around the part that is the version")
    return pattern


Text = Annotated[str, AfterValidator(_without_nul)]
"""A Jinja2 template."""
Arguments = list[Text]
"""A command line; each word is a template, and one that renders to nothing is excluded."""
Variable = Annotated[
    str,
    full_match(
        r"[A-Za-z_][A-Za-z0-9_]*", "is no name of a variable: letters, digits and _ make one"
    ),
]
"""Name of an environment variable."""
Pattern = Annotated[str, Field(max_length=1000), AfterValidator(regular_expression)]
"""A regular expression."""


MOST_WILDCARDS = 2
"""Parts of a needed file's path that have `*`: whoever lists a catalog waits for it."""


class Need(Model):
    """Something that must be on the machine: a program on the PATH, or a file."""

    command: list[str] = []
    """Names of programs, the first found counts; `*` matches versions, the newest counts."""
    file: list[str] = []
    """Paths with `*` in two parts at most; the first that matches counts."""
    apt: PackageName
    """The package of Debian and Ubuntu that has it."""
    elsewhere: OneLine = ""
    """Whose package that is where it is another's, and what does without it."""
    when: dict[str, SettingValue] = {}
    """Needed only while the service's settings have these values."""
    optional: bool = False
    """Templates find None where it is missing."""

    @model_validator(mode="after")
    def _one_kind(self) -> "Need":
        if bool(self.command) == bool(self.file):
            raise ValueError("a need names either command or file")
        for path in self.file:
            if "**" in path or sum(map(has_magic, path.split("/"))) > MOST_WILDCARDS:
                raise ValueError(
                    f"{path!r} should have * in {MOST_WILDCARDS} of its parts at most, and no **"
                )
        return self


class Version(Model):
    """How a service says its version."""

    command: Arguments
    pattern: Annotated[Pattern, AfterValidator(_has_a_group)]
    """A regular expression whose first group is the version."""


class ServiceImage(Model):
    """An image of containers that are such a service as well."""

    names: Annotated[list[OneLine], Field(min_length=1)]
    """Without registry, owner and version: `mongo`."""
    port: Annotated[int, Field(ge=1, le=65535)]
    """Where it listens in there: images may expose several."""
    environment: dict[Variable, Text] = {}
    """Its variables, templates, by which clients get in as `credentials` has it."""


StatusKind = Literal["nginx", "apache", "php-fpm", "memcached", "redis"]
"""Whose way of saying its own counts a service has."""


class StatusSource(Model):
    """How a service says what it counts itself."""

    kind: StatusKind
    socket: InsidePath | None = None
    """A Unix socket in its folder, for this alone; where it listens anyway unless given."""
    path: Text = "/"
    """What is requested, a template: a page's path; of no use to memcached and redis."""
    password: Text | None = None
    """What a question needs, a template; Redis alone takes one."""
    workers: Text | None = None
    """How many workers it has, a template. A server that says of more has counted wrongly."""


OK, BAD_REQUEST, SERVER_ERROR = 200, 400, 500
"""Where the classes of statuses begin."""
READY_WITHIN_S = 20.0
"""So long any service has to become ready, unless its own `ready_within_s` says otherwise."""


PERF_NAMES = "perf_names"
"""The setting of users' own programs that has interpreters say `perf` the names of functions."""


class PassesOn(Model):
    """A place of a user's configuration at which requests are passed on."""

    host: OneLine
    """As it is written there."""
    at: OneLine
    """File and line."""


class LockedPackage(Model):
    """A package of a lock file that only some settings bring in."""

    name: OneLine
    when: dict[str, SettingValue] = {}
    """Counts only with these values of settings."""


class BuildSteps(Model):
    """How a service's program is made ready to be started: once, outside of any timing."""

    program: InsidePath = "program"
    """The folder of its sources and lock file; `OTHER/FOLDER` is one of a neighboring service."""
    commands: Annotated[list[Arguments], Field(min_length=1)]
    """Run one after the other in a copy of that folder, with network; later starts need none."""
    packages: list[OneLine | LockedPackage] = []
    """Packages of the lock file whose versions are reported, the one that gives its version
    first."""


def _address(text: str) -> str:
    return str(ip_address(text))


class Own(Model):
    """What only a user's own program has: it is run where, and as whom, its user runs it."""

    written: OneLine
    """What the user wrote: `cmd:./server --port $PORT`."""
    folder: str | None = None
    """Where its commands run, an absolute path; the service's folder unless given."""
    owner: Annotated[int, Field(ge=0)] | None = None
    """The id of whose that folder was when root named it; the owner could exchange it since."""
    may_be_root: bool = True
    """Whether it runs as root where root calls webdyno in a folder of root's; else it runs as the
    servers' user there."""
    setup: Arguments = []
    """Fills the services behind it: run once, while they run; each start has a copy of that."""
    ready: ReadyPath | None = None
    """Ready once this path is answered with a status of 2xx or 3xx, or with `grpc` once its health
    service says SERVING; unless given, once the load's first GET is answered with its status, or
    with anything but a failure of the server (5xx)."""
    host: OneLine | None = None
    """The host that clients ask for; its address unless given."""
    by_socket: bool = False
    """Whether clients find it at a Unix socket, `listen.sock` in the service's folder."""
    when_sampled: dict[Variable, Text] = {}
    """Added to its variables where the setting `perf_names` is on, as in profile rounds."""
    container_port: Annotated[int, Field(ge=1, le=65535)] | None = None
    """Where containers listen that its command starts, in a network of their own and in the control
    groups of the service, which that command itself stays out of."""
    removed_by: Arguments = []
    """Where a daemon runs those containers for its command, which then lists their processes in a
    file: the command that removes what the daemon has of them, run when they are to end."""
    groups_elsewhere: bool = False
    """Whether they are in control groups of that daemon's instead."""
    services_inside: bool = False
    """Whether services behind it are in the network of those containers, on its loopback
    interface."""
    passes_on: list[PassesOn] = []
    """Whom it passes requests on to, unless that is the loopback interface."""
    port: Annotated[int, Field(ge=1, le=65535)] | None = None
    """Where it listens already: it is neither started nor stopped, only watched."""
    listens_at: Annotated[str, AfterValidator(_address)] | None = None
    """The address at which it listens already: no name, which could lead elsewhere later."""

    called: OneLine | None = None
    """Where it listens already: the host that its URL names, for requests that name no other."""

    @model_validator(mode="after")
    def _only_containers_are_removed(self) -> "Own":
        if self.removed_by and self.container_port is None:
            raise ValueError("removed_by is for containers, which have a container_port")
        return self

    @property
    def elsewhere(self) -> str | None:
        """Where it runs already, if not on the loopback interface: `192.0.2.1:8080`."""
        if self.port is None or self.listens_at is None or ip_address(self.listens_at).is_loopback:
            return None
        host = f"[{self.listens_at}]" if ":" in self.listens_at else self.listens_at
        return f"{host}:{self.port}"


class Service(Model):
    """`service.toml` of a folder in `systems/catalog/services`."""

    name: PlainName
    """Name of its folder."""
    folder: Path
    """Where its templates lie."""
    title: str
    protocol: str
    """What it speaks to its clients: http, fastcgi, memcached, redis, mysql, postgresql."""
    needs: dict[str, Need] = {}
    """By the name under which templates find the path: `{{ needs.binary }}`."""
    links: dict[str, str] = {}
    """Other services that it can make use of: name in its templates, and what for."""
    files: dict[InsidePath, InsidePath] = {}
    """Configuration: file name in the service's folder, and the template it is rendered from.

    `OTHER/FILE` is a template of a neighbouring folder, for what several services share.
    """
    build: BuildSteps | None = None
    """None where there is nothing to build."""
    folders: list[InsidePath] = []
    """Folders that the server expects in its own folder, made before it starts."""
    check: Arguments = []
    """Says whether the rendered configuration is right; exit code 0 if so."""
    data: str | None = None
    """The folder among `folders` whose content outlives the process: a site's set-up fills it."""
    initialise: list[Arguments] = []
    """Commands that run one after the other before the start; not where there is data already."""
    before_start: list[Arguments] = []
    """Commands that run after those, before each start."""
    filled_with: Literal["site-files"] | None = None
    """site-files: once it runs, the site's files are stored in it, each under its path."""
    start: Annotated[Arguments, Field(min_length=1)] = []
    """Stays in the foreground. Without it nothing but `own.port` makes sense."""
    ready: Arguments = []
    """Says by exit code 0 that it serves; asked once it listens, where that isn't the same."""
    ready_within_s: Annotated[float, Field(gt=0, le=3600)] | None = None
    """It has so long to become ready; as long as any server (`READY_WITHIN_S`) unless given."""
    socket: InsidePath = "listen.sock"
    """Its Unix socket's path in its folder, where it listens on one."""
    environment: dict[Variable, Text] = {}
    """Variables for all its commands, templates like arguments."""
    stop_signal: Literal["TERM", "QUIT", "INT"] = "TERM"
    stop_within_s: Annotated[float, Field(gt=0, le=600)] = 5.0
    """After this time the process and its children are killed."""
    version: Version | OneLine | None = None
    """How it says its version, or what it is; None where nobody knows."""
    modules: dict[str, Version] = {}
    """Versions of what runs inside it, by name; one whose command comes out empty doesn't."""
    settings: dict[str, Setting] = {}
    credentials: dict[Variable, Text] = {}
    """What clients log in with; a program finds `USER` in `$DB_USER` if its role is `db`."""
    variables: dict[Variable, Text] = {}
    """Variables by which programs usually find such a service, whatever its role: DATABASE_URL."""
    image: ServiceImage | None = None
    """None where no image is known that is the same."""
    status: StatusSource | None = None
    """None where it doesn't say."""
    tidy: Arguments = []
    """Does after a set-up, while it runs, what a database does by and by: counts rows, so that
    statements are planned for them, and cleans up. It would fall into some slots otherwise."""
    snapshot: Arguments = []
    """Remembers all that it holds, while it runs."""
    restore: Arguments = []
    """Puts that back; its clients stay connected."""
    query: Arguments = []
    """Answers SQL that is given to it with the rows' values, divided by `|`, a line for each."""
    counts: Arguments = []
    """Prints what a database counts itself, as lines of JSON: see `webdyno.probes.status`."""
    facts: dict[str, Text] = {}
    """What the pre-flight check says of it: name, and value as a template."""
    own: Own | None = None
    """None in a catalogue, whose servers all run alike."""

    @property
    def runs_already(self) -> bool:
        """Whether somebody else has started it, so that it is only watched."""
        return self.own is not None and self.own.port is not None

    @property
    def where(self) -> str:
        """What people would correct: what they wrote, or the file."""
        return self.own.written if self.own else str(self.folder / "service.toml")

    def path_of(self, name: str) -> Path:
        """Find a file or folder of its own, or one that it has of a neighbor: `OTHER/NAME`.

        Raise UserError where that is a link which leads elsewhere.
        """
        own = self.folder / name
        if own.exists():
            return own
        services, neighbor = self.folder.parent, self.folder.parent / name
        if not neighbor.resolve().is_relative_to(services.resolve()):
            raise UserError(f"{neighbor} leads out of {services}: a catalog's files stay inside")
        return neighbor

    @model_validator(mode="after")
    def _is_started_or_runs(self) -> "Service":
        if not self.start and not self.runs_already:
            raise ValueError("start is missing: the command that starts it")
        return self

    @model_validator(mode="after")
    def _data_is_a_folder(self) -> "Service":
        if self.data is not None and self.data not in self.folders:
            raise ValueError(f"data: {self.data!r} is none of the folders")
        return self


ORIGINS = "origins.json"
"""Next to a moved configuration in the catalogue."""


class Origin(NamedTuple):
    """A line of a file."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class Line(NamedTuple):
    """A line of a configuration."""

    text: str
    origin: Origin | None
    """None where webdyno wrote it."""


class Origins(Model):
    """The origin of each line of a moved configuration."""

    name: str
    """Of the moved configuration's file."""
    files: list[str]
    lines: list[tuple[int, int]]
    """By moved line: the number of its file, from 0, and the line in it; (-1, 0) without one."""

    @classmethod
    def of(cls, name: str, origins: Iterable[Origin | None]) -> "Origins":
        """Keep what is known of each line, from the first one on."""
        numbers: dict[str, int] = {}
        lines = [
            (numbers.setdefault(origin.file, len(numbers)), origin.line) if origin else (-1, 0)
            for origin in origins
        ]
        return cls(name=name, files=list(numbers), lines=lines)

    def at(self, line: int) -> Origin | None:
        """Return the origin of a line, whose number counts from 1; None where there is none."""
        if not 1 <= line <= len(self.lines):
            return None
        file, number = self.lines[line - 1]
        return Origin(self.files[file], number) if 0 <= file < len(self.files) else None
