"""An application as `webdyno init` finds it, and a layout by which it is found."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

FOR_MEASURING = "only-for-measuring-" * 4
"""A secret where an application wants one: long enough for every framework."""


@dataclass(frozen=True)
class FoundApp:
    """What was found, and by which file."""

    by: str
    start: str | None = None
    """How it starts as a program. It has one of start, image and conf; none of them where only the
    user can say."""
    build: str | None = None
    setup: str | None = None
    """What fills its services once, after `prepare` where that is a migration."""
    prepare: str | None = None
    """What has to run before each start."""
    services: Mapping[str, str] = field(default_factory=dict)
    """Of the catalogue, behind it, by role."""
    dir: str = "."
    """Where it is, in the folder that was looked at."""
    environment: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    """Of each request."""
    paths: tuple[str, ...] = ("/",)
    """What to ask for; where they are only these, its sources may name others."""
    notes: tuple[str, ...] = ()
    """What was chosen for it, and why, as sentences."""
    doubts: tuple[str, ...] = ()
    """What may be wrong about it, as sentences."""
    heeds_port: bool = False
    """Whether its framework listens on $PORT, though no source says so."""
    connections: int | None = None
    """So many its server takes at once; None where there is nothing to heed."""
    ready_within_s: int | None = None
    """So long it may take to start; None for as long as any."""
    image: str | None = None
    """As behind `image:`."""
    conf: str | None = None
    """As behind `conf:`."""
    root: str | None = None
    """The document root, in the place of what `conf` names."""
    several: str = ""
    """Of `choices`: what there are several of, as `compose.yaml has several services`."""
    choices: Mapping[str, "FoundApp"] = field(default_factory=dict)
    """By name: what it may be, where only the user can report which."""

    @property
    def is_whole(self) -> bool:
        """Whether it is known how it starts."""
        return any((self.start, self.image, self.conf))


class Layout(NamedTuple):
    """A way in which people lay out an application."""

    files: str
    """By which it is known, for messages."""
    find_in: Callable[[Path], FoundApp | None]
    """Give what a folder holds of it; None for nothing."""
