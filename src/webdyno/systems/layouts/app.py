"""An application as `webdyno init` finds it, and the files in which layouts look for it."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from glob import has_magic
from pathlib import Path
from typing import Any, NamedTuple

import tomli_w

from webdyno.core.tables import as_list, read_text
from webdyno.core.text import in_one_line

FOR_MEASURING = "onlyformeasuring" * 6
"""A secret where an application wants one: long enough for every framework, and Base64 for those
that read it so."""
BY_HTTPS = {"X-Forwarded-Proto": "https"}
"""What a proxy says of a request: an application that leads to https answers it then."""
PYTHON_QUEUE = 4
"""Connections that Python's own server takes at once without fail: it lets five wait."""


class Hindrance(Enum):
    """What keeps an application from starting as a program."""

    HERE = "this machine: a port that is fixed, a program or an interpreter that isn't here"
    BEHIND = "what it asks: a service, another application, a variable of the user's"


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
    hindrances: frozenset[Hindrance] = frozenset()
    """Of what kinds its doubts are that keep it from starting."""
    wanted: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By doubt: the variables whose values, which only the user knows, leave nothing of it."""
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

    def hindered(self, by: Hindrance, doubt: str, *wanted: str) -> "FoundApp":
        """Return it with a doubt that keeps it from starting, and the variables that would help."""
        return replace(
            self,
            doubts=(*self.doubts, doubt),
            hindrances=self.hindrances | {by},
            wanted={**self.wanted, doubt: wanted} if wanted else self.wanted,
        )


class Login(NamedTuple):
    """What users do before they are measured."""

    by: str
    """What it was found by, as in `the form of /login`."""
    page: str
    """The path of the form, or of what is posted to."""
    steps: tuple[Mapping[str, Any], ...]
    """Entries of `[[login]]`."""
    headers: Mapping[str, str] = {}
    """Of the requests afterwards."""
    doubt: str = ""
    """What of it is a guess."""


BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def project_text(
    app: FoundApp, requests: Mapping[str, int | None], login: Login | None = None
) -> str:
    """Return the text of a `webdyno.toml`, with comments where its user has to look.

    `requests` are paths, each with the status of its response where that has to be written.
    """
    keys = {
        "dir": app.dir if app.dir != "." else None,
        "build": app.build,
        "services": app.services,
        "setup": app.setup,
        "prepare": app.prepare if app.start else None,
        "start": app.start,
        "image": app.image,
        "conf": app.conf,
        "root": app.root,
        "ready_within": app.ready_within_s,
        "environment": app.environment,
    }
    headers = {**app.headers, **(login.headers if login else {})}
    parts = ["[app]", *(f"# {in_one_line(doubt)}" for doubt in app.doubts), *_toml_lines(keys)]
    if load := list(_toml_lines({"connections": app.connections or None, "headers": headers})):
        parts += ["", "[load]", *load]
    for step in login.steps if login else ():
        parts += ["", "[[login]]", *_toml_lines(step)]
    for path, status in requests.items():
        parts += ["", "[[requests]]", *_toml_lines({"path": path, "status": status})]
    return "\n".join(parts) + "\n"


def _toml_lines(pairs: Mapping[str, object], within: str = "") -> Iterator[str]:
    """Write what is given, each value in a line of its own: dotted keys stay in their table."""
    for name, value in pairs.items():
        key = within + (name if BARE_KEY.fullmatch(name) else _toml(name))
        if isinstance(value, Mapping):
            yield from _toml_lines(value, f"{key}.")
        elif value is not None:
            yield f"{key} = {_toml(value)}"


def _toml(value: object) -> str:
    return tomli_w.dumps({"key": value}).strip().removeprefix("key = ")


class Layout(NamedTuple):
    """A way in which people lay out an application."""

    files: str
    """By which it is known, for messages."""
    find_in: Callable[[Path], FoundApp | None]
    """Returns what a folder holds of it; None for nothing."""


MOST_FILES, MOST_FOLDERS = 300, 2_000
MOST_MEMBERS, MOST_WILDCARDS = 100, 3
"""Packages of a workspace that are looked at; parts with `*` of the pattern that names them, one of
them `**`: each multiplies what is listed."""
SKIPPED = {
    *("node_modules", "target", "vendor", "venv", "__pycache__", "test", "tests", "dist", "build"),
    *("docs", "migrations", "spec", "e2e", "fixtures", "testdata", "testutil", "testutils"),
    *("bin", "obj", "deps", "_build", "Migrations"),
}
SAMPLES = re.compile(r"(?:\w+[_-])?(?:examples?|samples|demos?|benchmarks)")
"""Folders whose applications aren't the one that is around them."""
SOURCES = {
    *(".py", ".js", ".mjs", ".cjs", ".ts", ".go", ".rb", ".ru", ".rs"),
    *(".java", ".kt", ".php", ".ex", ".exs", ".cs", ".cpp", ".cc", ".cxx"),
}

