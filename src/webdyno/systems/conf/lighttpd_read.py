"""Reads a configuration of lighttpd, which prints all of it, includes and variables filled in."""

import glob
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from webdyno.core.errors import UserError
from webdyno.core.service import Origin
from webdyno.core.text import SECRET
from webdyno.systems.conf.relocation import RelocationRequest
from webdyno.systems.conf.server_program import program_path, readable, run_reader

_CLOSES = re.compile(r"^(\s*)\}( # end of .*)?$")
_CONDITION = re.compile(r'^(\s*(?:else )?\$\w+\["[^"]*"\] \S+ )"(.*)" \{$')
_BLOCK_NUMBER = re.compile(r"^\s*# block \d+$")
_SETS = re.compile(r"^(\s*)([a-z][\w.-]*)\s*=\s(.*)$")
_INCLUDE = re.compile(r'(?m)^([ \t]*include[ \t]+")(?!/)')
_FOLDER = re.compile(r'(?m)^([ \t]*var\.conf_dir[ \t]*=)[ \t]*"(/[^"\n]*)"')
_IN_FOLDER = re.compile(r'(?m)^[ \t]*include[ \t]+(?:var\.)?conf_dir[ \t]*\+[ \t]*"/([^"*?\n]+)"')
"""By the configuration that comes with lighttpd, which Red Hat's is made of."""
_INCLUDED = re.compile(r'[ \t]*include[ \t]+"([^"]+)"')
_SHELL = re.compile(r"[ \t]*include_shell[ \t]+(.*)")
_TIME = re.compile(r"(?m)^[\d-]+ [\d:]+: (?:\([\w.]+\) )?")
_GIVEN = {"var.CWD", "var.PID"}
"""Variables that lighttpd makes itself."""


@dataclass
class Statement:
    """A setting, or a line that begins or ends a block."""

    lines: list[str]
    key: str = ""
    """What is set; empty for the line of a block."""

    @property
    def value(self) -> str:
        """What it is set to, over all its lines."""
        match = _SETS.match(self.lines[0])
        return "\n".join([match[3] if match else self.lines[0], *self.lines[1:]])

    @property
    def text(self) -> str:
        """The value of a text, without its quotes."""
        return self.value.strip('"')

    @property
    def condition(self) -> str:
        """The condition of a block that begins here; empty where none does."""
        line = self.lines[0].strip()
        return line if line.endswith("{") and not self.key else ""

    @property
    def ends(self) -> bool:
        return not self.key and bool(_CLOSES.match(self.lines[0]))


def statements(request: RelocationRequest, changes: list[str]) -> list[Statement]:
    """Give the statements of a configuration; raise UserError, in lighttpd's words, if it is wrong.

    What `include_shell` names is run for that, as the user as whom the server runs.
    """
    shells = list(_shells(request, request.file))
    changes += [f"runs {command}, as include_shell says" for _, command in shells]
    runs = [f"{place}: include_shell {command}" for place, command in shells]
    text = request.files.text(request.file)
    marks = {
        name: f"@webdyno-{name}@" for name, value in request.given.items() if SECRET.search(value)
    }
    ours = _with_includes_next_to(request, text, changes)
    whole = _INCLUDE.sub(rf"\g<1>{request.file.parent}/", ours)
    with readable(request, whole, differs=ours != text) as file:
        words: list[str | Path] = [program_path("lighttpd"), "-p", "-f", file]
        reader = run_reader(request, words, {**request.environment, **marks}, runs)
        complained = reader.complained.replace(str(file), str(request.file))
    complaints = [line for line in _TIME.sub("", complained).splitlines() if "WARNING" not in line]
    if reader.code:
        raise UserError(f"lighttpd says: {'; '.join(complaints) or 'nothing'}")
    printed = reader.printed
    for name, mark in marks.items():
        printed = printed.replace(mark, f'" + env.{name} + "')
    return list(_statements(printed.splitlines()))


def _with_includes_next_to(request: RelocationRequest, text: str, changes: list[str]) -> str:
    """Give the text of a folder that was copied with what it includes from where it was."""
    folder = request.file.parent
    named = _FOLDER.search(text)
    if not named or any(Path(named[2], pattern).exists() for pattern in _IN_FOLDER.findall(text)):
        return text
    changes.append(f'{named[1].strip()} "{folder}", not "{named[2]}", where it includes nothing')
    return f"{text[: named.start(2)]}{folder}{text[named.end(2) :]}"


def _shells(
    request: RelocationRequest, file: Path, named: Origin | None = None, depth: int = 0
) -> Iterator[tuple[Origin | None, str]]:
    """Give the commands of `include_shell`, and where each stands."""
    for line in request.files.lines(file, named, depth):
        if match := _SHELL.match(line.text):
            yield line.origin, match[1].strip()
        elif (match := _INCLUDED.match(line.text)) and line.origin:
            exists = os.path.lexists(request.file.parent / match[1])
            if not exists and not glob.has_magic(match[1]):
                continue  # lighttpd says so
            for each in request.files.included(match[1], [request.file.parent], line.origin):
                yield from _shells(request, each, line.origin, depth + 1)


def _statements(lines: list[str]) -> Iterator[Statement]:
    inner = iter(lines[1:-1])  # without `config {` and its end
    for line in inner:
        match = _SETS.match(line)
        if not line.strip() or _BLOCK_NUMBER.match(line):
            continue
        if match is None:
            ended = _CLOSES.match(line)
            yield Statement([f"{ended[1]}}}" if ended else _quoted(line)])
            continue
        whole = [line]
        if match[3] == "(":
            for more in inner:
                whole.append(more)
                if more == f"{match[1]})":
                    break
        if match[2] not in _GIVEN:
            yield Statement(whole, match[2])


def _quoted(line: str) -> str:
    """Write a condition with its quotes escaped, which lighttpd prints as they are."""
    match = _CONDITION.match(line)
    if match is None:
        return line
    plain = match[2].replace('" + env.', "\0").replace(' + "', "\1")
    escaped = plain.replace('"', '\\"').replace("\0", '" + env.').replace("\1", ' + "')
    return f'{match[1]}"{escaped}" {{'
