"""What a page asks to be compared, from the fields of its form; a stranger may have filled them."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from webdyno.config import Catalogue
from webdyno.core.errors import UserError
from webdyno.core.load import MOST_AT_ONCE

FIELDS = (
    *("stack", "own_stack", "baseline", "own_baseline"),
    *("site", "path", "time", "connections", "rate"),
)
SYSTEMS = {"system": "stack", "baseline": "baseline"}
"""By the API's name of it: the field of the page."""
OWN_FIELD = "own_"
"""How the fields begin in which systems of one's own are named; they come before the others."""
RUNS_ALREADY = "url:"
OWN = ("rev:", "conf:", RUNS_ALREADY)
"""Systems of the user's own that may be named on a page; commands and images may not."""
CONFIGURATION = re.compile(r"conf:(?P<server>(?:[a-z]+:)?)(?P<file>.*?)(?P<port>(?:#[0-9]+)?)")


class Asked(NamedTuple):
    """What is to be called, and what it takes a yes for."""

    arguments: Mapping[str, object]
    own: list[object]
    """What runs more than webdyno has, and doesn't run already."""


def comparison_asked(given: Mapping[str, str], catalogue: Catalogue, root: Path) -> Asked:
    """Return a comparison as it was asked for; raise UserError for what no page may begin."""
    if not all(map(str.isprintable, given.values())):
        raise UserError("these fields take no control characters: type them again")
    if given["path"] and not given["path"].startswith("/"):
        raise UserError(f"the path {given['path']!r:.60} should begin with /")
    systems = {
        key: _system(given[OWN_FIELD + field] or given[field], catalogue, root)
        for key, field in SYSTEMS.items()
    }
    arguments: dict[str, object] = dict(systems)
    if given["path"]:
        arguments["paths"] = [given["path"]]
    if settings := dict(_load(given)):
        arguments["settings"] = settings
    arguments |= {key: given[key] for key in ("site", "time") if given[key]}
    own: list[object] = [
        system
        for system in systems.values()
        if system not in catalogue.stacks and not system.startswith(RUNS_ALREADY)
    ]
    return Asked(arguments, own)


def _load(given: Mapping[str, str]) -> Iterator[tuple[str, object]]:
    if connections := given["connections"]:
        yield "load.connections", _whole(connections, "connections")
    if rate := given["rate"]:
        yield "load.loop", "open"
        yield "load.rate_per_s", _whole(rate, "requests per second")


def _whole(text: str, what: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text[:9]) <= MOST_AT_ONCE):
        raise UserError(f"{what}: {text!r:.20} should be a number from 1 to {MOST_AT_ONCE:,}")
    return int(text)


def _system(name: str, catalogue: Catalogue, root: Path) -> str:
    """Return a system; raise UserError for what a page may not name.

    A configuration can name programs that its server runs, so it has to lie in the folder.
    """
    if name not in catalogue.stacks and not name.startswith(OWN):
        raise UserError(
            f"{name!r:.60}: the catalog has no such stack; of your own a page may name "
            f"{', '.join(OWN)}, whatever else `webdyno compare` can"
        )
    if not (asked := CONFIGURATION.fullmatch(name)):
        return name
    file = Path(asked["file"]).resolve()
    if not file.is_relative_to(root):
        raise UserError(
            f"{name!r:.200}: lies outside of {root}; put it there, or start the comparison in a "
            "terminal"
        )
    return f"conf:{asked['server']}{file}{asked['port']}"
