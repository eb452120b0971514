"""Reads the lines of a configuration of Apache: includes in their place, variables filled in."""

import glob
import os
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from webdyno.model.mistake import Mistake
from webdyno.model.origin import Line, Origin
from webdyno.model.text import SECRET
from webdyno.own.apache_modules import BUILT_IN, DIRECTIVES, plain_module
from webdyno.own.moved import FOLDER, Wanted
from webdyno.own.reading import MOST_FILES
from webdyno.own.variables import Variables

SYSTEM = Path("/etc/apache2")
"""Where Debian's Apache looks for relative paths."""
DEBIANS = {
    "APACHE_RUN_DIR": FOLDER,
    "APACHE_LOCK_DIR": FOLDER,
    "APACHE_LOG_DIR": FOLDER,
    "APACHE_PID_FILE": f"{FOLDER}/httpd.pid",
    "APACHE_LOG_ARGUMENTS": "",
    "APACHE_RUN_USER": "www-data",
    "APACHE_RUN_GROUP": "www-data",
}
"""What its /etc/apache2/envvars gives to configurations."""

_INCLUDE = re.compile(r'\s*Include(Optional)?\s+"?([^"]+?)"?\s*$', re.IGNORECASE)
_CONDITION = re.compile(
    r"\s*<(/?)If(Define|Module)\b\s*(!?)\s*\"?([^\s\">]*)\"?\s*>", re.IGNORECASE
)
_DEFINE = re.compile(r'\s*(Un)?Define\s+(\w+)\s*("[^"]*"|\S*)\s*$', re.IGNORECASE)
_SERVER_ROOT = re.compile(r'\s*ServerRoot\s+"?([^"\s]+)', re.IGNORECASE)
_LOAD = re.compile(r"\s*LoadModule\s+(\w+)", re.IGNORECASE)
_MACRO = re.compile(r"\s*<Macro\s+\S+\s+([^>]*)>", re.IGNORECASE)


