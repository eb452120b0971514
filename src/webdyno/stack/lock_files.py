"""Versions of the packages that a program is built with, as its lock file has them."""

import re
from collections.abc import Iterator, Mapping

from webdyno.model.errors import UserError
from webdyno.model.files import checked_files
from webdyno.model.service import BuildSteps, Service
from webdyno.model.setting import SettingValue

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
    folder = service.beside(service.build.program)
    locks = [
        (LOCK_FILES[path.name], path.read_text(encoding="utf-8"))
        for path in checked_files(folder).values()
        if path.name in LOCK_FILES
    ]
    found = {}
    for package in _packages(service.build, service, settings):
        matches = (_match(package, pattern, text) for pattern, text in locks)
        version = next(filter(None, matches), None)
        if version is None:
            raise UserError(
                f"{service.where}: build.packages: no lock file in {folder} has {package}; lock "
                f"files are {', '.join(LOCK_FILES)}"
            )
        found[package] = version
    return found


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
