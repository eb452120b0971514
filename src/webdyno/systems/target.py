"""Systems of users as variants: what is written of one, the service made of it, their catalog."""

import atexit
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import tomli_w
from pydantic import Field

from webdyno.config.reading import PlaceOf, build
from webdyno.core.base import Model, Seconds
from webdyno.core.errors import UserError
from webdyno.core.files import write_whole
from webdyno.core.paths import ReadyPath
from webdyno.core.service import Need, Service, Text, Variable
from webdyno.core.setting import Setting, SwitchSetting
from webdyno.core.stack import ANYTHING
from webdyno.core.tables import as_list, as_table, is_table
from webdyno.core.text import RoleName
from webdyno.host.users import ServerUser, caller, home_of, make_private, name_of
from webdyno.host.workspace import Workspace

PROJECT_FILE = "webdyno.toml"
"""Lies at the top of a repository, or of the part of it that is the program."""


SettingName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]


class DeclaredSettings(Model):
    """Settings of a user's program that may be changed, and tuned."""

    settings: dict[SettingName, Setting]


Notify = Callable[[str], None]
"""Says something to the user that is no result."""
Provide = Callable[[Iterable[Need]], None]
"""Installs what is missing, after a yes; raises OperationError where it doesn't."""
OWN = {"HOST", "PORT", "SOCKET", "PROTOCOL", "CERT", "KEY", "PATH", "HOME", "USER", "LOGNAME"}
"""Variables that a command has anyway."""


Engines = Literal["docker", "podman"]
CONTAINERS: tuple[str, ...] = get_args(Engines)
"""What runs containers."""


class OwnKeys(Model):
    """Keys of a variant that only a user's own systems have."""

    dir: Text | None = None
    """Where its commands run; relative to the experiment's file, or to where webdyno is called."""
    environment: dict[Variable, Text] = {}
    """Variables for its commands, next to `PORT`, `SOCKET`, `HOST`, `CERT`, `KEY`, `PROTOCOL`,
    `PATH` and `HOME`; `${env:NAME}` stands for a secret."""
    services: dict[RoleName, str] = {}
    """`cmd:`, `rev:` and `image:`: services behind it, by role, as in `db = "postgresql"` or, but
    for `image:`, `db = "image:mongo:7"`."""
    setup: Text | None = None
    """`cmd:` and `rev:`: a line of shell that fills those once; each start gets a copy."""
    prepare: Text | None = None
    """`cmd:` and `rev:`: a line of shell that fills those before each start."""
    ready: ReadyPath | None = None
    """It is ready once this path is answered with a status of 2xx or 3xx; `"grpc"`: once gRPC's
    health service says SERVING. Unless given, any
    response to the load's first GET will do that isn't a failure of the server (5xx)."""
    ready_within: Seconds | None = None
    """It has so long to become ready; 20 s unless given."""
    containers: Engines | None = None
    """`image:` and `rev:`: what runs containers; unless given, Docker where it can be used, else
    Podman, and of images the one that has them."""
    root: Text | None = None
    """`conf:` only: the document root, in the place of what the configuration names."""
    backends: dict[Text, Text] = {}
    """`conf:` only: what answers in the place of hosts that the configuration passes requests on
    to, as in `app = "cmd:./server --port $PORT"` and `"db:3000" = "127.0.0.1:9000"`."""


@dataclass(frozen=True)
class TargetSpec:
    """A system under test as its user wrote it."""

    written: str
    """`cmd:./server --port $PORT`."""
    text: str
    """What stands behind the kind's name."""
    keys: OwnKeys
    folder: Path
    """Where its commands run."""
    place: str
    """File and line, or the flag, for messages."""
    notify: Notify
    services: Mapping[str, Service]
    """Those of the catalogue."""
    testbed: object
    """The kind of the experiment's testbed, as it is written."""
    provide: Provide
    """Sees to it that programs are there."""
    settings: Mapping[str, Setting] = field(default_factory=dict)
    """Declared for its command."""
    protocol: str = "http"
    """What clients will speak with it: http, https, h2 or h2c."""
    host: str = ""
    """The host that they will ask for; empty where that is the run's address."""
    fresh: bool = False
    """Whether revisions are built again."""
    owner: int | None = None
    """The id of whose the folder was when it was named; of a revision, of whose repository."""

    is_behind: bool = False
    """Whether a program asks it, as a service."""
    within: Path | None = None
    """Of a revision: its folder, which is all that its containers may reach of this machine."""

    @property
    def user(self) -> ServerUser | None:
        """As whom it is read and run; None when that is ourselves."""
        return caller(self.folder, self.owner)

    def service(self, spoken: Sequence[str], own: Mapping[str, Any], **keys: Any) -> dict[str, Any]:  # noqa: ANN401 (TOML)
        """Return a service as `service.toml` has it; clients may speak the protocols `spoken`."""
        asked = {"ready": self.keys.ready, "host": self.host}
        if spoken:
            protocol = {"type": "choice", "choices": spoken, "default": spoken[0]}
            protocol["help"] = "What clients speak; the load sets it."
            keys["settings"] = {"protocol": protocol} | {
                name: setting.model_dump(exclude_none=True)
                for name, setting in self.settings.items()
            }
        if self.keys.ready_within:
            keys["ready_within_s"] = self.keys.ready_within
        given = {key: value for key, value in asked.items() if value}
        whole = {"written": self.written, **own, **given}
        if "folder" in own and os.geteuid() == 0:
            owner = self.folder.stat().st_uid if self.owner is None else self.owner
            whole["owner"] = owner
        return {**keys, "title": self.written, "protocol": "http", "own": whole}


