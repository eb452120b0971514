"""Resolves which services a stack runs for a site, in which order and with which settings."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter
from typing import cast

from webdyno.core.errors import UserError
from webdyno.core.load import HttpProtocol
from webdyno.core.service import Service
from webdyno.core.setting import Setting, SettingValue, in_figures
from webdyno.core.stack import RoleDefinition, Site, Stack
from webdyno.servers.certificates import SECURE


@dataclass(frozen=True)
class Role:
    """One service of a stack with every setting resolved."""

    name: str
    service: Service
    settings: Mapping[str, SettingValue]
    links: Mapping[str, str]
    """Link of the service to role."""

    @property
    def by_socket(self) -> bool:
        """Whether it listens on a Unix socket: the convention is a setting named `listen`."""
        own = self.service.own
        return self.settings.get("listen") == "unix" or (own is not None and own.by_socket)

    def on_a_port(self) -> "Role":
        """Give it listening on a port, where it has the choice: sockets reach no other host."""
        chooses = self.settings.get("listen") == "unix"
        return replace(self, settings={**self.settings, "listen": "tcp"}) if chooses else self

    @property
    def speaks(self) -> HttpProtocol:
        """What clients speak with it, of an HTTP server: the convention is a setting `protocol`."""
        return cast("HttpProtocol", self.settings.get("protocol", "http"))

    @property
    def has_certificate(self) -> bool:
        """Whether its folder has a certificate of the run's own.

        A user's own configuration may have hosts with TLS besides the one that is asked.
        """
        return self.speaks in SECURE or (self.service.own is not None and bool(self.service.files))


@dataclass(frozen=True)
class ResolvedStack:
    """Everything that runs for a site, in the order in which it starts."""

    roles: list[Role]
    site_settings: Mapping[str, SettingValue]


def resolve_stack(
    stack: Stack, site: Site | None, settings: Mapping[str, SettingValue], server_cpus: int
) -> ResolvedStack:
    """Give all roles, data services of the site included, with their settings.

    `settings` are those of stack and site, as users name them. Raise UserError for one that doesn't
    exist or is out of range, and for services that link in a circle.
    """
    served = stack.with_services(site.services) if site else stack
    resolved = {role: _default_settings(part) for role, part in served.services.items()}
    exposed = served.exposed_settings()
    own = site.settings if site else {}
    for name in settings:
        if name not in exposed and name not in own:
            raise UserError(f"stack {stack.name} has no setting {name!r}")
    for name, (setting, sets) in exposed.items():
        value = _value(stack, name, setting, settings)
        for role, inner in sets:
            resolved[role][inner] = value
    roles = [
        _role(name, served.services[name], resolved[name], server_cpus)
        for name in _start_order(served)
    ]
    return ResolvedStack(
        roles, {name: _value(stack, name, setting, settings) for name, setting in own.items()}
    )


def resolve_services(parts: Mapping[str, RoleDefinition], server_cpus: int) -> list[Role]:
    """Give the roles of services that run on their own, with the settings they have by default."""
    return [_role(name, part, _default_settings(part), server_cpus) for name, part in parts.items()]


def _default_settings(part: RoleDefinition) -> dict[str, SettingValue]:
    return {
        name: setting.default for name, setting in part.service.settings.items()
    } | part.settings


def _value(
    stack: Stack, name: str, setting: Setting, settings: Mapping[str, SettingValue]
) -> SettingValue:
    value = settings.get(name, setting.default)
    if fault := setting.fault(value):
        raise UserError(f"stack {stack.name}: setting {name} {fault}, not {value!r}")
    return value


def _role(
    name: str, part: RoleDefinition, settings: Mapping[str, SettingValue], server_cpus: int
) -> Role:
    return Role(
        name=name,
        service=part.service,
        settings={setting: in_figures(value, server_cpus) for setting, value in settings.items()},
        links=part.links,
    )


def _start_order(stack: Stack) -> list[str]:
    """Links start before those who use them, the front last."""
    before = {role: set(part.links.values()) for role, part in stack.services.items()}
    before[stack.front] |= before.keys() - {stack.front}
    try:
        return list(TopologicalSorter(before).static_order())
    except CycleError as error:
        circle = " -> ".join(error.args[1])
        raise UserError(f"stack {stack.name}: services link in a circle: {circle}") from None
