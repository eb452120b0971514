"""Applications known by package.json: with npm, pnpm, yarn or bun, alone or in a workspace."""

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from webdyno.own.found import MOST_PATHS, FoundApp, first_of, read_text

PACKAGE = "package.json"
MOST_PACKAGES = 100
INSTALLS = {
    # Not "npm ci": it fails in revisions without a lock file, which this one minds as well.
    "npm": "npm install --silent",
    "pnpm": "pnpm install --prefer-frozen-lockfile",
    "yarn": "yarn install",
    "bun": "bun install",
}
LOCK_FILES = {
    "pnpm-lock.yaml": "pnpm",
    "yarn.lock": "yarn",
    "bun.lock": "bun",
    "bun.lockb": "bun",
    "package-lock.json": "npm",
}
OF_MEMBER = {
    "npm": "npm start --silent --workspace {name}",
    "pnpm": "pnpm --filter {name} start",
    "yarn": "yarn workspace {name} start",
    "bun": "bun run --filter {name} start",
}
DIRECT = {"node", "bun", "deno", *INSTALLS}
"""Programs that need no script's PATH; a shell whose line is one command becomes it."""
NEXT = re.compile(r"\bnext start\b")
LISTENS_BY_ITSELF = re.compile(
    r"\b(?:next start|nuxt|\.output/server|react-router-serve|remix-serve)\b"
)
NODE_ENV = (
    "NODE_ENV isn't set to production, so libraries may run as in development; "
    'write start = "NODE_ENV=production …"'
)
NEXT_IDS = (
    "Next writes an id of the build into its pages, so those of two revisions differ: "
    "give generateBuildId a fixed one, or use --ignore"
)


def node(folder: Path) -> FoundApp | None:
    """Read the scripts of package.json, and those of a workspace's packages."""
    package = _package(folder)
    if package is None:
        return None
    manager = _manager(folder, package)
    scripts = _table(package, "scripts")
    members = dict(_members(folder, package))
    build = _build(package, manager, bool(members))
    app = FoundApp(PACKAGE, _start(folder, package, manager), build)
    if app.start is None:
        return _of_members(app, members, manager)
    said = " ".join(str(it) for table in (scripts, *_scripts_of(members)) for it in table.values())
    return _completed(app, folder, manager, said)


def _of_members(app: FoundApp, members: Mapping[str, dict[str, Any]], manager: str) -> FoundApp:
    """Choose among a workspace's packages those that have a start script."""
    starts = {
        name: replace(app, start=OF_MEMBER[manager].format(name=name), heeds_port=_heeds(it))
        for name, it in members.items()
        if isinstance(_table(it, "scripts").get("start"), str)
    }
    if len(starts) == 1:
        return next(iter(starts.values()))
    several = f"{PACKAGE} has several packages that start" if starts else ""
    return replace(app, several=several, choices=starts)


def _completed(app: FoundApp, folder: Path, manager: str, said: str) -> FoundApp:
    doubts = list(app.doubts)
    if shutil.which(manager) is None:
        doubts.append(f"{manager} isn't installed here: corepack enable {manager}, or its package")
    is_next = bool(NEXT.search(said))
    if is_next:
        doubts.append(NEXT_IDS)
    elif "NODE_ENV" not in said:
        doubts.append(NODE_ENV)
    paths = tuple(sorted(set(_next_paths(folder))))[:MOST_PATHS] if is_next else ()
    heeds = bool(LISTENS_BY_ITSELF.search(said))
    return replace(app, doubts=tuple(doubts), paths=paths or app.paths, heeds_port=heeds)


def _heeds(package: Mapping[str, Any]) -> bool:
    return bool(LISTENS_BY_ITSELF.search(str(_table(package, "scripts").get("start"))))


def _package(folder: Path) -> dict[str, Any] | None:
    text = read_text(folder / PACKAGE)
    if text is None:
        return None
    try:
        package = json.loads(text)
    except (ValueError, RecursionError):
        package = {}
    return package if isinstance(package, dict) else {}


def _table(package: Mapping[str, Any], key: str) -> dict[str, Any]:
    table = package.get(key)
    return table if isinstance(table, dict) else {}


def _manager(folder: Path, package: Mapping[str, Any]) -> str:
    said = str(package.get("packageManager", "")).partition("@")[0]
    lock = first_of(folder, *LOCK_FILES)
    return said if said in INSTALLS else LOCK_FILES[lock] if lock else "npm"


def _build(package: Mapping[str, Any], manager: str, is_workspace: bool) -> str | None:
    needs = _table(package, "dependencies") or _table(package, "devDependencies")
    steps = [INSTALLS[manager]] if needs or is_workspace else []
    if "build" in _table(package, "scripts"):
        steps.append(f"{manager} run build")
    return " && ".join(steps) or None


def _start(folder: Path, package: Mapping[str, Any], manager: str) -> str | None:
    script = _table(package, "scripts").get("start")
    if isinstance(script, str):
        words = script.split()
        is_direct = bool(words) and (words[0] in DIRECT or "=" in words[0])
        return script if is_direct else f"{manager} start"
    main = package.get("main", "server.js")
    return f"node {main}" if isinstance(main, str) and (folder / main).is_file() else None


def _members(folder: Path, package: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Give the packages of a workspace, by name."""
    said = package.get("workspaces")
    patterns = said.get("packages") if isinstance(said, dict) else said
    if text := read_text(folder / "pnpm-workspace.yaml"):
        patterns = re.findall(r"""^\s*-\s*["']?([\w@./*-]+)["']?\s*$""", text, re.MULTILINE)
    found = 0
    for pattern in patterns if isinstance(patterns, list) else ():
        for path in _matching(folder, str(pattern)):
            member = _package(path)
            if member and found < MOST_PACKAGES:
                found += 1
                yield str(member.get("name", path.name)), member


def _matching(folder: Path, pattern: str) -> list[Path]:
    if pattern.startswith(("/", "!")) or ".." in pattern or not pattern.strip("./"):
        return []
    try:
        return sorted(folder.glob(pattern.rstrip("/")))
    except (ValueError, NotImplementedError):
        return []


def _scripts_of(members: Mapping[str, dict[str, Any]]) -> Iterator[dict[str, Any]]:
    return (_table(member, "scripts") for member in members.values())


def _next_paths(folder: Path) -> Iterator[str]:
    """Give the paths of Next's `app` folders, without those that have parameters."""
    for app in (*folder.glob("app"), *folder.glob("src/app"), *folder.glob("*/*/app")):
        for file in sorted((*app.rglob("page.*"), *app.rglob("route.*")))[:MOST_PACKAGES]:
            parts = file.parent.relative_to(app).parts
            if "node_modules" in file.parts or any(it.startswith(("[", "@", "_")) for it in parts):
                continue
            yield "/" + "/".join(it for it in parts if not it.startswith("("))
