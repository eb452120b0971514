"""Resolves which services a stack runs for a site, in which order and with which knobs."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter

from webdyno.model.errors import UserError
from webdyno.model.knob import SERVER_CPUS, Knob, KnobValue
from webdyno.model.service import Service
from webdyno.model.stack import RoleDefinition, Site, Stack
from webdyno.stack.certificates import SECURE


@dataclass(frozen=True)
class Role:
    """One service of a stack with every knob resolved."""

    name: str
    service: Service
    knobs: Mapping[str, KnobValue]
    links: Mapping[str, str]
    """Link of the service to role."""

    @property
    def by_socket(self) -> bool:
        """Whether it listens on a Unix socket: the convention is a knob named `listen`."""
        own = self.service.own
        return self.knobs.get("listen") == "unix" or (own is not None and own.by_socket)

    def on_a_port(self) -> "Role":
        """Give it listening on a port, where it has the choice: sockets reach no other host."""
        chooses = self.knobs.get("listen") == "unix"
        return replace(self, knobs={**self.knobs, "listen": "tcp"}) if chooses else self

    @property
    def speaks(self) -> str:
        """What clients speak with it, of an HTTP server: the convention is a knob `protocol`."""
        return str(self.knobs.get("protocol", "http"))

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
    site_knobs: Mapping[str, KnobValue]


def resolve_stack(
    stack: Stack, site: Site | None, knobs: Mapping[str, KnobValue], server_cpus: int
) -> ResolvedStack:
    """Give all roles, data services of the site included, with their knobs.

    `knobs` are those of stack and site, as users name them. Raise UserError for one that doesn't
    exist or is out of range, and for services that link in a circle.
    """
    served = stack.with_services(site.services) if site else stack
    resolved = {role: _default_knobs(part) for role, part in served.services.items()}
    exposed = served.exposed_knobs()
    own = site.knobs if site else {}
    for name in knobs:
        if name not in exposed and name not in own:
            raise UserError(f"stack {stack.name} has no knob {name!r}")
    for name, (knob, sets) in exposed.items():
        value = _value(stack, name, knob, knobs)
        for role, inner in sets:
            resolved[role][inner] = value
    roles = [
        _role(name, served.services[name], resolved[name], server_cpus)
        for name in _start_order(served)
    ]
    return ResolvedStack(
        roles, {name: _value(stack, name, knob, knobs) for name, knob in own.items()}
    )


def resolve_services(parts: Mapping[str, RoleDefinition], server_cpus: int) -> list[Role]:
    """Give the roles of services that run on their own, with the knobs they have by default."""
    return [_role(name, part, _default_knobs(part), server_cpus) for name, part in parts.items()]


def _default_knobs(part: RoleDefinition) -> dict[str, KnobValue]:
    return {name: knob.default for name, knob in part.service.knobs.items()} | part.knobs


def _value(stack: Stack, name: str, knob: Knob, knobs: Mapping[str, KnobValue]) -> KnobValue:
    value = knobs.get(name, knob.default)
    if fault := knob.fault(value):
        raise UserError(f"stack {stack.name}: knob {name} {fault}, not {value!r}")
    return value


def _role(
    name: str, part: RoleDefinition, knobs: Mapping[str, KnobValue], server_cpus: int
) -> Role:
    return Role(
        name=name,
        service=part.service,
        knobs={
            knob: server_cpus if value == SERVER_CPUS else value for knob, value in knobs.items()
        },
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