OF_TESTS = re.compile(
    r"_test\.(?:go|py)$|\.(?:test|spec)\.[cm]?[jt]s$|^(?:test_[^/]*|tests|conftest)\.py$"
)
"""Names of files of tests, as languages have them next to sources."""
EXPRESS_STARTS = "bin/www"
"""The source by which an application of Express' generator starts."""


def first_of(folder: Path, *names: str) -> str | None:
    return next((name for name in names if (folder / name).is_file()), None)


def line_of(folder: Path, path: Path, text: str, position: int) -> str:
    """Return where a position of a file's text is: `src/settings.py:12`."""
    return f"{path.relative_to(folder)}:{text.count(chr(10), 0, position) + 1}"


def first_place(
    folder: Path, pattern: re.Pattern[str], endings: Collection[str] | None = None
) -> str:
    """Return where sources match first: `src/settings.py:12`; empty for nowhere."""
    for path in sources(folder, endings or SOURCES):
        text = read_text(path) or ""
        if match := pattern.search(text):
            return line_of(folder, path, text, match.start())
    return ""


def matching(folder: Path, patterns: object) -> list[Path]:
    """List the members of a workspace, which it names by patterns such as `packages/*`."""
    members: list[Path] = []
    for pattern in as_list(patterns):
        text = str(pattern).rstrip("/")
        if text.startswith(("/", "!")) or ".." in text or not text.strip("./"):
            continue
        if text.count("**") > 1 or sum(map(has_magic, text.split("/"))) > MOST_WILDCARDS:
            continue
        try:
            members += sorted(folder.glob(text))
        except ValueError:
            continue
    return members[:MOST_MEMBERS]


def sources(folder: Path, endings: Collection[str] = SOURCES) -> list[Path]:
    """List files of source text, those at the top first; hidden folders and tests are excluded."""
    texts: list[Path] = []
    folders, looked_at = [folder], 0
    while folders and len(texts) < MOST_FILES and looked_at < MOST_FOLDERS:
        current = folders.pop(0)
        looked_at += 1
        inside = sorted(current.iterdir()) if current.is_dir() else []
        texts += [path for path in inside if path.suffix in endings and _is_source(path)]
        at_top = current == folder
        inside = [path for path in inside if not (at_top and SAMPLES.fullmatch(path.name))]
        folders += filter(is_of_interest, inside)
    of_express = folder / EXPRESS_STARTS
    if ".js" in endings and of_express.is_file():
        texts.insert(0, of_express)
    return texts[:MOST_FILES]


def _is_source(path: Path) -> bool:
    return path.is_file() and not OF_TESTS.search(path.name)


def is_of_interest(path: Path) -> bool:
    """Whether it is a folder in which an application's own files may be."""
    hidden = path.name.startswith(".") or path.name in SKIPPED
    return path.is_dir() and not path.is_symlink() and not hidden
