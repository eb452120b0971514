"""What programs of servers say: commands run to their end, versions, logs and why a server died.

Commands of the catalogue run as servers do, by their user and warden. Of logs, lines that say the
same are shown once, the first of them. What a server says of a user's configuration that it refuses
is reported in the lines of the user's file.
"""

import itertools
import logging
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import Any

import regex
from pydantic import ValidationError

from webdyno.core.debug_log import words_without_secrets
from webdyno.core.errors import UserError
from webdyno.core.files import checked_files, open_given_inside
from webdyno.core.format import last_lines
from webdyno.core.hiding import hidden
from webdyno.core.service import ORIGINS, BuildSteps, Origins, Service, Version
from webdyno.core.setting import SettingValue
from webdyno.host.server_process import PLAIN_ENVIRONMENT
from webdyno.host.this_machine import Testbed
from webdyno.host.workspace import Workspace
from webdyno.servers.templates import without_empty

logger = logging.getLogger(__name__)

WITHIN_S = 120.0
VERSION_WITHIN_S = 10.0
MOST_SAID_BYTES = 1 << 20

_numbers = itertools.count()
_versions: dict[tuple[str, ...], str] = {}
PACKAGE = "NAME"
LOCK_FILES = {
    "requirements.txt": r"(?mi)^NAME(?:\[[^\]]*\])?==([^\s;\\]+)",
    "uv.lock": r'(?m)^name = "NAME"\nversion = "([^"]+)"',
    "Cargo.lock": r'(?m)^name = "NAME"\nversion = "([^"]+)"',
    "go.mod": r"(?m)^(?:require)?\s*NAME v(\S+)",
    "package-lock.json": r'"node_modules/NAME": \{\s*"version": "([^"]+)"',
    "Gemfile.lock": r"(?m)^ {4}NAME \(([^)]+)\)",
    "composer.lock": r'"name": "NAME",\s*"version": "v?([^"]+)"',
    "pom.xml": r"<artifactId>NAME</artifactId>\s*<version>([^<]+)</version>",
}
"""By name: where such a file has the version of a package."""
PATTERN_WITHIN_S = 5.0
UNKNOWN_VERSION = "unknown"
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


class CommandError(Exception):
    """A command failed; the message holds its own last words, indented."""

    def __init__(self, how: str, said: str) -> None:
        """`how` it ended: with which exit code."""
        super().__init__(said)
        self.how = how


def run_checked(
    words: Sequence[str],
    *,
    cwd: Path,
    environment: Mapping[str, str],
    testbed: Testbed,
    workspace: Workspace,
    within_s: float = WITHIN_S,
) -> None:
    """Run a command; raise CommandError with the end of what it said when it fails."""
    code, said = _run(words, cwd, environment, testbed, workspace, within_s)
    if code is None:
        raise CommandError(f"no end within {within_s:g} s", last_lines(said, SHOWN_LINES))
    if code:
        raise CommandError(f"exit code {code}", last_lines(said, SHOWN_LINES))


def version_output(words: Sequence[str], testbed: Testbed, workspace: Workspace) -> str:
    """Return what a program says of its version, whatever its exit code; it is asked once."""
    key = tuple(words)
    if key not in _versions:
        folder, within_s = workspace.path, VERSION_WITHIN_S
        _, _versions[key] = _run(words, folder, PLAIN_ENVIRONMENT, testbed, workspace, within_s)
    return _versions[key]


def _run(
    words: Sequence[str],
    cwd: Path,
    environment: Mapping[str, str],
    testbed: Testbed,
    workspace: Workspace,
    within_s: float,
) -> tuple[int | None, str]:
    """Return the exit code, None where the command didn't end, and what it said."""
    log = workspace.path / f"_said-{next(_numbers)}"
    logger.debug("runs %s, for %g s at most", words_without_secrets(words), within_s)
    code = testbed.run(
        words,
        cwd=cwd,
        env=environment,
        log=log,
        workspace=workspace,
        within_s=within_s,
        stop_within_s=0.5,
    )
    with log.open("rb") as file:
        said = file.read(MOST_SAID_BYTES).decode("utf-8", "replace")
    log.unlink()
    logger.debug("%s ended with exit code %s", words[0], code)
    return code, said


def locked_versions(service: Service, settings: Mapping[str, SettingValue]) -> Mapping[str, str]:
    """Return the versions of a service's packages, by name; none where it has nothing to build.

    `settings` needn't have those at their defaults. Raise UserError for a package that no lock file
    of its program has.
    """
    if service.build is None:
        return {}
    folder = service.path_of(service.build.program)
    locks = [
        (LOCK_FILES[path.name], path.read_text(encoding="utf-8"))
        for path in checked_files(folder).values()
        if path.name in LOCK_FILES
    ]
    versions = {}
    for package in _packages(service.build, service, settings):
        name = re.escape(package)
        matches = (re.search(pattern.replace(PACKAGE, name), text) for pattern, text in locks)
        match = next(filter(None, matches), None)
        if match is None:
            raise UserError(
                f"{service.where}: build.packages: no lock file in {folder} has {package}; lock "
                f"files are {', '.join(LOCK_FILES)}"
            )
        versions[package] = match[1]
    return versions


def _packages(
    build: BuildSteps, service: Service, settings: Mapping[str, SettingValue]
) -> Iterator[str]:
    defaults = {name: setting.default for name, setting in service.settings.items()}
    values = {**defaults, **settings}
    for package in build.packages:
        if isinstance(package, str):
            yield package
        elif all(values.get(setting) == value for setting, value in package.when.items()):
            yield package.name