@dataclass(frozen=True)
class GeneratedService:
    """A service made of a target; complete but for its name."""

    service: Mapping[str, Any]
    """As `service.toml` has it."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Templates next to it."""
    behind: Mapping[str, str] = field(default_factory=dict)
    """Names of the catalogue's services behind it, by role."""
    containers: "Mapping[str, GeneratedService]" = field(default_factory=dict)
    """Services behind it that are made of images, by role."""
    backends: Mapping[str, str] = field(default_factory=dict)
    """Own systems behind it, by role."""
    passes_on_to: Sequence[str] = ()
    """Hosts that have backends, or could have such, as it names them."""


def verbatim(text: str) -> str:
    """Write text so that, as a template, it stands for itself."""
    if not any(mark in text for mark in ("{{", "{%", "{#")):
        return text
    quoted = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    return "{{ '" + re.sub(r"\{(?=[{%#])", r"\\x7b", quoted) + "' }}"  # ${env:NAME} stays


def users_environment(folder: Path, more: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a user's own commands: those of his shell that they need.

    Not all of them, since the size of the environment moves times (Mytkowicz et al., 2009).
    """
    user = caller(folder)
    name = name_of(user)
    path = os.environ.get("PATH", os.defpath)
    return {"PATH": path, "HOME": str(home_of(user)), "USER": name, "LOGNAME": name, **more}


def split_settings(settings: object) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the declarations of a variant, which are tables, and the values that it gives."""
    both = as_table(settings)
    declared = {name: setting for name, setting in both.items() if is_table(setting)}
    return declared, {name: setting for name, setting in both.items() if name not in declared}


def declared_settings(declared: Mapping[str, Any], place: PlaceOf) -> dict[str, Setting]:
    """Read declarations; raise UserError, naming the line, where one isn't right.

    What is omitted: the default is the first value of the range, and all of that is tuned.
    """
    whole = {}
    for name, given in declared.items():
        if (variable := setting_variable(name)) in OWN:
            raise UserError(f"{place((name,))}: ${variable} has a meaning already; rename it")
        choices = as_list(given.get("choices"))
        first = choices[0] if choices else given.get("min", False)
        tune = given.get("tune", {})
        if is_table(tune):
            tune = {"vendor": "declared by the user", **tune}
        whole[name] = {"help": "", "default": first, **given, "tune": tune}
    return build(DeclaredSettings, {"settings": whole}, lambda where: place(where[1:])).settings


def setting_variable(name: str) -> str:
    return name.upper().replace("-", "_")


def setting_template(name: str, setting: Setting) -> str:
    return f"{{{{ settings['{name}'] {'| string | lower ' * isinstance(setting, SwitchSetting)}}}}}"


def setting_environment(settings: Mapping[str, Setting]) -> dict[str, str]:
    return {
        setting_variable(name): setting_template(name, setting)
        for name, setting in settings.items()
    }


PROGRAM = "web"
"""The role of the user's own program."""
LISTEN, TCP = "listen", "tcp"
"""The setting of services that listen on a Unix socket or on a port, and how they do here: not
every service lets other users than its own into its socket."""
SLUG_LETTERS = 30
PRIVATE = 0o600
"""Configurations and variables may hold secrets."""


class GeneratedCatalogue:
    """Services and stacks, each written once."""

    def __init__(self, services: Mapping[str, Service]) -> None:
        """Begin without any; `services` of the catalog may stand behind them."""
        self._services = services
        self.path: Path | None = None
        """Its folder; None as long as there is nothing in it."""

    def service(self, word: str, text: str, made: GeneratedService) -> str:
        """Write a service, and return its name: the kind and the text of its system."""
        containers = {role: container.service for role, container in made.containers.items()}
        parts = [made.service, made.files, made.behind, made.backends, containers]
        content = json.dumps(parts, sort_keys=True)
        digest = hashlib.sha256(content.encode()).hexdigest()[:8]
        slug = re.sub(r"[^A-Za-z0-9.]+", "-", text)[:SLUG_LETTERS].strip("-.")
        name = "-".join(filter(None, (word, slug, digest)))
        if folder := self._folder("services", name):
            for file, template in made.files.items():
                write_whole(folder / file, template, mode=PRIVATE)
            write_whole(folder / "service.toml", tomli_w.dumps(made.service), mode=PRIVATE)
        return name

    def stack(
        self, service: str, title: str, behind: Mapping[str, str], backends: Mapping[str, str]
    ) -> str:
        """Write the stack of a service, and of what stands behind it; return its name."""
        if folder := self._folder("stacks", service):
            parts = self._parts(service, behind, backends)
            stack = {"title": title, "serves": [ANYTHING], **parts}
            write_whole(folder / "stack.toml", tomli_w.dumps(stack), mode=PRIVATE)
        return service

    def _parts(
        self, program: str, behind: Mapping[str, str], backends: Mapping[str, str]
    ) -> dict[str, Any]:
        """Return the services and settings of a stack; `backends` are own systems."""
        roles = {PROGRAM: program, **behind, **backends}
        return {
            "front": PROGRAM,
            "services": {role: {"service": name} for role, name in roles.items()},
            "settings": {
                f"{role}_{LISTEN}": {"sets": [f"{role}.{LISTEN}"], "default": TCP}
                for role, name in behind.items()
                if LISTEN in self._services[name].settings
            },
        }

    def _folder(self, kind: str, name: str) -> Path | None:
        """Make a folder; None where it is there already."""
        if self.path is None:
            made = Workspace()
            atexit.register(made.remove)
            self.path = make_private(made.path / "catalog")
        folder = self.path / kind / name
        if folder.is_dir():
            return None
        folder.mkdir(parents=True)
        return folder
