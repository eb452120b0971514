"""Stacks: services wired together. Sites: what they serve, and the valid response to each path."""

import hashlib
import json
from collections.abc import Collection
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, Field, NonNegativeInt, model_validator

from webdyno.core.base import Model
from webdyno.core.paths import MOST_PATHS, WrittenPath, percent_encode, spell_out
from webdyno.core.request import is_of_grpc
from webdyno.core.service import Arguments, Need, Pattern, Service, Text, Variable
from webdyno.core.setting import Setting, SettingValue
from webdyno.core.text import (
    SECRET,
    InsidePath,
    OneLine,
    PlainName,
    RoleName,
    full_match,
    stays_inside,
)


class RoleDefinition(Model):
    """A service in its role within a stack or site."""

    service: Service
    """Named in the file; the service itself once the catalogue was read."""
    settings: dict[str, SettingValue] = {}
    """Settings of the service that are fixed in this role."""
    links: dict[str, str] = {}
    """Which role stands behind each link of the service."""

    @model_validator(mode="after")
    def _settings_and_links_exist(self) -> "RoleDefinition":
        for name, value in self.settings.items():
            if name not in self.service.settings:
                raise ValueError(f"service {self.service.name} has no setting {name!r}")
            if fault := self.service.settings[name].fault(value):
                raise ValueError(f"setting {name} {fault}, not {value!r}")
        for link in self.links:
            if link not in self.service.links:
                raise ValueError(f"service {self.service.name} has no link {link!r}")
        return self


class StackSetting(Model):
    """A setting of the stack itself: it changes settings of its services, one or several."""

    sets: Annotated[list[str], Field(min_length=1)]
    """`ROLE.SETTING` each; the first one gives type and range."""
    default: SettingValue | None = None
    """Unless that of the first setting it sets."""
    help: str | None = None


class SettingTarget(NamedTuple):
    """A setting as users see it, and the settings of services that it changes."""

    setting: Setting
    sets: tuple[tuple[str, str], ...]
    """(role, name of the service's setting) each."""


StackKind = Literal["framework", "platform", "web server", "proxy", "data store"]
"""What people choose when they choose a stack; a platform is a language's own server."""


class Stack(Model):
    """`stack.toml` of a folder in `systems/catalog/stacks`."""

    name: PlainName
    """Name of its folder."""
    folder: Path
    title: str
    language: OneLine = ""
    """What its application is written in, or the server itself where it has none."""
    kind: StackKind | None = None
    home: Annotated[str, Field(pattern="^(https://.*)?$")] = ""
    """Where its main part is developed."""
    serves: Annotated[list[str], Field(min_length=1)]
    """What sites may need of it: static, php, node, rack…"""
    front: str
    """The role that clients talk to."""
    services: Annotated[dict[RoleName, RoleDefinition], Field(min_length=1)]
    """By role."""
    settings: dict[str, StackSetting] = {}

    @model_validator(mode="after")
    def _roles_exist(self) -> "Stack":
        if self.front not in self.services:
            raise ValueError(f"front: no service has the role {self.front!r}")
        for role, part in self.services.items():
            for link, other in part.links.items():
                if other not in self.services:
                    raise ValueError(f"services.{role}.links.{link}: no role {other!r}")
        for name, setting in self.settings.items():
            for target in setting.sets:
                role, _, inner = target.partition(".")
                if role not in self.services or inner not in self.services[role].service.settings:
                    raise ValueError(f"settings.{name}.sets: there is no setting {target!r}")
        return self

    @property
    def protocol(self) -> str:
        """What it speaks to clients: http, or redis."""
        return self.services[self.front].service.protocol

    @property
    def runs_already(self) -> bool:
        return self.services[self.front].service.runs_already

    @property
    def has_containers(self) -> bool:
        """Whether a part of it runs in containers, which have control groups of their own."""
        owns = (part.service.own for part in self.services.values())
        return any(own is not None and own.container_port is not None for own in owns)

    @property
    def has_groups_elsewhere(self) -> bool:
        """Whether these are in groups that are no part of the stack's."""
        owns = (part.service.own for part in self.services.values())
        return any(own is not None and own.groups_elsewhere for own in owns)

    @property
    def is_own(self) -> bool:
        """Whether it is a user's own system, of which nobody has said that it works."""
        return self.services[self.front].service.own is not None

    def with_services(self, parts: dict[str, RoleDefinition]) -> "Stack":
        """Return the stack with further services; one of its own takes the place of its role's."""
        return self.replace(services={**parts, **self.services})

    def exposed_settings(self) -> dict[str, SettingTarget]:
        """The settings that users can change, by the name they have for users.

        These are the stack's own, then every setting of a service that neither the part fixes nor
        an own setting changes, and that has an effect at all. The front's go by their plain name,
        those of other roles too unless that name is taken; then they are called ROLE_SETTING.
        """
        exposed = {name: self._own_setting(setting) for name, setting in self.settings.items()}
        changed = {target for own in exposed.values() for target in own.sets}
        for role in sorted(self.services, key=lambda role: role != self.front):
            part = self.services[role]
            for name, setting in part.service.settings.items():
                hidden = (
                    name in part.settings or (role, name) in changed or setting.idle(part.settings)
                )
                if not hidden:
                    shown = f"{role}_{name}" if name in exposed else name
                    exposed[shown] = SettingTarget(setting, ((role, name),))
        return exposed

    def _own_setting(self, own: StackSetting) -> SettingTarget:
        sets = tuple((role, name) for role, _, name in (t.partition(".") for t in own.sets))
        role, name = sets[0]
        changes = {"default": own.default, "help": own.help}
        setting = self.services[role].service.settings[name]
        changed = {key: value for key, value in changes.items() if value is not None}
        return SettingTarget(setting.replace(**changed), sets)