def version_of(
    service: Service,
    settings: Mapping[str, SettingValue],
    filled: Mapping[str, Any],
    testbed: Testbed,
    workspace: Workspace,
) -> tuple[str, str]:
    """Return a service's version, with those of what is inside, and all that its programs said.

    `filled` are its commands, filled in. Without a version of its own it has that of the first
    package of its lock file.
    """
    locked = dict(locked_versions(service, settings))
    match service.version:
        case Version() as how:
            main, said = _ask(service, how, filled["version"], testbed, workspace)
        case None if locked:
            main, said = locked.pop(next(iter(locked))), ""
        case known:
            main, said = known or UNKNOWN_VERSION, ""
    modules = {
        name: _ask(service, how, filled["modules"][name], testbed, workspace)
        for name, how in service.modules.items()
    }
    inside = {name: answer for name, answer in modules.items() if answer[1]}
    versions = {**locked, **{name: version for name, (version, _) in inside.items()}}
    texts = filter(None, [said, *(text for _, text in inside.values())])
    named = [f"{name} {version}" for name, version in versions.items()]
    return ", ".join([main, *named]), "\n".join(texts)


def _ask(
    service: Service,
    version: Version,
    command: Sequence[str],
    testbed: Testbed,
    workspace: Workspace,
) -> tuple[str, str]:
    """Return a version, "unknown" if it can't be made out, and all that the program said."""
    words = without_empty(command)
    said = version_output(words, testbed, workspace) if words else ""
    try:
        match = regex.search(version.pattern, said, timeout=PATTERN_WITHIN_S)
    except TimeoutError:
        raise UserError(f"{service.where}: pattern {version.pattern!r} takes for ever") from None
    return (match[1] if match and match[1] else UNKNOWN_VERSION), said


def shown_lines(log: Path) -> list[str]:
    """Return the first and the last lines of a log that say something new, if there are any."""
    try:
        with open_given_inside(log) as file:
            text = file.read(READ_BYTES)
            end = max(len(text), os.fstat(file.fileno()).st_size - READ_BYTES)
            is_cut = end > len(text)
            later = CUT + _whole_lines_from(file, end) if is_cut else file.read(READ_BYTES)
    except (OSError, UserError):  # UserError: a link, which whoever owns the run has put there
        return []
    return without_repetitions(_lines(text + later))


def refusal_in(folder: Path) -> str:
    """Return the last line of a folder's logs by which nginx says that a limit refuses requests."""
    return _last_line(folder, LIMITING)


def exhaustion_in(folder: Path) -> str:
    """Return the last line of a folder's logs that says that a server has no more of something."""
    return _last_line(folder, EXHAUSTED)


def _last_line(folder: Path, saying: re.Pattern[str]) -> str:
    for log in sorted(folder.glob("*.log")):
        try:
            with open_given_inside(log) as file:
                lines = _lines(end_of(file))
        except (OSError, UserError):
            continue
        if match := next((line for line in reversed(lines) if saying.search(line)), ""):
            return match.strip()
    return ""


def end_of(log: FileIO) -> bytes:
    """Read the last lines of a log."""
    return _whole_lines_from(log, os.fstat(log.fileno()).st_size - READ_BYTES)


def _whole_lines_from(file: FileIO, place: int) -> bytes:
    """Read on from a place, without a line that begins before: half a secret isn't known as one."""
    file.seek(max(0, place - 1))
    read = file.read(READ_BYTES + 1)
    return read if place <= 0 else read.partition(b"\n")[2]


def without_repetitions(lines: Sequence[str]) -> list[str]:
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


OF_NETWORKS = re.compile(r'time="[^"]*" level=warning msg="[^\n]*\bCNI\b')
"""What Podman says of networks of others, whatever it starts."""


def _lines(text: bytes) -> list[str]:
    said = hidden(text.decode("utf-8", "replace")).splitlines()
    lines = [line for line in said if not OF_NETWORKS.match(line)]
    return [line if len(line) <= MOST_LETTERS else f"{line[:MOST_LETTERS]}…" for line in lines]


def other_port_in_use(lines: Sequence[str], own: int) -> int | None:
    """Return the port that a log says is taken; None where that is its own, or isn't named."""
    for line in lines:
        if IN_USE not in line.lower():
            continue
        ports = [int(port) for port in _PORT.findall(line) if int(port) >= LEAST_PORT]
        if ports and own not in ports:
            return ports[-1]
    return None


def hint(lines: Sequence[str], own_port: int) -> str:
    """Return words behind what happened; none where the log shows no cause that is known."""
    if (other := other_port_in_use(lines, own_port)) is None:
        return ""
    return (
        f": it wants port {other} as well as $PORT, and another program has that. All variants run "
        "at the same time: give each a port of its own (--env, or environment of a variant), leave "
        "that listener out, or compare containers (image:), which have a network each"
    )


def refusal_words(said: str, folder: Path, home: Path, program: str) -> str:
    """Return what was said, with the lines of the user's files and what to do.

    `folder` is the service's in the catalogue, `home` where the moved configuration was, and
    `program` names the server and its version.
    """
    text = said
    with suppress(OSError, ValidationError):  # nobody wrote down where the lines come from
        origins = Origins.model_validate_json((folder / ORIGINS).read_bytes())
        text = with_origins(said, str(home / origins.name), origins)
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
