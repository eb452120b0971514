"""A stack: services wired together so that they can serve a site."""

from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import Field, model_validator

from webdyno.model.base import Model
from webdyno.model.files import PlainName, RoleName
from webdyno.model.knob import Knob, KnobValue
from webdyno.model.service import Service


class RoleDefinition(Model):
    """A service in its role within a stack or site."""

    service: Service
    """Named in the file; the service itself once the catalogue was read."""
    knobs: dict[str, KnobValue] = {}
    """Knobs of the service that are fixed in this role."""
    links: dict[str, str] = {}
    """Which role stands behind each link of the service."""

    @model_validator(mode="after")
    def _knobs_and_links_exist(self) -> "RoleDefinition":
        for name, value in self.knobs.items():
            if name not in self.service.knobs:
                raise ValueError(f"service {self.service.name} has no knob {name!r}")
            if fault := self.service.knobs[name].fault(value):
                raise ValueError(f"knob {name} {fault}, not {value!r}")
        for link in self.links:
            if link not in self.service.links:
                raise ValueError(f"service {self.service.name} has no link {link!r}")
        return self


class StackKnob(Model):
    """A knob of the stack itself: it turns knobs of its services, several at once if need be."""

    sets: Annotated[list[str], Field(min_length=1)]
    """`ROLE.KNOB` each; the first one gives type and range."""
    default: KnobValue | None = None
    """Unless that of the first knob it sets."""
    help: str | None = None


class KnobTarget(NamedTuple):
    """A knob as users see it, and the knobs of services that it turns."""

    knob: Knob
    sets: tuple[tuple[str, str], ...]
    """(role, name of the service's knob) each."""


class Stack(Model):
    """`stack.toml` of a folder in `catalog/stacks`."""

    name: PlainName
    """Name of its folder."""
    folder: Path
    title: str
    serves: Annotated[list[str], Field(min_length=1)]
    """What sites may need of it: static, php, node, rack…"""
    front: str
    """The role that clients talk to."""
    services: Annotated[dict[RoleName, RoleDefinition], Field(min_length=1)]
    """By role."""
    knobs: dict[str, StackKnob] = {}

    @model_validator(mode="after")
    def _roles_exist(self) -> "Stack":
        if self.front not in self.services:
            raise ValueError(f"front: no service has the role {self.front!r}")
        for role, part in self.services.items():
            for link, other in part.links.items():
                if other not in self.services:
                    raise ValueError(f"services.{role}.links.{link}: no role {other!r}")
        for name, knob in self.knobs.items():
            for target in knob.sets:
                role, _, inner = target.partition(".")
                if role not in self.services or inner not in self.services[role].service.knobs:
                    raise ValueError(f"knobs.{name}.sets: there is no knob {target!r}")
        return self

    @property
    def protocol(self) -> str:
        """What it speaks to clients: http, or redis."""
        return self.services[self.front].service.protocol

    @property
    def runs_already(self) -> bool:
        """Whether somebody else has started it, so that it is only watched."""
        return self.services[self.front].service.runs_already

    @property
    def has_containers(self) -> bool:
        """Whether a part of it runs in containers, which have control groups of their own."""
        owns = (it.service.own for it in self.services.values())
        return any(own is not None and own.container_port is not None for own in owns)

    @property
    def is_own(self) -> bool:
        """Whether it is a user's own system, of which nobody has said that it works."""
        return self.services[self.front].service.own is not None

    def with_services(self, parts: dict[str, RoleDefinition]) -> "Stack":
        """Give the stack with further services; one of its own takes the place of its role's."""
        return self.replace(services={**parts, **self.services})

    def exposed_knobs(self) -> dict[str, KnobTarget]:
        """The knobs that users can turn, by the name they have for users.

        These are the stack's own, then every knob of a service that neither the part fixes nor an
        own knob turns, and that has an effect at all. The front's go by their plain name, those of
        other roles too unless that name is taken; then they are called ROLE_KNOB.
        """
        exposed = {name: self._own_knob(knob) for name, knob in self.knobs.items()}
        turned = {target for own in exposed.values() for target in own.sets}
        for role in sorted(self.services, key=lambda role: role != self.front):
            part = self.services[role]
            for name, knob in part.service.knobs.items():
                hidden = name in part.knobs or (role, name) in turned or knob.idle(part.knobs)
                if not hidden:
                    shown = f"{role}_{name}" if name in exposed else name
                    exposed[shown] = KnobTarget(knob, ((role, name),))
        return exposed

    def _own_knob(self, own: StackKnob) -> KnobTarget:
        sets = tuple((role, name) for role, _, name in (t.partition(".") for t in own.sets))
        role, name = sets[0]
        changes = {"default": own.default, "help": own.help}
        knob = self.services[role].service.knobs[name]
        changed = {key: value for key, value in changes.items() if value is not None}
        return KnobTarget(knob.replace(**changed), sets)
