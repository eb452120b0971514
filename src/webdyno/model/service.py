"""A service: one kind of server process, the template of its configuration, how to run it."""

from pathlib import Path
from typing import Literal

from pydantic import model_validator

from webdyno.model.base import Model
from webdyno.model.knob import Knob, KnobValue

Arguments = list[str]
"""A command line; each word is a Jinja2 template, and one that renders to nothing is left out."""


class Need(Model):
    """Something that must be on the machine: a program on the PATH, or a file."""

    command: list[str] = []
    """Names of programs, the first found counts; `*` matches versions, the newest counts."""
    file: list[str] = []
    """Paths with `*`; the first that matches counts."""
    apt: str
    """The package of Debian and Ubuntu that has it."""
    when: dict[str, KnobValue] = {}
    """Needed only while the service's knobs have these values."""
    optional: bool = False
    """Templates find None where it is missing."""

    @model_validator(mode="after")
    def _one_kind(self) -> "Need":
        if bool(self.command) == bool(self.file):
            raise ValueError("a need names either command or file")
        return self


class Version(Model):
    """How a service says its version."""

    command: Arguments
    pattern: str
    """A regular expression whose first group is the version."""


StatusKind = Literal["nginx", "apache", "php-fpm", "memcached", "redis"]
"""Whose way of telling its own counts a service has."""


class StatusSource(Model):
    """How a service tells what it counts itself."""

    kind: StatusKind
    socket: str | None = None
    """A Unix socket in its folder, for this alone; where it listens anyway unless given."""
    path: str = "/"
    """What is asked for, a template: a page's path; of no use to memcached and redis."""
    workers: str | None = None
    """How many workers it has, a template. A server that tells of more has counted wrongly."""


class Service(Model):
    """`service.toml` of a folder in `catalog/services`."""

    name: str
    """Name of its folder."""
    folder: Path
    """Where its templates lie."""
    title: str
    protocol: str
    """What it speaks to who connects: http, fastcgi, memcached, redis, mysql."""
    needs: dict[str, Need]
    """By the name under which templates find the path: `{{ needs.binary }}`."""
    links: dict[str, str] = {}
    """Other services that it can make use of: name in its templates, and what for."""
    files: dict[str, str] = {}
    """Configuration: file name in the service's folder, and the template it is rendered from.

    `OTHER/FILE` is a template of a neighbouring folder, for what several services share.
    """
    folders: list[str] = []
    """Folders that the server expects in its own folder, made before it starts."""
    check: Arguments = []
    """Says whether the rendered configuration is right; exit code 0 if so."""
    data: str | None = None
    """The folder among `folders` whose content outlives the process: a site's set-up fills it."""
    initialise: list[Arguments] = []
    """Commands that fill an empty data folder, one after the other before the first start."""
    filled_with: Literal["site-files"] | None = None
    """site-files: once it runs, the site's files are stored in it, each under its path."""
    start: Arguments
    """Stays in the foreground."""
    environment: dict[str, str] = {}
    """Variables for all its commands, templates like arguments."""
    stop_signal: Literal["TERM", "QUIT", "INT"] = "TERM"
    stop_within_s: float = 5.0
    """After this time the process and its children are killed."""
    version: Version
    modules: dict[str, Version] = {}
    """Versions of what runs inside it, by name; one whose command comes out empty doesn't."""
    knobs: dict[str, Knob] = {}
    status: StatusSource | None = None
    """None where it doesn't tell."""
    settings: dict[str, str] = {}
    """What the fairness certificate says of it: name, and value as a template."""