class Page(Model):
    """The valid response to a path."""

    status: Annotated[int, Field(ge=200, le=599)] = 200
    body_bytes: NonNegativeInt | None = None
    """None where the length may differ from one response to the next."""
    body_sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None = None
    """None where the body may differ from one response to the next."""
    body_contains: str | None = None
    """A part of the body that shows it to be the right page."""
    headers: dict[OneLine, Pattern] = {}
    """Headers that the response must have, each with a regular expression for its value."""
    reads: NonNegativeInt = 0
    """How many rows it takes from a database, each by a statement of its own."""

    def matches(self, status: int, body: bytes) -> bool:
        """Whether a response is the right one."""
        return (
            status == self.status
            and self.body_bytes in {None, len(body)}
            and self.body_sha256 in {None, hashlib.sha256(body).hexdigest()}
            and (self.body_contains or "").encode() in body
        )


class MadeFile(Model):
    """A file that is made when the site is set up: its text, or that many bytes of made-up text."""

    text: str | None = None
    size_bytes: Annotated[int, Field(ge=0, le=2**30)] | None = None
    count: Annotated[int, Field(ge=1, le=MOST_PATHS)] = 1
    """With `{n}` in its path: that many files, numbered from 1."""

    @model_validator(mode="after")
    def _one_kind(self) -> "MadeFile":
        if (self.text is None) == (self.size_bytes is None):
            raise ValueError("a file has either text or size_bytes")
        return self


Index = Annotated[
    str,
    full_match(r"[A-Za-z0-9_-][A-Za-z0-9._-]*", "is no file's name of letters, digits, - _ and ."),
]
Fallback = Annotated[
    str, full_match(r"(/[A-Za-z0-9._-]*)+", "is no path of letters, digits, - _ . and /")
]
Extension = Annotated[
    str, full_match(r"[A-Za-z0-9_]+", "is no name of an extension: letters, digits and _ make one")
]


class Web(Model):
    """How a web server finds the page for a path."""

    index: list[Index] = ["index.html"]
    """Files that answer for a folder, the first that exists."""
    fallback: Fallback | None = None
    """The path that answers for every path without a file, such as `/index.php`."""


Rule = Literal["json", "db", "queries", "updates", "fortunes", "crud", "upload"]
"""What responses are held to next to their pages, see webdyno.measure.site_rules."""


