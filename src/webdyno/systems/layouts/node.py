"""Applications of Node, Bun and Deno, a package by itself or one of a workspace."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from webdyno.core.tables import is_table, json_table, read_text, table
from webdyno.systems.env_files import ENV_FILE, example_file
from webdyno.systems.layouts.app import PYTHON_QUEUE, FoundApp, Hindrance, first_of
from webdyno.systems.layouts.fills import filled_by_node, prisma_generates
from webdyno.systems.layouts.node_package import (
    PACKAGE,
    Manager,
    Package,
    called_by,
    manager_of,
    members_of,
    package_in,
)
from webdyno.systems.layouts.variables import given_port

BROWSERS = {
    "cypress": "CYPRESS_INSTALL_BINARY=0",
    "@playwright/test": "PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1",
}
"""By a package for tests: what has it download no browser."""
SCRIPTS = (
    *("start:prod", "start:production", "serve:prod", "prod", "production", "start"),
    *("serve", "server", "preview"),
)
"""Names of scripts that start a package, those for production first."""
DEVELOPS = re.compile(
    r"\b(?:nodemon|node-dev|ts-node-dev|tsx watch|node --watch"
    r"|bun (?:run )?(?:--watch|--hot)|next dev|nuxt dev|nuxi dev|astro dev|remix dev"
    r"|react-router dev|vite(?! (?:preview|build))|ng serve"
    r"|react-scripts start|webpack(?:-dev-server| serve)|vue-cli-service serve|parcel(?! build)"
    r"|nest start|nx serve|wrangler|gatsby develop|concurrently|docker)(?![\w-])"
)
"""Commands for development, which compile, watch or reload."""
WATCHERS = {
    re.compile(r"(?:nodemon|node-dev|node --watch)\s+(?P<what>[\w./-]+)$"): "node",
    re.compile(r"bun (?:run )?(?:--watch|--hot) (?:run )?(?P<what>[\w./-]+)$"): "bun",
    re.compile(r"tsx watch (?P<what>[\w./-]+)$"): "node_modules/.bin/tsx",
}
"""By a command that starts a file again when it changes: what starts that once."""
BUILDS = ("build", "build:prod", "build:production")
OF_DEVICES = re.compile(r"\b(?:electron(?:-vite|-forge)?|expo|react-native|tauri)(?![\w-])")
"""Commands that start what runs on a desktop or a phone."""
VARIABLES = re.compile(r"(?:\w+=\S* )*")
BUILDS_FIRST = re.compile(r"^(?:npm|yarn|pnpm|bun) (?:run )?build\s*&&\s*")
"""In a script that starts: it is built once, not at each start."""
BUN_SERVES = re.compile(r"^export default\b", re.MULTILINE)
HAS_PORT = re.compile(r"\bport\b", re.IGNORECASE)
"""In a module that Bun serves: without one it listens on $PORT."""
MAY_SERVE = re.compile(r"listen|serve", re.IGNORECASE)
LISTENS = {
    r"\bnext start\b|\bnuxt (?:start|preview)\b|\.output/server|\breact-router-serve\b"
    r"|\bremix-serve\b|\bfastify start\b": "",
    r"\b(?:vite|astro) preview\b|\bgatsby serve\b|\bjson-server\b": "--port $PORT --host 127.0.0.1",
    r"^(?:npx )?serve\b(?! -[lp])": "-l tcp://127.0.0.1:$PORT",
    r"\bhttp-server\b": "-p $PORT -a 127.0.0.1",
}
"""By command: the flags with which it listens on $PORT; none where it does so anyway."""


class _Framework(NamedTuple):
    package: str
    """A part of a package's name that it comes with."""
    start: str
    made_by: str
    """A part of the script that builds it."""


