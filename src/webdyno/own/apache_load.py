"""What modules a moved configuration of Apache loads: its own, and those that it needs."""

import re
from collections.abc import Iterator
from pathlib import Path

from webdyno.model.origin import Line
from webdyno.own import apache_modules
from webdyno.own.apache_lines import SYSTEM, ApacheLines
from webdyno.own.apache_modules import BUILT_IN, NOT_HERE, file_of, folder, plain_module
from webdyno.own.moved import MODULES

_LOAD = re.compile(r'(\s*)LoadModule\s+(\w+)\s+"?([^"\s]+)"?\s*$', re.IGNORECASE)


def enabled() -> list[Path]:
    """Give the files by which Debian's Apache loads its modules, where it is set up here."""
    of_modules = SYSTEM / "mods-enabled"
    return [it for kind in ("load", "conf") for it in sorted(of_modules.glob(f"*.{kind}"))]


def loaded(
    lines: list[Line], reader: ApacheLines, changes: list[str], *, is_part: bool
) -> tuple[list[str], list[Line]]:
    """Give lines that load what is needed, and the configuration with its own loaded from here.

    Raise Mistake where this machine lacks a module, and where files would be sent as their source.
    """
    there = [plain_module(found[2]) for line in lines if (found := _LOAD.match(line.text))]
    head: list[str] = []
    if is_part:
        more = apache_modules.needed(lines, reader.wanted.protocol, there)
        head = [text for module in more for text in _load(module)]
        if more:
            why = "its directives need them" if there else "there is no LoadModule"
            changes.append(f"the modules {', '.join(more)} ({why})")
        there += more
    apache_modules.refuse_unserved(lines, there)
    return head, list(_from_here(lines, reader, changes))


def _load(module: str) -> Iterator[str]:
    """Give the lines that load a module of this machine's, unless it is built in."""
    file = file_of(module) or f"mod_{module}.so"
    yield f"<IfModule !{module}_module>"
    yield f"    LoadModule {module}_module {MODULES}/{file}"
    yield "</IfModule>"


def _from_here(lines: list[Line], reader: ApacheLines, changes: list[str]) -> Iterator[Line]:
    """Give the lines, each module loaded from where it is on this machine."""
    lacking: dict[str, str] = {}
    elsewhere: list[str] = []
    for line in lines:
        found = _LOAD.match(line.text)
        if not found:
            yield line
            continue
        indent, name, path = found.groups()
        module = plain_module(name)
        if module in NOT_HERE:
            changes.append(f"left out: {line.text.strip()} ({NOT_HERE[module]})")
            continue
        file = reader.found(path)
        if file and _is_of_this_machine(file):
            yield Line(f"{indent}LoadModule {name} {file}", line.origin)
        elif file:
            changes.append(f"runs {file}, as LoadModule {name} says (it is no module of Apache's)")
            yield Line(f'{indent}LoadModule {name} "{file}"', line.origin)
        elif module in BUILT_IN or file_of(module):
            elsewhere.append(path)
            yield from (Line(indent + text, line.origin) for text in _load(module))
        else:
            lacking[module] = f"{line.origin} loads "
    apache_modules.refuse_missing(lacking)
    if elsewhere:
        named = f"{elsewhere[0]} and {len(elsewhere) - 1} more" if elsewhere[1:] else elsewhere[0]
        changes.append(f"modules of this machine's Apache, not {named}")


def _is_of_this_machine(file: Path) -> bool:
    there = folder()
    return there is not None and file.resolve().is_relative_to(there.resolve())
