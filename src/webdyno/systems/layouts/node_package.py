"""A package.json, what manages its packages, and the members of a workspace."""

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from webdyno.core.tables import is_table, json_table, read_text, table
from webdyno.systems.layouts.app import first_of, matching

PACKAGE = "package.json"
INSTALLS = {
    "npm": "install --no-audit --no-fund --loglevel=error",
    "pnpm": "install --prefer-frozen-lockfile",
    "yarn": "install",
    "bun": "install",
}
NPM_LOCKED = "ci --no-audit --no-fund --loglevel=error"
"""What npm installs by where there is a lock file, which it then leaves as it is."""
LOCK_FILES = {
    "pnpm-lock.yaml": "pnpm",
    "yarn.lock": "yarn",
    "bun.lock": "bun",
    "bun.lockb": "bun",
    "package-lock.json": "npm",
}
OF_LOCK = re.compile(r'"packages":\s{0,9}\{\s{0,9}"":\s{0,9}\{')
"""Before what a lock file of npm's is of."""
LOCKED_BY = re.compile(r"^lockfileVersion:\s*['\"]?(\d+)", re.MULTILINE)
PNPM_OF_LOCK = {"5": "7", "6": "8", "9": "9"}
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
        """Commands by name."""
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
    is_locked: bool = False

    @property
    def install(self) -> str:
        """The command that installs, as the lock file has it where there is one."""
        by_lock = self.is_locked and self.name == "npm"
        return f"{self.call} {NPM_LOCKED if by_lock else INSTALLS[self.name]}"

    def run(self, script: str) -> str:
        return f"{self.call} run {script}" + " --silent" * (self.name == "npm")

    @property
    def build(self) -> str:
        return f"{self.call} run build"

    def run_of(self, name: str, script: str) -> str:
        """Return the command that runs a script of a workspace's package."""
        return f"{self.call} {MEMBER[self.name].format(name=name, script=script)}"


def is_of_another(path: Path, folder: Path) -> bool:
    """Whether a source is of a package that the one around it doesn't name, such as a front."""
    first = path.relative_to(folder).parts[0]
    is_package = (folder / first / PACKAGE).is_file()
    return is_package and first not in (read_text(folder / PACKAGE) or "")


def package_in(folder: Path) -> Package | None:
    """Read a folder's package.json, empty where it isn't one; None where there is none."""
    text = read_text(folder / PACKAGE)
    return None if text is None else Package(folder, json_table(text))


def manager_of(folder: Path, package: Package) -> Manager:
    """Find the manager by the package's word, or the lock file; npx gets one that isn't here."""
    match = VERSIONED.match(str(package.data.get("packageManager", "")))
    lock = first_of(folder, *LOCK_FILES)
    by_lock = LOCK_FILES[lock] if lock else "npm"
    name = match["name"] if match and match["name"] in INSTALLS else by_lock
    is_locked = lock is not None and LOCK_FILES[lock] == name and _agrees(folder / lock, package)
    if shutil.which(name):
        return Manager(name, name, is_locked)
    by_word = match["version"] if match and match["name"] == name else None
    version = by_word or (_version_of_pnpm(folder) if name == "pnpm" else None)
    versioned = f"{name}@{version}" if version else name
    # The registry's "yarn" is the first generation of it alone.
    is_later_yarn = name == "yarn" and (folder / ".yarnrc.yml").is_file()
    call = "corepack yarn" if is_later_yarn else f"npx --yes {versioned}"
    return Manager(name, call, is_locked)


def _agrees(lock: Path, package: Package) -> bool:
    """Whether a lock file of npm's is of what the package wants now: else `npm ci` refuses it."""
    text = read_text(lock) or ""
    begin = OF_LOCK.search(text)
    top = _first_table(text[begin.end() - 1 :]) if begin else {}
    kinds = ("dependencies", "devDependencies")
    return not top or all(table(top, kind) == table(package.data, kind) for kind in kinds)


def _first_table(text: str) -> Mapping[str, Any]:
    """Return the table that a text begins with: the rest of a long file isn't read."""
    try:
        value = json.JSONDecoder().raw_decode(text)[0]
    except (ValueError, RecursionError):
        return {}
    return value if is_table(value) else {}


def _version_of_pnpm(folder: Path) -> str | None:
    """Return the version that wrote a lock file, since later ones refuse what it allowed."""
    written = LOCKED_BY.search(read_text(folder / "pnpm-lock.yaml") or "")
    return PNPM_OF_LOCK.get(written[1]) if written else None


def called_by(manager: Manager, command: str) -> str:
    """Return a command that calls the manager as it can be called here."""
    return re.sub(
        rf"^((?:export \w+=\S+ && )?(?:\w+=\S+ )*){manager.name} ",
        rf"\g<1>{manager.call} ",
        command,
    )


def members_of(folder: Path, package: Package) -> Iterator[Package]:
    """Return the packages of a workspace."""
    workspaces = package.data.get("workspaces")
    patterns = workspaces.get("packages") if is_table(workspaces) else workspaces
    if text := read_text(folder / "pnpm-workspace.yaml"):
        patterns = re.findall(r"""^[ \t]*-[ \t]*["']?([\w@./*-]+)["']?\s*$""", text, re.MULTILINE)
    for path in matching(folder, patterns):
        if member := package_in(path):
            yield member


BUNDLERS = {"laravel-vite-plugin", "laravel-mix", "@symfony/webpack-encore", "vite-plugin-symfony"}
"""By which an application of PHP has files of its pages made."""
MAKES_ASSETS = ("build", "production", "prod")


def assets_of_php(folder: Path) -> str | None:
    """Return what makes the files that pages of Laravel or Symfony name."""
    package = package_in(folder)
    if package is None or not BUNDLERS & package.needs:
        return None
    manager = manager_of(folder, package)
    script = next((name for name in MAKES_ASSETS if name in package.scripts), None)
    return f"{manager.install} && {manager.call} run {script}" if script else None


def assets_of_rails(folder: Path) -> str | None:
    """Return what makes the client in front of Rails; its own bundlers are called by Rails."""
    package = package_in(folder)
    if package is None or not (package.needs or "postinstall" in package.scripts):
        return None
    manager = manager_of(folder, package)
    is_built = "build" in package.scripts.get("postinstall", "")
    builds = "build" in package.scripts and not is_built
    return f"{manager.install} && {manager.build}" if builds else manager.install