BIN = "node_modules/.bin/"
FRAMEWORKS = (
    _Framework("@sveltejs/adapter-node", "node build", "vite build"),
    _Framework("nuxt", "node .output/server/index.mjs", "nuxt"),
    _Framework("@astrojs/node", "node dist/server/entry.mjs", "astro build"),
    _Framework("@react-router/serve", f"{BIN}react-router-serve build/server/index.js", "build"),
    _Framework("@remix-run/serve", f"{BIN}remix-serve build/server/index.js", "build"),
    _Framework("@nestjs/core", "node dist/main", "nest build"),
    _Framework("next", f"{BIN}next start", "next build"),
)
FOLDERS_OF_PAGES = {"vite": "dist", "react-scripts": "build", "@vue/cli-service": "dist"}
"""By bundler: where it puts pages."""
PAGES_SERVER = "python3 -m http.server $PORT --bind 127.0.0.1 --directory"
MAINS = (
    *("server.js", "index.js", "app.js", "main.js", "src/index.js", "src/server.js", "src/app.js"),
)
OF_BUILD = re.compile(r"(?:\./)?(?:dist|build|lib|out)/")
SERVES = re.compile(r"\.listen\(|\bserve\(")
DIRECT = {"node", "bun", "deno", "npm", "pnpm", "yarn", "npx"}
"""Programs that need no script's PATH; a shell whose line is one command becomes it."""
IN_PRODUCTION = "NODE_ENV=production "
SETS_ITSELF = re.compile(r"NODE_ENV|\bnext start\b|\bvite\b|http\.server")
OF_NODE = re.compile(r"\b(?:node|npm|npx|yarn|pnpm|bun)\b|node_modules")


@dataclass(frozen=True)
class NodeStart:
    """How a package starts."""

    command: str | None = None
    """None where its script has to be run by the package's manager."""
    script: str = ""
    """The name of the script that it is by."""
    says: str = ""
    """The script's text."""
    heeds_port: bool = False
    connections: int | None = None
    notes: tuple[str, ...] = ()


def start_of(package: Package) -> NodeStart | None:
    """Find the command of a package: by a script, its framework, or the file that listens."""
    name = next((script for script in SCRIPTS if script in package.scripts), "")
    says = BUILDS_FIRST.sub("", package.scripts.get(name, "").strip())
    by_framework = next(_starts_by_framework(package), None) if name == "preview" else None
    if _is_tool(package, says) or OF_DEVICES.search(says):
        return None
    if says and not DEVELOPS.search(says) and not by_framework:
        return _start_by_script(name, says)
    watched = says or package.scripts.get("dev", "").strip()
    start = by_framework or next(_starts_without_script(package, watched), None)
    if start is None:
        return None
    notes = (f"`{says}` is for development: not taken",) if says and not by_framework else ()
    command = start.command and for_production(start.command)
    return replace(start, command=command, script=name, notes=(*notes, *start.notes))


def _is_tool(package: Package, says: str) -> bool:
    """Whether a script calls a command that the package installs, and whose file serves nothing."""
    commands = package.data.get("bin")
    files = commands.values() if is_table(commands) else [commands]
    called = says.removeprefix("node ").removeprefix("./")
    own = [file for file in files if isinstance(file, str) and file.removeprefix("./") == called]
    return any(not MAY_SERVE.search(read_text(package.folder / file) or "") for file in own)


def _start_by_script(name: str, says: str) -> NodeStart:
    flags = next((more for what, more in LISTENS.items() if re.search(what, says)), None)
    before = VARIABLES.match(says)
    set_before = before[0] if before else ""
    program, _, _ = says.removeprefix(set_before).partition(" ")
    is_direct = program in DIRECT or program.startswith((".", "/"))
    is_plain = not re.search(r"[&|;]", says)
    given = given_port(says)
    command: str | None
    if given == says and flags and is_plain:
        given = f"{says} {flags}"
    if given != says and is_plain:
        command = given if is_direct else f"{set_before}{BIN}{given.removeprefix(set_before)}"
    elif is_plain and (is_direct or set_before):
        command = says if is_direct else f"{set_before}{BIN}{says.removeprefix(set_before)}"
    else:
        command = None
    command = for_production(command) if command else None
    notes = (f"its script {name} starts it",) if name != "start" else ()
    return NodeStart(command, name, says, heeds_port=flags is not None, notes=notes)


def _starts_by_framework(package: Package) -> Iterator[NodeStart]:
    build = package.scripts.get("build", "")
    for framework in FRAMEWORKS:
        if framework.package in package.needs and framework.made_by in build:
            yield NodeStart(framework.start, heeds_port=True)