class ApacheLines:
    """The lines of one configuration as Apache would see them."""

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        self.missing: dict[Origin, Mistake] = {}
        """Includes of what can't be found, by their lines: for who needs these."""
        beside = self.wanted.file.parent
        red_hats = [beside.parent] if beside.name == "conf" else []
        begin = [self.wanted.folder] if self.wanted.folder else []
        self.roots = [*red_hats, beside, *begin, SYSTEM]
        """Where relative paths are looked for, the likeliest first."""
        given = self.wanted.given
        self._values = {**DEBIANS, **given}
        self._variables = Variables(self._values)
        self._kept = {name for name, text in given.items() if SECRET.search(text)}
        """Variables that Apache itself fills in."""
        self._defined: set[str] = set()
        self._loaded: set[str] = set()
        self._conditions: list[tuple[bool | None, Origin, str]] = []

    def all(self, files: Iterable[Path]) -> list[Line]:
        """Give the lines of files, one after the other; raise Mistake where they can't be read."""
        lines = [line for file in files for line in self._lines(file)]
        if self._conditions:
            _, origin, kind = self._conditions[-1]
            section = f"If{kind.capitalize()}"
            raise Mistake(f"{origin}: <{section}> has no end; close it with </{section}>")
        self._variables.demand_all()
        return lines

    def found(self, path: str) -> Path | None:
        """Give the file or folder that a path means; None where there is none."""
        return next((it for root in self.roots if _is_there(it := root / path)), None)

    def _lines(self, file: Path, named: Origin | None = None, depth: int = 0) -> Iterator[Line]:
        for text, origin in _joined(self.wanted.files.lines(file, named, depth)):
            if found := _CONDITION.match(text):
                if self._condition(found, origin):
                    yield Line(text, origin)
                continue
            if not self._is_read():
                continue
            if found := _MACRO.match(text):
                self._kept |= set(re.findall(r"\w+", found[1]))
            line = Line(self._variables.filled(text, origin, own=self._kept), origin)
            self._note(line.text)
            if not (include := _INCLUDE.match(line.text)):
                yield line
                continue
            try:
                included = self._included(include[2], bool(include[1]), origin)
            except Mistake as mistake:
                self.missing[origin] = mistake
                yield line
                continue
            for each in included:
                yield from self._lines(each, origin, depth + 1)

    def _note(self, text: str) -> None:
        """Remember what a line says about those that follow."""
        if found := _DEFINE.match(text):
            undoes, name, value = found[1], found[2], found[3].strip('"')
            if any(holds is None for holds, *_ in self._conditions):
                self._kept.add(name)
            elif undoes:
                self._values.pop(name, None)
                self._defined.discard(name)
            else:
                self._values[name] = value
                self._defined.add(name)
        elif found := _SERVER_ROOT.match(text):
            if os.path.isdir(found[1]):  # noqa: PTH112 (Path's raises)
                self.roots.insert(0, Path(found[1]))
        elif found := _LOAD.match(text):
            self._loaded.add(plain_module(found[1]))

    def _condition(self, found: re.Match[str], origin: Origin) -> bool:
        """Open or close a section; whether its line stays."""
        ends, kind, isnt, name = found[1], found[2].lower(), bool(found[3]), found[4]
        if ends:
            if not self._conditions or self._conditions[-1][2] != kind:
                raise Mistake(f"{origin}: </If{found[2]}> closes no <If{found[2]}>")
            closed, *_ = self._conditions.pop()
            return closed is not False and self._is_read()
        holds = self._is_defined(name) if kind == "define" else self._is_loaded(name)
        stays = self._is_read()
        self._conditions.append((None if holds is None else holds != isnt, origin, kind))
        return stays and self._is_read()

    def _is_read(self) -> bool:
        return all(holds is not False for holds, *_ in self._conditions)

    def _is_defined(self, name: str) -> bool | None:
        return None if name in self._kept else name in self._defined

    def _is_loaded(self, name: str) -> bool | None:
        """Whether a module is there; None where nobody knows before Apache starts."""
        module = plain_module(name)
        if module in self._loaded or module in BUILT_IN:
            return True
        return False if self._loaded and module in DIRECTIVES else None

    def _included(self, pattern: str, is_optional: bool, origin: Origin) -> list[Path]:
        """Give the files that an include means, a folder's below it included."""
        if "${" in pattern:
            return []  # its variables are demanded in the end
        if is_optional and not glob.has_magic(pattern) and not self.found(pattern):
            return []
        found = self.wanted.files.included(pattern, self.roots, origin)
        if not found and not is_optional:
            looked = " or ".join(dict.fromkeys(str(root / pattern) for root in self.roots))
            raise Mistake(
                f"{origin} includes {pattern}, and there is no {looked}; copy these files there, "
                "or leave the line out"
            )
        below = islice((each for it in found for each in _files_of(it)), MOST_FILES + 1)
        return list(below)


def _files_of(path: Path) -> Iterator[Path]:
    if path.is_dir():
        yield from sorted(it for it in islice(path.rglob("*"), MOST_FILES + 1) if it.is_file())
    else:
        yield path


def _joined(lines: Iterable[Line]) -> Iterator[tuple[str, Origin]]:
    """Join continued lines, and leave out comments and empty lines."""
    parts: list[str] = []
    first: Origin | None = None
    for text, origin in lines:
        first = first or origin
        if text.endswith("\\"):
            parts.append(text[:-1])
            continue
        whole = "".join([*parts, text])
        if first and whole.strip() and not whole.lstrip().startswith("#"):
            yield whole, first
        parts, first = [], None
    whole = "".join(parts)
    if first and whole.strip() and not whole.lstrip().startswith("#"):
        yield whole, first


def _is_there(path: Path) -> bool:
    try:
        return os.path.lexists(path)
    except ValueError:  # there is a NUL in it
        return False
