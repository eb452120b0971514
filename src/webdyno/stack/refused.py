"""What a server says of a user's configuration that it refuses, in the lines of the user's file."""

import re
from pathlib import Path

from pydantic import ValidationError

from webdyno.model.origin import ORIGINS, Origins

UNKNOWN_WORDS = (
    r"unknown directive|Invalid command|unrecognized|unknown keyword|unknown optional|"
    r"unknown (option|parameter)|Cannot load"
)
UNKNOWN_NAMES = r"host not found|could not resolve|DNS lookup failure"
NO_ROOT = r"DocumentRoot '.*' is not a directory|document-root is not set"
NOTHING_MORE = re.compile(
    r"configuration file \S+ test failed|Error\(s\) found in|errors found in configuration|"
    r"haproxy version is|path to executable is"
)
"""What a server says of the moved file as a whole."""
REMEDIES = {
    UNKNOWN_WORDS: "this server is {program}: other versions and modules know other words. Install "
    "the module, take the line out, or measure the image that has it (image:NAME)",
    UNKNOWN_NAMES: "each name has to be known on this machine: add it to /etc/hosts, or measure it "
    "together with the containers it names (image:compose.yaml#SERVICE)",
    NO_ROOT: "name a folder with pages by --root DIR",
}
"""By what is said: what to do."""


def refused(said: str, folder: Path, home: Path, program: str) -> str:
    """Give what was said, with the lines of the user's files and what to do.

    `folder` is the service's in the catalogue, `home` where the moved configuration was, and
    `program` names the server and its version.
    """
    origins = _origins(folder)
    text = with_origins(said, str(home / origins.name), origins) if origins else said
    text = "\n".join(line for line in text.split("\n") if not NOTHING_MORE.search(line))
    remedies = [
        f"→ {words.format(program=program)}"
        for pattern, words in REMEDIES.items()
        if re.search(pattern, said, re.IGNORECASE)
    ]
    return "\n".join([text, *remedies])


def with_origins(said: str, moved: str, origins: Origins) -> str:
    """Write `FILE:N`, `line N of FILE` and `FILE line: N` with the user's file and line."""
    file = re.escape(moved)
    places = re.compile(rf"{file}(?::|\s+line:?\s+)(?P<after>\d+)|\bline (?P<before>\d+) of {file}")

    def place(found: re.Match[str]) -> str:
        line = int(found["after"] or found["before"])
        if (origin := origins.at(line)) is None:
            return f"line {line} of the moved configuration, which webdyno added"
        return f"line {origin.line} of {origin.file}" if found["before"] else str(origin)

    return places.sub(place, said)


def _origins(folder: Path) -> Origins | None:
    """Read where the lines come from; None where nobody wrote that down, or it can't be read."""
    try:
        return Origins.model_validate_json((folder / ORIGINS).read_bytes())
    except (OSError, ValidationError):
        return None