def _bodies_inside(requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    for request in requests:
        for key in ("body_file", "json_file"):
            if key in request:
                stays_inside(str(request[key]))
    return requests


Suggestions = dict[Literal["load", "measure", "settings"], dict[str, Any]]


def _proto_inside(suggests: Suggestions) -> Suggestions:
    if (name := suggests.get("load", {}).get("proto_file")) is not None:
        stays_inside(str(name))
    return suggests


ANYTHING = "anything"
"""What a program serves of which nobody knows what it can serve: the pre-flight check will say."""


class Site(Model):
    """`site.toml` of a folder in `systems/catalog/sites`.

    Next to it may lie `root/`, whose files become part of the document root, and `app/`, the code
    of applications that aren't served as files.
    """

    name: PlainName
    """Name of its folder."""
    folder: Path
    title: str
    needs: Annotated[list[str], Field(min_length=1)]
    """What a stack must be able to serve: static, php, node, rack; `php|node` is either."""
    paths: dict[WrittenPath, Page] = {}
    """The first one shows that a stack is ready; `/many/{1..2000}.txt` stands for all of them."""
    files: dict[InsidePath, MadeFile] = {}
    """By path under the document root."""
    web: Web = Web()
    php_extensions: list[Extension] = []
    """What PHP loads for it, in this order; `requires` names their packages."""
    requires: dict[str, Need] = {}
    """Programs and files it needs itself, by the name under which templates find them."""
    base: str | None = None
    """The name of a requirement, a folder that the document root starts as a copy of."""
    without: list[str] = []
    """Entries of that folder that are excluded from the copy."""
    services: dict[RoleName, RoleDefinition] = {}
    """Data services it needs, by role; a stack's own service of the same role takes its place."""
    setup: list[Arguments] = []
    """Commands that run once, as the servers' user, while its data services run: what they leave
    in document root, state folder and data services is what every round starts from."""
    environment: dict[Variable, Text] = {}
    """Variables for all services and commands, as templates; how its code learns where things are.
    """
    settings: dict[str, Setting] = {}
    suggests: Annotated[Suggestions, AfterValidator(_proto_inside)] = {}
    """Settings of an experiment that suit it, and of stacks that have such; `webdyno compare`
    starts from them. A page that takes the servers a tenth of a second needs longer slots than a
    small file."""
    requests: Annotated[list[dict[str, Any]], AfterValidator(_bodies_inside)] = []
    """What a load asks for unless it names paths or requests, as an experiment has them."""
    rules: list[Rule] = []
    """Checked before anything is measured; a stack that breaks one is refused."""

    @model_validator(mode="after")
    def _sends_nothing_of_who_calls(self) -> "Site":
        if secret := SECRET.search(json.dumps([self.requests, self.suggests], default=str)):
            raise ValueError(f"{secret[0]}: a site sends no variables of who calls webdyno")
        return self

    def page(self, path: str) -> Page:
        """Return the valid response to a path; one that isn't listed has to answer 200, no more."""
        return self._pages.get(percent_encode(path), Page())

    @cached_property
    def _pages(self) -> dict[str, Page]:
        return {path: page for written, page in self.paths.items() for path in spell_out(written)}

    def served_by(self, serves: Collection[str]) -> bool:
        return not self.lacks(serves)

    def lacks(self, serves: Collection[str]) -> list[str]:
        """Return what a stack that can serve these is short of."""
        if ANYTHING in serves:
            return []
        return [need for need in self.needs if not set(need.split("|")).intersection(serves)]

    @property
    def is_called(self) -> bool:
        """Whether it is asked by gRPC, by whose health protocol a stack is ready then."""
        return bool(self._called)

    @property
    def _called(self) -> list[str]:
        methods = (request.get("method") for request in self.requests)
        return [f"/{method}" for method in methods if is_of_grpc(method)]

    @property
    def ready_path(self) -> str:
        """The path that is requested until a stack answers."""
        return next(iter(self._pages), next(iter(self._called), "/"))