def _starts_without_script(package: Package, says: str) -> Iterator[NodeStart]:
    yield from _starts_by_framework(package)
    build = package.scripts.get("build", "")
    for watcher, program in WATCHERS.items():
        watched = watcher.match(says)
        if watched and _may_be_there(package, watched["what"]):
            text = read_text(package.folder / watched["what"]) or ""
            by_bun = program == "bun" and BUN_SERVES.search(text) and not HAS_PORT.search(text)
            yield NodeStart(f"{program} {watched['what']}", heeds_port=bool(by_bun))
    main = package.data.get("main")
    if isinstance(main, str) and build and OF_BUILD.match(main):
        yield NodeStart(f"node {main.removeprefix('./')}")
    for file in (*([main] if isinstance(main, str) else []), *MAINS):
        if SERVES.search(read_text(package.folder / file) or ""):
            yield NodeStart(f"node {file}")
    page = first_of(package.folder, "index.html", "public/index.html", "src/index.html")
    for bundler, folder in FOLDERS_OF_PAGES.items():
        if bundler in package.needs and build and page:
            note = f"{bundler} makes pages alone, which any server can serve: here Python's"
            command = f"{PAGES_SERVER} {folder}"
            yield NodeStart(command, connections=PYTHON_QUEUE, notes=(note,))


def _may_be_there(package: Package, what: str) -> bool:
    """Whether a module is there, as Node looks it up, or what a build makes."""
    names = (f"{what}{ending}" for ending in ("", ".js", ".ts", ".mjs", "/index.js", "/index.ts"))
    return OF_BUILD.match(what) is not None or any(
        (package.folder / each).exists() for each in names
    )


def for_production(start: str, says: str = "") -> str:
    """Have a program of Node know that it is in production, unless it knows by itself."""
    if SETS_ITSELF.search(f"{start} {says}") or not OF_NODE.search(start):
        return start
    if "&&" in start:
        return f"export {IN_PRODUCTION}&& {start}"
    return IN_PRODUCTION + start


OF_WORKERS = "it is for Cloudflare's Workers, which `wrangler dev` imitates for development alone"
DEVICES = {"electron", "expo", "react-native", "@tauri-apps/api"}
OF_DEVICE = "it has {package}: it is for a desktop or a phone, and serves nothing"
FOR_DEVELOPMENT = (
    "its script {name}, `{says}`, is for development, and none for production is there: --start "
    "says what starts it compiled, --build what compiles it"
)
NEXT_START = re.compile(r"\bnext start\b")
NEXT_IDS = (
    "Next writes an id of the build into its pages, so those of two revisions differ: "
    "give generateBuildId a fixed one, or use --ignore"
)
MOST_PAGES = 100
MOST_PATHS = 12
IS_APART = re.compile(r"\[|(?:^|/)[_@]|^api/|node_modules")
"""In the path of a page's file: it has parameters, or is none that a browser shows."""
GROUP = re.compile(r"\([^)]*\)/?")


def find_node(folder: Path) -> FoundApp | None:
    """Read the scripts of package.json, and those of a workspace's packages."""
    package = package_in(folder)
    if package is None:
        return None
    manager = manager_of(folder, package)
    members = list(members_of(folder, package))
    gets = f"{manager.name} isn't installed here: {manager.call.split()[0]} gets it"
    notes = (gets,) if manager.call != manager.name else ()
    skipped = [variable for name, variable in BROWSERS.items() if name in package.needs]
    builds = [" ".join([*skipped, manager.install])] if package.needs or members else []
    builds += prisma_generates(package.folder, package.scripts, package.needs)
    by_script = next((name for name in BUILDS if name in package.scripts), None)
    builds += [f"{manager.call} run {by_script}"] if by_script else []
    fills = filled_by_node(package.folder, package.data, package.scripts, package.needs)
    fills = [manager.run(each) if each in package.scripts else each for each in fills]
    build, setup = " && ".join(builds) or None, " && ".join(fills) or None
    app = FoundApp(PACKAGE, build=build, setup=setup, notes=notes)
    if (own := start_of(package)) is None:
        if of_device := DEVICES & package.needs:
            return app.hindered(Hindrance.BEHIND, OF_DEVICE.format(package=min(of_device)))
        app = replace(app, doubts=tuple(_why_none(package)))
        return _of_members(app, folder, members, manager)
    hook = f"pre{own.script}"
    if own.command and hook in package.scripts and not _is_built(package.scripts[hook], build):
        app = replace(app, build=" && ".join(filter(None, (build, manager.run(hook)))))
    command = own.command or for_production(manager.run(own.script), own.says)
    command = called_by(manager, command)
    return _with_pages_of_next(_with_start(app, own, command), [package, *members])


def _why_none(package: Package) -> Iterator[str]:
    """Return why no script of a package is taken."""
    if any("wrangler" in line for line in package.scripts.values()):
        yield OF_WORKERS
    elif name := next((name for name in (*SCRIPTS, "dev") if name in package.scripts), None):
        yield FOR_DEVELOPMENT.format(name=name, says=package.scripts[name])


