"""Applications of Node, a package by itself or one of a workspace; and of Deno."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from webdyno.systems.layouts.app import FoundApp
from webdyno.systems.layouts.files import first_of, read_text, table
from webdyno.systems.layouts.node_packages import (
    PACKAGE,
    Manager,
    Package,
    manager_of,
    members_of,
    package_in,
)
from webdyno.systems.layouts.node_start import NodeStart, for_production, start_of

NEXT = re.compile(r"\bnext start\b")
NEXT_IDS = (
    "Next writes an id of the build into its pages, so those of two revisions differ: "
    "give generateBuildId a fixed one, or use --ignore"
)
FILLS = (
    ("migrate:deploy", "db:migrate:deploy", "db:migrate", "migrate", "migrations:run", "db:push"),
    ("db:seed", "seed"),
)
"""Names of scripts that make tables, and of those that fill them; of each the first that is there.
"""
MOST_PAGES = 100
MOST_PATHS = 12
IS_APART = re.compile(r"\[|(?:^|/)[_@]|^api/|node_modules")
"""In the path of a page's file: it has parameters, or is none that a browser shows."""
GROUP = re.compile(r"\([^)]*\)/?")


def find_in(folder: Path) -> FoundApp | None:
    """Read the scripts of package.json, and those of a workspace's packages."""
    package = package_in(folder)
    if package is None:
        return None
    manager = manager_of(folder, package)
    members = list(members_of(folder, package))
    gets = f"{manager.name} isn't installed here: {manager.call.split()[0]} gets it"
    notes = (gets,) if manager.call != manager.name else ()
    fills = [manager.run(script) for names in FILLS if (script := _named(package, names))]
    build, setup = _build(package, manager, members), " && ".join(fills) or None
    app = FoundApp(PACKAGE, build=build, setup=setup, notes=notes)
    if (own := start_of(package)) is None:
        return _of_members(app, folder, members, manager)
    command = own.command or for_production(manager.run(own.script), own.says)
    command = re.sub(rf"^((?:\w+=\S+ )*){manager.name} ", rf"\g<1>{manager.call} ", command)
    return _completed(_taken(app, own, command), [package, *members])


def _named(package: Package, names: Sequence[str]) -> str | None:
    return next((name for name in names if name in package.scripts), None)


def _build(package: Package, manager: Manager, members: Sequence[Package]) -> str | None:
    steps = [manager.install] if package.needs or members else []
    if "build" in package.scripts:
        steps.append(manager.build)
    return " && ".join(steps) or None


def _taken(app: FoundApp, own: NodeStart, command: str) -> FoundApp:
    return replace(
        app,
        start=command,
        heeds_port=own.heeds_port,
        connections=own.connections,
        notes=(*own.notes, *app.notes),
    )


def _of_members(
    app: FoundApp, folder: Path, members: Sequence[Package], manager: Manager
) -> FoundApp:
    """Choose among a workspace's packages those that start."""
    starts = {}
    for member in members:
        if "bin" not in member.data and (own := start_of(member)):
            start = _of_member(member, own, folder, manager)
            chosen = _taken(app, own, start)
            if "build" in member.scripts and manager.build not in (app.build or ""):
                build = f"{app.build} && {manager.run_of(member.name, 'build')}"
                chosen = replace(chosen, build=build)
            starts[member.name] = _completed(chosen, [member])
    if len(starts) == 1:
        return next(iter(starts.values()))
    several = f"{PACKAGE} has several packages that start" if starts else ""
    return replace(app, several=several, choices=starts)


def _of_member(member: Package, own: NodeStart, folder: Path, manager: Manager) -> str:
    """Give the command that starts a package of a workspace, called at the top of that."""
    if own.script:
        return for_production(manager.run_of(member.name, own.script), own.says)
    command = own.command or ""
    by_env = "env " if "=" in command.split()[0] else ""
    return f"cd {member.folder.relative_to(folder)} && exec {by_env}{command}"


def _completed(app: FoundApp, packages: Sequence[Package]) -> FoundApp:
    """Add the pages of Next, and what differs in them."""
    scripts = (script for each in packages for script in each.scripts.values())
    if not NEXT.search(" ".join([app.start or "", *scripts])):
        return app
    paths = {path for each in packages for path in _next_paths(each.folder)}
    return replace(
        app,
        paths=tuple(sorted(paths))[:MOST_PATHS] or app.paths,
        doubts=(*app.doubts, NEXT_IDS),
        heeds_port=True,
    )


def _next_paths(folder: Path) -> Iterator[str]:
    """Give the paths of Next's folders `app` and `pages`, without those that have parameters."""
    for app in (folder / "app", folder / "src/app"):
        for file in sorted((*app.rglob("page.*"), *app.rglob("route.*")))[:MOST_PAGES]:
            name = file.parent.relative_to(app).as_posix()
            if not IS_APART.search(name.removeprefix("api/")):
                yield "/" + GROUP.sub("", f"{name}/").strip("./")
    for pages in (folder / "pages", folder / "src/pages"):
        for file in sorted(pages.rglob("*.[jt]sx"))[:MOST_PAGES]:
            name = file.relative_to(pages).with_suffix("").as_posix()
            if not IS_APART.search(name):
                yield "/" + re.sub(r"(^|/)index$", "", name)


TASKS = ("preview", "serve", "start", "prod", "production")
WATCHES = re.compile(r"--watch|\bdev\b")
DENO_MAINS = ("main.ts", "server.ts", "mod.ts", "index.ts", "src/main.ts", "main.js", "server.js")
DENO_SERVES = re.compile(r"^export default\b", re.MULTILINE)
DENO_ADDRESS = "DENO_SERVE_ADDRESS=tcp:127.0.0.1:$PORT"
"""Where Deno.serve listens, unless the source says so."""


def find_deno(folder: Path) -> FoundApp | None:
    """Start the task that doesn't watch, else the main module."""
    file = first_of(folder, "deno.json", "deno.jsonc")
    if file is None:
        return None
    text = re.sub(r"^[ \t]*//.*$", "", read_text(folder / file) or "", flags=re.MULTILINE)
    try:
        data: Any = json.loads(text)
    except (ValueError, RecursionError):
        data = {}
    tasks = table(data, "tasks")
    served = [task for task in TASKS if task in tasks and not WATCHES.search(str(tasks[task]))]
    task = next(iter(served), None)
    build = "deno task build" if "build" in tasks else None
    if task:
        return FoundApp(file, f"{DENO_ADDRESS} deno task {task}", build, heeds_port=True)
    main = first_of(folder, *DENO_MAINS)
    if main is None:
        return None
    if DENO_SERVES.search(read_text(folder / main) or ""):
        start = f"deno serve --allow-all --host 127.0.0.1 --port $PORT {main}"
    else:
        start = f"{DENO_ADDRESS} deno run --allow-all {main}"
    return FoundApp(file, start, f"deno install --entrypoint {main}", heeds_port=True)
