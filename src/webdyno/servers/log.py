"""What is shown of a server's log, and what it says about why the server died or didn't start.

Lines that say the same are shown once, the first of them. What a server says of a user's
configuration that it refuses is reported in the lines of the user's file.
"""

import os
import re
from collections.abc import Sequence
from io import FileIO
from pathlib import Path

from pydantic import ValidationError

from webdyno.core.errors import UserError
from webdyno.core.files import opened_inside
from webdyno.core.origin import ORIGINS, Origins

READ_BYTES = 32_768
CUT = "…\n".encode()
"""How much is read of a log's beginning, and of its end."""
SHOWN_LINES, FIRST_LINES = 15, 3
"""How many different lines are shown, and how many of them from the beginning, which says why."""
MOST_LETTERS = 400
LIMITING = re.compile(r"limiting (requests|connections)\b")
"""What limit_req and limit_conn write."""
EXHAUSTED = re.compile(
    r"too many open files|EMFILE|ENFILE|assign requested address|EADDRNOTAVAIL|out of memory|ENOMEM"
    r"|cannot allocate memory|no space left|ENOSPC|connections are not enough|resource temporarily",
    re.IGNORECASE,
)
"""What servers and the C library say when a resource is exhausted."""
UNLIKE = re.compile(r'(?<="err_id":")\w+|0x[0-9a-fA-F]+|[0-9]+')
"""What differs in lines that say the same: times, numbers, and Caddy's names of errors."""
IN_USE = "address already in use"
"""The words of the C library, and of node."""
_PORT = re.compile(r"""(?:[:\]]|\bport |['"], )(\d{2,5})\b""")
LEAST_PORT = 80
"""Smaller numbers in a log are parts of a time or numbers of lines."""
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
"""Words about the moved file as a whole, which say users nothing."""
FIXES = {
    UNKNOWN_WORDS: "this server is {program}: other versions and modules know other words. Install "
    "the module, take the line out, or measure the image that has it (image:NAME)",
    UNKNOWN_NAMES: "each name has to be known on this machine: say what answers in its place "
    "(--backend NAME=cmd:'COMMAND'), or measure it together with the containers it names "
    "(image:compose.yaml#SERVICE)",
    NO_ROOT: "name a folder with pages by --root DIR",
}
"""What to do, by what the server said."""


def shown_lines(log: Path) -> list[str]:
    """Give the first and the last lines of a log that say something new; none if there is none."""
    try:
        with opened_inside(log) as file:
            text = file.read(READ_BYTES)
            end = max(len(text), os.fstat(file.fileno()).st_size - READ_BYTES)
            is_cut = end > len(text)
            later = CUT + _whole_lines_from(file, end) if is_cut else file.read(READ_BYTES)
    except (OSError, UserError):  # UserError: a link, which whoever owns the run has put there
        return []
    return folded(_lines(text + later))


def refusal_in(folder: Path) -> str:
    """Give the last line of a folder's logs by which nginx says that a limit refuses requests."""
    return _last_line(folder, LIMITING)


def exhaustion_in(folder: Path) -> str:
    """Give the last line of a folder's logs that says that a server has no more of something."""
    return _last_line(folder, EXHAUSTED)


def _last_line(folder: Path, saying: re.Pattern[str]) -> str:
    for log in sorted(folder.glob("*.log")):
        try:
            with opened_inside(log) as file:
                size = os.fstat(file.fileno()).st_size
                lines = _lines(_whole_lines_from(file, size - READ_BYTES))
        except (OSError, UserError):
            continue
        if match := next((line for line in reversed(lines) if saying.search(line)), ""):
            return match.strip()
    return ""


def _whole_lines_from(file: FileIO, place: int) -> bytes:
    """Read on from a place, without a line that begins before: half a secret isn't known as one."""
    file.seek(max(0, place - 1))
    read = file.read(READ_BYTES + 1)
    return read if place <= 0 else read[read.find(b"\n") + 1 :]


def folded(lines: Sequence[str]) -> list[str]:
    """Fold lines that differ in times and numbers alone; keep the first ones and the last ones."""
    alike: dict[str, list[str]] = {}
    for line in lines:
        alike.setdefault(UNLIKE.sub("#", line), []).append(line)
    shown = [
        those[0] + (f" (and {len(those) - 1} more like it)" if len(those) > 1 else "")
        for those in alike.values()
    ]
    if len(shown) <= SHOWN_LINES:
        return shown
    return [*shown[:FIRST_LINES], "…", *shown[FIRST_LINES - SHOWN_LINES :]]


def _lines(text: bytes) -> list[str]:
    lines = text.decode("utf-8", "replace").splitlines()
    return [line if len(line) <= MOST_LETTERS else f"{line[:MOST_LETTERS]}…" for line in lines]


def other_port_in_use(lines: Sequence[str], own: int) -> int | None:
    """Give the port that a log says is taken; None where that is its own, or isn't named."""
    for line in lines:
        if IN_USE not in line.lower():
            continue
        ports = [int(port) for port in _PORT.findall(line) if int(port) >= LEAST_PORT]
        if ports and own not in ports:
            return ports[-1]
    return None


def hint(lines: Sequence[str], own_port: int) -> str:
    """Give words behind what happened; none where the log shows no cause that is known."""
    other = other_port_in_use(lines, own_port)
    if other:
        return (
            f": it wants port {other} as well as $PORT, and another program has that. All variants "
            "run at the same time: give each a port of its own (--env, or environment of a "
            "variant), leave that listener out, or compare containers (image:), which have a "
            "network each"
        )
    return ""


def refused(said: str, folder: Path, home: Path, program: str) -> str:
    """Give what was said, with the lines of the user's files and what to do.

    `folder` is the service's in the catalogue, `home` where the moved configuration was, and
    `program` names the server and its version.
    """
    origins = _origins(folder)
    text = with_origins(said, str(home / origins.name), origins) if origins else said
    text = "\n".join(line for line in text.split("\n") if not NOTHING_MORE.search(line))
    fixes = [
        f"→ {words.format(program=program)}"
        for pattern, words in FIXES.items()
        if re.search(pattern, said, re.IGNORECASE)
    ]
    return "\n".join([text, *fixes])


def with_origins(said: str, moved: str, origins: Origins) -> str:
    """Write `FILE:N`, `line N of FILE` and `FILE line: N` with the user's file and line."""
    file = re.escape(moved)
    places = re.compile(rf"{file}(?::|\s+line:?\s+)(?P<after>\d+)|\bline (?P<before>\d+) of {file}")

    def place(match: re.Match[str]) -> str:
        line = int(match["after"] or match["before"])
        if (origin := origins.at(line)) is None:
            return f"line {line} of the moved configuration, which webdyno added"
        return f"line {origin.line} of {origin.file}" if match["before"] else str(origin)

    return places.sub(place, said)


def _origins(folder: Path) -> Origins | None:
    """Read where the lines come from; None where nobody wrote that down, or it can't be read."""
    try:
        return Origins.model_validate_json((folder / ORIGINS).read_bytes())
    except (OSError, ValidationError):
        return None
