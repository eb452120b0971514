"""Versions of the packages that a program is built with, as its lock file has them."""

import re
from collections.abc import Mapping

from webdyno.model.errors import UserError
from webdyno.model.files import checked_files
from webdyno.model.service import Service

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


def locked_versions(service: Service) -> Mapping[str, str]:
    """Give the versions of a service's packages, by name; none where it has nothing to build.

    Raise UserError for a package that no lock file of its program has.
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
    for package in service.build.packages:
        matches = (_match(package, pattern, text) for pattern, text in locks)
        version = next(filter(None, matches), None)
        if version is None:
            raise UserError(
                f"{service.where}: build.packages: no lock file in {folder} has {package}; lock "
                f"files are {', '.join(LOCK_FILES)}"
            )
        found[package] = version
    return found


def _match(package: str, pattern: str, text: str) -> str | None:
    match = re.search(pattern.replace(PACKAGE, re.escape(package)), text)
    return match[1] if match else None
