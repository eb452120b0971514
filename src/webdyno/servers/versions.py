"""What version a service has: what it says itself, and its modules; what its lock file pins."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import regex

from webdyno.core.errors import UserError
from webdyno.core.files import checked_files
from webdyno.core.service import BuildSteps, Service, Version
from webdyno.core.setting import SettingValue
from webdyno.host.this_machine import Testbed
from webdyno.host.workspace import Workspace
from webdyno.servers.commands import version_output
from webdyno.servers.render import without_empty

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


def locked_versions(service: Service, settings: Mapping[str, SettingValue]) -> Mapping[str, str]:
    """Give the versions of a service's packages, by name; none where it has nothing to build.

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
        matches = (_match(package, pattern, text) for pattern, text in locks)
        version = next(filter(None, matches), None)
        if version is None:
            raise UserError(
                f"{service.where}: build.packages: no lock file in {folder} has {package}; lock "
                f"files are {', '.join(LOCK_FILES)}"
            )
        versions[package] = version
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


def _match(package: str, pattern: str, text: str) -> str | None:
    match = re.search(pattern.replace(PACKAGE, re.escape(package)), text)
    return match[1] if match else None


PATTERN_WITHIN_S = 5.0
UNKNOWN = "unknown"


def version_of(
    service: Service,
    settings: Mapping[str, SettingValue],
    filled: Mapping[str, Any],
    testbed: Testbed,
    workspace: Workspace,
) -> tuple[str, str]:
    """Give a service's version, with those of what is inside, and all that its programs said.

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
            main, said = known or UNKNOWN, ""
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
    """Give a version, "unknown" if it can't be made out, and all that the program said."""
    words = without_empty(command)
    said = version_output(words, testbed, workspace) if words else ""
    try:
        match = regex.search(version.pattern, said, timeout=PATTERN_WITHIN_S)
    except TimeoutError:
        raise UserError(f"{service.where}: pattern {version.pattern!r} takes for ever") from None
    return (match[1] if match and match[1] else UNKNOWN), said
