"""Packages of Node: which manager installs them, and those of a workspace."""

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from webdyno.systems.layouts.files import first_of, matching, read_text, table

PACKAGE = "package.json"
INSTALLS = {
    # Not "npm ci": it fails in revisions without a lock file, which this one minds as well.
    "npm": "install --no-audit --no-fund --loglevel=error",
    "pnpm": "install --prefer-frozen-lockfile",
    "yarn": "install",
    "bun": "install",
}
LOCK_FILES = {
    "pnpm-lock.yaml": "pnpm",
    "yarn.lock": "yarn",
    "bun.lock": "bun",
    "bun.lockb": "bun",
    "package-lock.json": "npm",
}
MEMBER = {
    "npm": "run --silent {script} --workspace {name}",
    "pnpm": "--filter {name} run {script}",
    "yarn": "workspace {name} run {script}",
    "bun": "run --filter {name} {script}",
}
VERSIONED = re.compile(r"(?P<name>\w+)@(?P<version>[\w.-]+)")


class Package(NamedTuple):
    """A package.json."""

    folder: Path
    data: Mapping[str, Any]

    @property
    def name(self) -> str:
        return str(self.data.get("name", self.folder.name))

    @property
    def scripts(self) -> dict[str, str]:
        """Give the commands, by name."""
        scripts = table(self.data, "scripts")
        return {name: value for name, value in scripts.items() if isinstance(value, str)}

    @property
    def needs(self) -> set[str]:
        return {*table(self.data, "dependencies"), *table(self.data, "devDependencies")}


class Manager(NamedTuple):
    """What installs packages, and runs their scripts."""

    name: str
    call: str
    """How it is called here."""

    @property
    def install(self) -> str:
        return f"{self.call} {INSTALLS[self.name]}"

    def run(self, script: str) -> str:
        return f"{self.call} run {script}" + " --silent" * (self.name == "npm")

    @property
    def build(self) -> str:
        return f"{self.call} run build"

    def run_of(self, name: str, script: str) -> str:
        """Give the command that runs a script of a workspace's package."""
        return f"{self.call} {MEMBER[self.name].format(name=name, script=script)}"


def package_in(folder: Path) -> Package | None:
    """Read a folder's package.json, empty where it isn't one; None where there is none."""
    text = read_text(folder / PACKAGE)
    if text is None:
        return None
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        data = {}
    return Package(folder, data if isinstance(data, dict) else {})


def manager_of(folder: Path, package: Package) -> Manager:
    """Find the manager by the package's word, or the lock file; npx gets one that isn't here."""
    match = VERSIONED.match(str(package.data.get("packageManager", "")))
    lock = first_of(folder, *LOCK_FILES)
    by_lock = LOCK_FILES[lock] if lock else "npm"
    name = match["name"] if match and match["name"] in INSTALLS else by_lock
    if shutil.which(name):
        return Manager(name, name)
    versioned = f"{name}@{match['version']}" if match and match["name"] == name else name
    # The registry's "yarn" is the first generation of it alone.
    is_later_yarn = name == "yarn" and (folder / ".yarnrc.yml").is_file()
    return Manager(name, "corepack yarn" if is_later_yarn else f"npx --yes {versioned}")


def members_of(folder: Path, package: Package) -> Iterator[Package]:
    """Give the packages of a workspace."""
    workspaces = package.data.get("workspaces")
    patterns = workspaces.get("packages") if isinstance(workspaces, dict) else workspaces
    if text := read_text(folder / "pnpm-workspace.yaml"):
        patterns = re.findall(r"""^[ \t]*-[ \t]*["']?([\w@./*-]+)["']?\s*$""", text, re.MULTILINE)
    for path in matching(folder, patterns):
        if member := package_in(path):
            yield member
