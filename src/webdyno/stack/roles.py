"""Settles which services a stack runs, in which order and with which knobs."""

from collections.abc import Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from webdyno.model.knob import SERVER_CPUS, KnobValue
from webdyno.model.mistake import Mistake
from webdyno.model.service import Service
from webdyno.model.stack import Stack


@dataclass(frozen=True)
class Role:
    """One service of a stack with every knob settled."""

    name: str
    service: Service
    knobs: Mapping[str, KnobValue]
    links: Mapping[str, str]
    """Link of the service to role."""

    @property
    def by_socket(self) -> bool:
        """Whether it listens on a Unix socket: the convention is a knob named `listen`."""
        return self.knobs.get("listen") == "unix"


def settle_roles(stack: Stack, knobs: Mapping[str, KnobValue], server_cpus: int) -> list[Role]:
    """Give a stack's roles in the order in which they start: links before those who use them.

    `knobs` are the stack's, as users name them. Raise Mistake for one that doesn't exist or is
    out of range, and for services that link in a circle.
    """
    settled: dict[str, dict[str, KnobValue]] = {
        role: {name: knob.default for name, knob in part.service.knobs.items()} | part.knobs
        for role, part in stack.services.items()
    }
    exposed = stack.exposed_knobs()
    for name in knobs:
        if name not in exposed:
            raise Mistake(f"stack {stack.name} has no knob {name!r}")
    for name, (knob, sets) in exposed.items():
        value = knobs.get(name, knob.default)
        if fault := knob.fault(value):
            raise Mistake(f"stack {stack.name}: knob {name} {fault}, not {value!r}")
        for role, inner in sets:
            settled[role][inner] = value
    return [
        Role(
            name=role,
            service=stack.services[role].service,
            knobs={
                name: server_cpus if value == SERVER_CPUS else value
                for name, value in settled[role].items()
            },
            links=stack.services[role].links,
        )
        for role in _start_order(stack)
    ]


def _start_order(stack: Stack) -> list[str]:
    links = {role: set(part.links.values()) for role, part in stack.services.items()}
    try:
        return list(TopologicalSorter(links).static_order())
    except CycleError as error:
        circle = " -> ".join(error.args[1])
        raise Mistake(f"stack {stack.name}: services link in a circle: {circle}") from None
