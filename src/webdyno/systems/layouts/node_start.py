"""The command that starts one package of Node for production, listening on $PORT."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from webdyno.systems.layouts.files import read_text
from webdyno.systems.layouts.node_packages import Package
from webdyno.systems.layouts.variables import given_port

SCRIPTS = (
    *("start:prod", "start:production", "serve:prod", "prod", "production", "start"),
    *("serve", "server", "preview"),
)
"""Names of scripts that start a package, those for production first."""
DEVELOPS = re.compile(
    r"\b(?:nodemon|node-dev|ts-node-dev|tsx watch|node --watch|bun (?:--watch|--hot)|next dev"
    r"|nuxt dev|nuxi dev|astro dev|remix dev|react-router dev|vite(?! (?:preview|build))|ng serve"
    r"|react-scripts start|webpack(?:-dev-server| serve)|vue-cli-service serve|parcel(?! build)"
    r"|nest start|nx serve|wrangler|gatsby develop|concurrently|docker)(?![\w-])"
)
"""Commands for development, which compile, watch or reload."""
WATCHES = re.compile(r"(?:nodemon|node-dev|node --watch)\s+(?P<what>[\w./-]+)$")
LISTENS = {
    r"\bnext start\b|\bnuxt (?:start|preview)\b|\.output/server|\breact-router-serve\b"
    r"|\bremix-serve\b|\bfastify start\b": "",
    r"\b(?:vite|astro) preview\b|\bgatsby serve\b|\bjson-server\b": "--port $PORT --host 127.0.0.1",
    r"^(?:npx )?serve\b(?! -[lp])": "-l tcp://127.0.0.1:$PORT",
    r"\bhttp-server\b": "-p $PORT -a 127.0.0.1",
}
"""By command: the flags with which it listens on $PORT; none where it does so anyway."""


class _Framework(NamedTuple):
    """A framework whose build makes a server."""

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
PYTHON_QUEUE = 4
"""Connections that Python's own server takes at once without fail: it lets five wait."""
MAINS = (
    "server.js",
    "index.js",
    "app.js",
    "main.js",
    "src/index.js",
    "src/server.js",
    "src/app.js",
)
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
    says = package.scripts.get(name, "").strip()
    if says and not DEVELOPS.search(says):
        return _by_script(name, says)
    instead = f"`{says}` is for development: not taken" if says else ""
    notes = (instead,) if instead else ()
    start = next(_others(package, says), None)
    if start is None:
        return None
    return NodeStart(
        start.command and for_production(start.command),
        heeds_port=start.heeds_port,
        connections=start.connections,
        notes=(*notes, *start.notes),
    )


def _by_script(name: str, says: str) -> NodeStart:
    flags = next((more for what, more in LISTENS.items() if re.search(what, says)), None)
    notes = (f"its script {name} starts it",) if name != "start" else ()
    words = says.split()
    is_plain = not re.search(r"[&|;]", says)
    is_direct = words[0] in DIRECT or "=" in words[0]
    given = given_port(says)
    if given == says and flags and is_plain:
        given = f"{says} {flags}"
    if given != says and is_plain:
        command = given if is_direct else f"{BIN}{given}"
    else:
        command = says if is_direct and is_plain else ""
    heeds = flags is not None
    return NodeStart(for_production(command) if command else None, name, says, heeds, notes=notes)


def _others(package: Package, says: str) -> Iterator[NodeStart]:
    """Give what starts a package whose scripts are for development, the likeliest first."""
    build = package.scripts.get("build", "")
    for framework in FRAMEWORKS:
        if framework.package in package.needs and framework.made_by in build:
            yield NodeStart(framework.start, heeds_port=True)
    if watched := WATCHES.match(says):
        yield NodeStart(f"node {watched['what']}")
    if main := _main(package):
        yield NodeStart(f"node {main}")
    pages = [
        package.folder / page for page in ("index.html", "public/index.html", "src/index.html")
    ]
    for bundler, folder in FOLDERS_OF_PAGES.items():
        if bundler in package.needs and build and any(page.is_file() for page in pages):
            note = f"{bundler} makes pages alone, which any server can serve: here Python's"
            command = f"{PAGES_SERVER} {folder}"
            yield NodeStart(command, connections=PYTHON_QUEUE, notes=(note,))


def _main(package: Package) -> str | None:
    main = package.data.get("main")
    named = [main] if isinstance(main, str) else []
    files = [path for path in (*named, *MAINS) if (package.folder / path).is_file()]
    return next(
        (file for file in files if SERVES.search(read_text(package.folder / file) or "")), None
    )


def for_production(start: str, says: str = "") -> str:
    """Have a program of Node know that it is in production, unless it knows by itself."""
    if SETS_ITSELF.search(f"{start} {says}") or not OF_NODE.search(start):
        return start
    return IN_PRODUCTION + start
