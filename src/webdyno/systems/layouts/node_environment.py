"""What an application of Node runs in: the values of NODE_ENV that it knows, and a version."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from webdyno.core.errors import OperationError
from webdyno.core.tables import read_text, table
from webdyno.host.children import run_program
from webdyno.systems.layouts.app import FoundApp, Hindrance, is_of_interest, sources
from webdyno.systems.layouts.node_package import PACKAGE, Package, package_in

BY_NODE_ENV = (
    *(f"knexfile.{ending}" for ending in ("js", "ts", "cjs", "mjs")),
    *(
        f"{where}config/{name}.{ending}"
        for where in ("", "src/", "server/", "db/")
        for name in ("config", "database")
        for ending in ("json", "js", "cjs")
    ),
)
"""Files in which Knex and Sequelize have a database for each value of NODE_ENV."""
COMMENT = re.compile(r"/\*(?:[^*]|\*(?!/))*+(?:\*/)?|(?<![:\w])//[^\n]*")
SECTION = re.compile(
    r"""^[ \t]*["']?(development|production|staging|test)["']?\s*:""", re.MULTILINE
)
WANTS_TLS = re.compile(r"""["']?\bssl["']?\s*:\s*(?:true|\{)""")
IN_PRODUCTION, IN_DEVELOPMENT = "NODE_ENV=production ", "NODE_ENV=development "
NO_PRODUCTION = "{file} has nothing for production: it runs as in development"
NO_TLS = (
    "{file} wants TLS of its database in production, which speaks none here: it runs as in "
    "development"
)
NEST_MAIN = re.compile(r"(?<=node )dist/main\b")
SAYS_ROOT = re.compile(r'"(?:include|files|rootDir)"\s*:')
DEEPER = "more than src is compiled, so what starts is dist/src/main"
OLD_WEBPACK = re.compile(
    r"\"(?:webpack|react-scripts|@vue/cli-service|laravel-mix)\"\s{0,9}:\s{0,9}\"[~^]?[1-4]\."
    r"|\"@rails/webpacker\"|\"laravel-mix\"\s{0,9}:\s{0,9}\"[~^]?5\."
)
BUNDLES = re.compile(r"\brun (?:build|prod)\b|assets:precompile")
WITHOUT_MD4 = 17
OF_MD4 = "its webpack hashes as Node's OpenSSL refuses to without --openssl-legacy-provider"
ENGINE = re.compile(r"\A[\s>=^~]{0,9}v?(\d+)")
TOO_OLD = "package.json wants Node {wanted}, and node is {here} here: install that one first"


def with_its_node(app: FoundApp, folder: Path) -> FoundApp:
    """Return an application that runs as its configuration knows; say where Node is too old."""
    if (package := package_in(folder)) is None or not app.start:
        return app
    why = next(_lacks_production(folder), None)
    if why and IN_PRODUCTION in app.start:
        start = app.start.replace(IN_PRODUCTION, IN_DEVELOPMENT)
        app = replace(app, start=start, notes=(*app.notes, why))
    if NEST_MAIN.search(app.start or "") and _is_compiled_deeper(folder):
        start = NEST_MAIN.sub("dist/src/main", app.start or "")
        app = replace(app, start=start, notes=(*app.notes, DEEPER))
    if _is_bundled_by_md4(app, package) and (_node_here() or 0) >= WITHOUT_MD4:
        build = f"export NODE_OPTIONS=--openssl-legacy-provider && {app.build}"
        app = replace(app, build=build, notes=(*app.notes, OF_MD4))
    wanted = ENGINE.match(str(table(package.data, "engines").get("node", "")))
    if wanted and (here := _node_here()) and here < int(wanted[1]) and app.by == PACKAGE:
        doubt = TOO_OLD.format(wanted=wanted[1], here=here)
        app = app.hindered(Hindrance.HERE, doubt)
    return app


def _is_bundled_by_md4(app: FoundApp, package: Package) -> bool:
    """Whether its build bundles with a webpack whose hashes later versions of Node refuse."""
    text = read_text(package.folder / PACKAGE) or ""
    bundles = BUNDLES.search(app.build or "") is not None
    return bundles and OLD_WEBPACK.search(text) is not None and "legacy-provider" not in text


def _is_compiled_deeper(folder: Path) -> bool:
    """Whether `nest build` compiles more than `src`: all is then in folders of its own."""
    texts = [read_text(folder / name) or "" for name in ("tsconfig.build.json", "tsconfig.json")]
    if not (folder / "src/main.ts").is_file() or any(map(SAYS_ROOT.search, texts)):
        return False
    excluded = texts[0] or texts[1]
    others = (
        path
        for path in sorted(folder.iterdir())
        if path.name != "src" and is_of_interest(path) and f'"{path.name}' not in excluded
    )
    return any(path.suffix == ".ts" for each in others for path in sources(each, {".ts"}))


def _lacks_production(folder: Path) -> Iterator[str]:
    for file in BY_NODE_ENV:
        text = COMMENT.sub("", read_text(folder / file) or "")
        parts = SECTION.split(text)
        own = dict(zip(parts[1::2], parts[2::2], strict=True))
        if "development" in own and "production" not in own:
            yield NO_PRODUCTION.format(file=file)
        elif {"development", "production"} <= own.keys():
            wanting = {name for name, section in own.items() if WANTS_TLS.search(section)}
            if "production" in wanting and "development" not in wanting:
                yield NO_TLS.format(file=file)


def _node_here() -> int | None:
    try:
        said = run_program(["node", "--version"], within_s=10).stdout
    except OperationError:  # there is none
        return None
    version = re.match(r"v(\d+)", said)
    return int(version[1]) if version else None
