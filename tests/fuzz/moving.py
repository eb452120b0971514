"""Damaged configurations of servers, and what webdyno makes of them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random

from webdyno.config import Catalogue
from webdyno.core.errors import UserError
from webdyno.systems.conf import configuration
from webdyno.systems.target import OwnKeys, TargetSpec

SERVICES = Catalogue.load([]).services
HERE = "127.0.0.1:18000"
"""Where a configuration listens that is filled with the port 18000."""


def damaged(random: Random, text: str, pieces: Sequence[str], most: int) -> str:
    """Cut, repeat, and put pieces where they don't belong, so many times at most."""
    for _ in range(random.randint(0, most)):
        at, to = sorted(random.randrange(len(text) + 1) for _ in range(2))
        match random.randrange(5):
            case 0:
                text = text[:at] + text[to:]
            case 1:
                text = text[:to] + text[at : at + 2000] + text[to:]
            case 2:
                lines = text.split("\n")
                lines.insert(random.randrange(len(lines)), lines.pop(random.randrange(len(lines))))
                text = "\n".join(lines)
            case _:
                text = text[:at] + random.choice(pieces) + text[at:]
    return text


def moved(
    folder: Path, name: str, random: Random, keys: OwnKeys, host: str
) -> Mapping[str, str] | None:
    """Give the files that `SERVER:FILE` becomes; None where it is refused."""
    asked = TargetSpec(
        written=f"conf:{name}",
        text=f"{name}{random.choice(['', '', '#80', '#8080'])}",
        keys=keys,
        folder=folder,
        place="stack",
        notify=lambda _: None,
        services=SERVICES,
        testbed=None,
        provide=lambda _: None,
        protocol=random.choice(["http", "http", "https", "h2"]),
        host=random.choice(["", host]),
    )
    try:
        return configuration.make(asked).files
    except UserError:
        return None