def _is_built(hook: str, build: str | None) -> bool:
    """Whether what npm runs before a script is a build that is made anyway."""
    return "run build" in (build or "") and re.search(r"\bbuild\b", hook) is not None


def _with_start(app: FoundApp, own: NodeStart, command: str) -> FoundApp:
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
    starts = {}
    for member in members:
        if "bin" not in member.data and (own := start_of(member)):
            if own.script:
                start = for_production(manager.run_of(member.name, own.script), own.says)
            else:
                command = own.command or ""
                by_env = "env " if "=" in command.split()[0] else ""
                start = f"cd {member.folder.relative_to(folder)} && exec {by_env}{command}"
            chosen = _with_data_of(_with_start(app, own, start), folder, member, manager)
            if "build" in member.scripts and manager.build not in (app.build or ""):
                build = f"{chosen.build} && {manager.run_of(member.name, 'build')}"
                chosen = replace(chosen, build=build)
            starts[member.name] = _with_pages_of_next(chosen, [member])
    if len(starts) == 1:
        return next(iter(starts.values()))
    several = f"{PACKAGE} has several packages that start" if starts else ""
    return replace(app, several=several, choices=starts)


def _with_data_of(app: FoundApp, folder: Path, member: Package, manager: Manager) -> FoundApp:
    """Add what fills a member's database, and the file of variables that it reads."""
    inside = member.folder.relative_to(folder)
    build = app.build
    if example := example_file(member.folder):
        build = f"cp -n {inside}/{example} {inside}/{ENV_FILE} && {build}"
    generates = prisma_generates(member.folder, member.scripts, member.needs)
    build = " && ".join([build or "", *(f"(cd {inside} && {each})" for each in generates)])
    fills = filled_by_node(member.folder, member.data, member.scripts, member.needs)
    setup = " && ".join(
        manager.run_of(member.name, each) if each in member.scripts else f"(cd {inside} && {each})"
        for each in fills
    )
    return replace(app, build=build or None, setup=app.setup or setup or None)


def _with_pages_of_next(app: FoundApp, packages: Sequence[Package]) -> FoundApp:
    scripts = (script for each in packages for script in each.scripts.values())
    if not NEXT_START.search(" ".join([app.start or "", *scripts])):
        return app
    paths = {path for each in packages for path in _next_paths(each.folder)}
    return replace(
        app,
        paths=tuple(sorted(paths))[:MOST_PATHS] or app.paths,
        doubts=(*app.doubts, NEXT_IDS),
        heeds_port=True,
    )


def _next_paths(folder: Path) -> Iterator[str]:
    """Return the paths of Next's folders `app` and `pages`, without those that have parameters."""
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


DENO_TASKS = ("preview", "serve", "start", "prod", "production")
DENO_WATCHES = re.compile(r"--watch|\bdev\b")
DENO_MAINS = ("main.ts", "server.ts", "mod.ts", "index.ts", "src/main.ts", "main.js", "server.js")
DENO_SERVES = re.compile(r"^export default\b", re.MULTILINE)
DENO_ADDRESS = "DENO_SERVE_ADDRESS=tcp:127.0.0.1:$PORT"
"""Where Deno.serve listens, unless the source says so."""


def find_deno(folder: Path) -> FoundApp | None:
    """Start the task that doesn't watch, else the main module."""
    file = first_of(folder, "deno.json", "deno.jsonc")
    of_node = table(json_table(read_text(folder / "package.json") or ""), "scripts")
    if file is None or {"start", "start:prod"} & of_node.keys():  # that is for Node before all
        return None
    text = re.sub(r"^[ \t]*//.*$", "", read_text(folder / file) or "", flags=re.MULTILINE)
    tasks = table(json_table(text), "tasks")
    build = "deno task build" if "build" in tasks else None
    for task in DENO_TASKS:
        if task in tasks and not DENO_WATCHES.search(str(tasks[task])):
            return FoundApp(file, f"{DENO_ADDRESS} deno task {task}", build, heeds_port=True)
    main = first_of(folder, *DENO_MAINS)
    if main is None:
        return None
    if DENO_SERVES.search(read_text(folder / main) or ""):
        start = f"deno serve --allow-all --host 127.0.0.1 --port $PORT {main}"
    else:
        start = f"{DENO_ADDRESS} deno run --allow-all {main}"
    return FoundApp(file, start, f"deno install --entrypoint {main}", heeds_port=True)
