"""Systems of users as variants.

What is said of one, the service made of it, the catalogue of such services, declared settings.
"""

import atexit
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tomli_w

from webdyno.config.reading import PlaceOf, build
from webdyno.core.base import Model, Seconds
from webdyno.core.errors import UserError
from webdyno.core.files import RoleName
from webdyno.core.request import WrittenPath
from webdyno.core.service import Need, Service, Text, Variable
from webdyno.core.setting import Setting, SwitchSetting
from webdyno.core.stack import ANYTHING
from webdyno.host.users import caller, home_of, name_of
from webdyno.host.workspace import Workspace
from webdyno.systems.app import DeclaredSettings

Notify = Callable[[str], None]
"""Says something to the user that is no result."""
Provide = Callable[[Iterable[Need]], None]
"""Installs what is missing, after a yes; raises OperationError where it doesn't."""
OWN = {"HOST", "PORT", "SOCKET", "PROTOCOL", "CERT", "KEY", "PATH", "HOME", "USER", "LOGNAME"}
"""Variables that a command has anyway."""


class OwnKeys(Model):
    """Keys of a variant that only a user's own systems have."""

    dir: Text | None = None
    """Where its commands run; relative to the experiment's file, or to where webdyno is called."""
    environment: dict[Variable, Text] = {}
    """Variables for its commands, next to `PORT`, `SOCKET`, `HOST`, `CERT`, `KEY`, `PROTOCOL`,
    `PATH` and `HOME`; `${env:NAME}` stands for a secret."""
    services: dict[RoleName, str] = {}
    """`cmd:`, `rev:` and `image:`: services of the catalogue behind it, by role, as in
    `db = "postgresql"`."""
    setup: Text | None = None
    """`cmd:` and `rev:`: a line of shell that fills those once; each start gets a copy."""
    prepare: Text | None = None
    """`cmd:` and `rev:`: a line of shell that fills those before each start."""
    ready: WrittenPath | None = None
    """It is ready once this path is answered with a status of 2xx or 3xx. Unless given, any
    response to the load's first GET will do that isn't a failure of the server (5xx)."""
    ready_within: Seconds | None = None
    """It has so long to become ready; 20 s unless given."""
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
    within: Path | None = None
    """The folder of a revision: what its files name reaches nothing else of this machine."""

    def service(self, spoken: Sequence[str], own: Mapping[str, Any], **keys: Any) -> dict[str, Any]:  # noqa: ANN401 (TOML)
        """Give a service as `service.toml` has it, of these keys and of what all kinds have.

        `spoken` are the protocols that clients may speak, which the load chooses from.
        """
        readiness = {
            "ready": self.keys.ready,
            "ready_within_s": self.keys.ready_within,
            "host": self.host,
        }
        readiness_keys = {key: value for key, value in readiness.items() if value}
        if spoken:
            keys["settings"] = {"protocol": _protocol_setting(spoken)} | {
                name: setting.model_dump(exclude_none=True)
                for name, setting in self.settings.items()
            }
        whole = {"written": self.written, **own, **readiness_keys}
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
    backends: Mapping[str, str] = field(default_factory=dict)
    """Own systems behind it, by role."""
    passes_on_to: Sequence[str] = ()
    """Hosts that have backends, or could have such, as it names them."""


def _protocol_setting(choices: Sequence[str]) -> Mapping[str, Any]:
    """Give the setting by which a load says what clients speak with a service."""
    help_ = "What clients speak; the load sets it."
    return {"type": "choice", "choices": choices, "default": choices[0], "help": help_}


def verbatim(text: str) -> str:
    """Write text so that, as a template, it gives itself."""
    if not any(mark in text for mark in ("{{", "{%", "{#")):
        return text
    quoted = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    return "{{ '" + re.sub(r"\{(?=[{%#])", r"\\x7b", quoted) + "' }}"  # ${env:NAME} stays


