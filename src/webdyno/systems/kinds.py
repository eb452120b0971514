"""The kinds of users' own systems, such as `cmd:COMMAND` and `url:URL`."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

from webdyno.systems.target import GeneratedService, TargetSpec

Make = Callable[[TargetSpec], GeneratedService]
"""Turns a system into a service; raises UserError for what can't be, OperationError for a failure.
"""


@dataclass(frozen=True)
class OwnKind:
    """A kind of own systems.

    How one becomes a service, and which keys of a variant it understands.
    """

    make: Make
    takes_settings: bool = False
    """Its command finds the values of settings in its environment, or its file has places for
    them."""
    by_line: bool = False
    """A line of shell starts it, and others can fill the services behind it."""
    has_services: bool = False
    """It finds services behind it in its environment."""
    has_root: bool = False
    """Its document root can be exchanged."""
    has_backends: bool = False
    """Whom it passes requests on to can be exchanged."""
    runs_already: bool = False
    """Somebody else has started it, where and as he liked."""


def _made_by(module: str) -> Make:
    """Give the `make` of a module here, which is imported when there is such a system.

    Runs without one needn't wait for that: some read configurations of five servers.
    """

    def make(spec: TargetSpec) -> GeneratedService:
        own_make: Make = import_module(f"{__package__}.{module}").make
        return own_make(spec)

    return make


KINDS: dict[str, OwnKind] = {
    "cmd": OwnKind(_made_by("command"), takes_settings=True, by_line=True, has_services=True),
    "rev": OwnKind(
        _made_by("project"),
        takes_settings=True,
        by_line=True,
        has_services=True,
        has_backends=True,
    ),
    "conf": OwnKind(
        _made_by("conf.configuration"), takes_settings=True, has_root=True, has_backends=True
    ),
    "image": OwnKind(_made_by("containers.image"), has_services=True),
    "url": OwnKind(_made_by("url"), runs_already=True),
}
"""By the word before the colon."""
KIND_OF_APP = {"start": "cmd", "image": "image", "conf": "conf"}
"""By the key of `[app]` that says how an application is started."""


def is_own(stack: object) -> bool:
    """Whether a variant's stack is a user's own system, and none of the catalogue."""
    return isinstance(stack, str) and stack.partition(":")[0] in KINDS and ":" in stack


def is_revision(stack: str) -> bool:
    """Whether it is a state of a repository, which has a `webdyno.toml`."""
    return is_own(stack) and stack.startswith("rev:")
