"""Has Caddy turn a Caddyfile into JSON, after a look at what it imports and at its variables."""

import glob
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from webdyno.model.format import listed
from webdyno.model.mistake import Mistake
from webdyno.model.origin import Origin
from webdyno.model.text import SECRET
from webdyno.own.asking import ask, program_path, readable
from webdyno.own.moved import Wanted
from webdyno.own.variables import Variables

Json = dict[str, Any]

VARIABLE = re.compile(r"\{\$(?P<name>[A-Za-z_]\w*)(?::(?P<default>[^}]*))?\}")
IMPORT = re.compile(r"(?m)^(?P<before>[ \t]*import[ \t]+)(?P<path>\"[^\"\n]*\"|[^\s\"]+)")
SNIPPET = re.compile(r"(?m)^[ \t]*\(([^)\n]+)\)[ \t]*\{")
REMEDY = (
    "other versions and plugins know other words: install what has them, take the lines out, or "
    "measure the image that has them (image:NAME)"
)


def adapted(wanted: Wanted, changes: list[str]) -> Json:
    """Give the configuration as JSON; raise Mistake, in Caddy's words, where it isn't right."""
    caddy = program_path("caddy")
    secrets = {name: f"{{env.{name}}}" for name, it in wanted.environment.items() if _hides(it)}
    variables = Variables({**wanted.environment, **secrets})
    _look_through(wanted, wanted.file, None, 0, variables, set())
    unset = [f"{name} ({origin})" for name, origin in variables.unset.items()]
    with readable(wanted, _with_whole_imports(wanted)) as file:
        words: list[str | Path] = [caddy, "adapt", "--adapter", "caddyfile", "--config", file]
        told = ask(wanted, words, variables.values)
        if told.code:
            lines = told.complained.replace(str(file), str(wanted.file)).strip().splitlines()
            said = lines[-1].removeprefix("Error: ") if lines else "nothing"
            raise Mistake(f"caddy says: {said}{_why(wanted, caddy, said, unset)}")
    if unset:
        changes.append(f"empty, since they have no value: {listed(unset)}")
    try:
        found = json.loads(told.printed.replace(f"{file.parent}/", f"{wanted.file.parent}/"))
    except ValueError:
        raise Mistake(f"{wanted.file}: what it becomes is more than Caddy can print here") from None
    return found if isinstance(found, dict) else {}


def _hides(text: str) -> bool:
    return bool(SECRET.search(text))


def _why(wanted: Wanted, caddy: str, said: str, unset: list[str]) -> str:
    """Give what may be the reason, and what can be done."""
    if unset:
        return f"; variables have no value: {listed(unset)}; give each one, as in --env NAME=VALUE"
    if "unrecognized" in said or "not registered" in said:
        version = ask(wanted, [caddy, "version"], {}).printed.split()
        return f"; this is caddy {version[0] if version else 'of unknown version'}: {REMEDY}"
    return ""


def _look_through(
    wanted: Wanted,
    file: Path,
    named: Origin | None,
    depth: int,
    variables: Variables,
    snippets: set[str],
) -> None:
    """Note variables without a value; raise Mistake for files that are too many, or too large."""
    lines = list(wanted.files.lines(file, named, depth))
    for line in lines:
        if found := SNIPPET.match(line.text):
            snippets.add(found[1].strip())
    for line in lines:
        if line.origin is None or line.text.lstrip().startswith("#"):
            continue
        text = variables.filled(line.text, line.origin, VARIABLE)
        for path in _imported(text, snippets):
            there = os.path.exists(file.parent / path)  # noqa: PTH110 (Path's raises)
            if not there and not glob.has_magic(path):
                continue  # Caddy says so, or knows it as a snippet
            for each in wanted.files.included(path, [file.parent], line.origin):
                if not each.is_dir():
                    _look_through(wanted, each, line.origin, depth + 1, variables, snippets)


def _imported(text: str, snippets: set[str]) -> Iterator[str]:
    if (found := IMPORT.match(text)) and (path := found["path"].strip('"')) not in snippets:
        yield path


def _with_whole_imports(wanted: Wanted) -> str:
    """Give the text with imports that can be read from anywhere."""
    text = wanted.files.text(wanted.file)
    snippets = {it.strip() for it in SNIPPET.findall(text)}

    def whole(found: re.Match[str]) -> str:
        path = found["path"].strip('"')
        if path in snippets or path.startswith(("/", "{")):
            return found[0]
        return f'{found["before"]}"{wanted.file.parent / path}"'

    return IMPORT.sub(whole, text)