def users_environment(folder: Path, more: Mapping[str, str]) -> dict[str, str]:
    """Give the variables of a user's own commands: what his shell has that they can't do without.

    Not all that it has, since the size of the environment moves times (Mytkowicz et al., 2009).
    """
    user = caller(folder)
    name = name_of(user)
    path = os.environ.get("PATH", os.defpath)
    return {"PATH": path, "HOME": str(home_of(user)), "USER": name, "LOGNAME": name, **more}


def split_settings(settings: object) -> tuple[dict[str, Any], dict[str, Any]]:
    """Give what a variant declares, which are tables, and the values that it gives."""
    if not isinstance(settings, dict):
        return {}, {}
    declared = {name: setting for name, setting in settings.items() if isinstance(setting, dict)}
    return declared, {name: setting for name, setting in settings.items() if name not in declared}


def declared_settings(declared: Mapping[str, Any], place: PlaceOf) -> dict[str, Setting]:
    """Read declarations; raise UserError, naming the line, where one isn't right.

    What is omitted: the default is the first value of the range, and all of that is tuned.
    """
    for name in declared:
        if setting_variable(name) in OWN:
            raise UserError(
                f"{place((name,))}: ${setting_variable(name)} has a meaning already; rename it"
            )
    whole = {name: _completed(value) for name, value in declared.items()}
    return build(DeclaredSettings, {"settings": whole}, lambda where: place(where[1:])).settings


def _completed(given: Mapping[str, Any]) -> dict[str, Any]:
    choices = given.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else given.get("min", False)
    tune = given.get("tune", {})
    tuned = {"vendor": "declared by the user", **tune} if isinstance(tune, dict) else tune
    return {"help": "", "default": first, **given, "tune": tuned}


def setting_variable(name: str) -> str:
    """Give the variable by which a command finds a setting's value."""
    return name.upper().replace("-", "_")


def setting_template(name: str, setting: Setting) -> str:
    """Give a setting's value as a template."""
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
        """Begin without any; `services` are those of the catalogue, which may stand behind them."""
        self._services = services
        self.path: Path | None = None
        """Its folder; None as long as there is nothing in it."""

    def service(self, word: str, text: str, made: GeneratedService) -> str:
        """Write a service, named after the kind and the text of its system; give that name."""
        content = json.dumps([made.service, made.files, made.behind, made.backends], sort_keys=True)
        digest = hashlib.sha256(content.encode()).hexdigest()[:8]
        slug = re.sub(r"[^A-Za-z0-9.]+", "-", text)[:SLUG_LETTERS].strip("-.")
        name = "-".join(filter(None, (word, slug, digest)))
        if (folder := self._folder("services", name)) is None:
            return name
        for file, template in made.files.items():
            (folder / file).write_text(template, encoding="utf-8")
            (folder / file).chmod(PRIVATE)
        _write(folder / "service.toml", made.service)
        return name

    def stack(
        self, service: str, title: str, behind: Mapping[str, str], backends: Mapping[str, str]
    ) -> str:
        """Write the stack of a service, and of what stands behind it; give its name."""
        if folder := self._folder("stacks", service):
            parts = self._parts(service, behind, backends)
            _write(folder / "stack.toml", {"title": title, "serves": [ANYTHING], **parts})
        return service

    def _parts(
        self, program: str, behind: Mapping[str, str], backends: Mapping[str, str]
    ) -> dict[str, Any]:
        """Give the services of a stack, and its settings, as `stack.toml` has them.

        What stands `behind` the program is of the catalogue, `backends` are own systems.
        """
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
            self.path = made.path
        folder = self.path / kind / name
        if folder.is_dir():
            return None
        folder.mkdir(parents=True)
        return folder


def _write(path: Path, data: Mapping[str, Any]) -> None:
    path.write_text(tomli_w.dumps(data), encoding="utf-8")
    path.chmod(PRIVATE)
