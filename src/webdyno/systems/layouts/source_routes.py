"""Routes as sources name them: whole, or below what their class, file or framework says."""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from webdyno.systems.layouts.app import sources
from webdyno.systems.tables import read_text

IN_SOURCES = re.compile(
    r"""(?:\.(?:get|route|map_?get)\(|HandleFunc\(|\.Handle\(|\b(?:get|post|put|patch|delete)\(?"""
    r"""|\bwhen|Route::\w+\(|(?:Get|Post|Put|Patch|Delete|Request)Mapping\(|\.Map(?:Get|Post)\("""
    r"""|\.(?:post|put|patch|delete)\()\s*(?:value\s*=\s*|path\s*=\s*)?"""
    r"""["'`](?:(?P<method>[A-Z]+) )?(?P<path>/[\w./:<>{}*$-]*)["'`]""",
    re.IGNORECASE,
)
"""Of Flask, FastAPI, Express, net/http, Gin, Sinatra, Rails, Axum, Actix, Spring, Laravel …"""
PREFIX = re.compile(
    r"""(?:\.(?:use|route|group|mount|nest|scope|register)\(|\b(?:url_)?prefix\s*[=:(]"""
    r"""|RequestMapping\()\s*(?:value\s*=\s*|path\s*=\s*)?["'`](?P<path>(?:/[\w.-]+)+)/?["'`]""",
    re.IGNORECASE,
)
"""What groups of routes stand below, in the same frameworks."""
MOST_PREFIXES = 4
WRITES = re.compile(r"post|put|patch|delete", re.IGNORECASE)
PARAMETER = re.compile(
    r"<(?:(?P<type>\w+):)?(?P<angle>\w+)>|\{(?P<brace>\w+)(?::[^}]{0,200})?\}|:(?P<colon>\w+)"
)
A_NUMBER = re.compile(r"(?:^|_)(?:id|pk|page|number|num|no|n|year)$|Id$|ID$")
STAYS_AT_HOME = re.compile(
    r"log[-_]?out|sign[-_]?out|delete|remove|destroy|unsubscribe|restore|reset|revoke|shutdown"
    r"|toggle|clear(?:[/_-]|$)"
    r"|snapshot|debug|livereload",
    re.IGNORECASE,
)
"""In a path: asking for it may change something, or it is none of the application's pages."""
WITHOUT_VALUE = "no example for {names}"
IT_WRITES = "writes"
MAY_WRITE = "may change something, by its name"
MOST_ROUTES = 200
PATH = r"""(?:\{\s*+)?(?:(?:value|path)\s*+[=:]\s*+)?[{\[]?\s*+["'`](?P<path>[^"'`$]{0,200})["'`]"""
REST = r"[^)]{0,300}\)"
"""Of what stands in parentheses."""
UNTIL_CLASS = (
    rf"(?:\s*+(?:@[\w.]++(?:\({REST})?+|export|default|public|abstract|final|open)){{0,50}}+"
    r"\s*+class\b"
)
OF_NEST = re.compile(rf"@Controller\((?:\s*+{PATH}{REST}|\)){UNTIL_CLASS}")
OF_SPRING = re.compile(rf"@RequestMapping\(\s*+{PATH}{REST}{UNTIL_CLASS}")
CLASSES = {".ts": OF_NEST, ".js": OF_NEST, ".java": OF_SPRING, ".kt": OF_SPRING}
METHOD = re.compile(
    rf"@(?P<method>Get|Post|Put|Patch|Delete)(?:Mapping)?(?:\((?:\s*+{PATH}{REST}|\)))?(?=\s)"
)
ATTRIBUTE = re.compile(
    r"""#\[Route\(\s*(?:path:\s*)?["'](?P<path>[^"']{0,200})["'](?P<rest>.{0,300}?)\)\]""",
    re.DOTALL,
)
IN_LINE = r"\s*+#\[[^\n]{0,1000}\]"
"""All attributes of a line: taken one by one, they would be divided in every possible way."""
CLASS_OF_PHP = re.compile(
    rf"(?:{IN_LINE}[^\S\n]*+\n){{0,50}}(?:{IN_LINE})?\s*+(?:(?:final|abstract|readonly)\s++)*+class\b"
)
METHODS_OF_PHP = re.compile(r"methods:\s*(\[[^\]A-Z]*[A-Z][^\]]*\]|[\"'][A-Z]+[\"'])")
REQUIREMENT = re.compile(r"<[^>]*>|(?<=\w):\w+(?=\})")
"""Of a parameter, as in `{page<\\d+>}` and `{slug:post}`."""
OF_ALL = re.compile(r"""setGlobalPrefix\(\s*["'`](?P<path>[^"'`]+)["'`]""")
SETTINGS = ("application.properties", "application.yml", "application.yaml")
CONTEXT_PATH = re.compile(r"(?:context|base)-path\s*[:=]\s*[\"']?(?P<path>/[\w./-]+)")
API_FILE = ("routes", "api.php")
API_PREFIX = re.compile(r"""apiPrefix:\s*["'](?P<path>[^"']*)["']""")
"""Laravel's, which is `api` where nothing is said."""


class Route(NamedTuple):
    """A way to ask an application."""

    method: str
    path: str
    """With parameters as they are written."""
    filled: str | None
    """With values in their places; None where it can't be asked."""
    lacks: str = ""
    """Why it can't be, or not by everybody."""

    @property
    def label(self) -> str:
        return f"{self.method} {self.path}"


def routes_of_sources(folder: Path) -> list[Route]:
    """Return the routes that sources name, in their order."""
    routes: dict[tuple[str, str], Route] = {}
    texts = {file: read_text(file) or "" for file in sources(folder)}
    of_nest = _first_path(OF_ALL, texts.values())
    of_laravel = _first_path(API_PREFIX, texts.values(), otherwise="api")
    for file, text in texts.items():
        written = list(_of_controllers(file, text)) or list(_written_whole(text))
        below = _stands_below(file, text, of_nest, of_laravel)
        for method, path in written:
            whole = _joined(below, path) if below else path
            routes.setdefault((method, whole), route_of(method, whole, {}))
    return list(routes.values())[:MOST_ROUTES]


def _written_whole(text: str) -> Iterator[tuple[str, str]]:
    for match in IN_SOURCES.finditer(text):
        writing = WRITES.search(match[0].partition(match["path"])[0])
        path = match["path"].replace("{$}", "")
        if "*" not in path and "$" not in path:
            yield (match["method"] or (writing[0] if writing else "GET")).upper(), path


def prefixes_of_sources(folder: Path) -> list[str]:
    """Return the paths below which sources have groups of routes; of few also one in another."""
    texts = (read_text(file) or "" for file in sources(folder))
    paths = dict.fromkeys(group["path"] for text in texts for group in PREFIX.finditer(text))
    prefixes = list(paths)[:MOST_PREFIXES]
    return prefixes + [outer + inner for outer in prefixes for inner in prefixes if outer != inner]


def route_of(method: str, path: str, examples: Mapping[str, object]) -> Route:
    """Fill the parameters: with examples, and with 1 where a number is wanted."""
    if method not in {"GET", "HEAD"}:
        return Route(method, path, None, IT_WRITES)
    if STAYS_AT_HOME.search(path):
        return Route(method, path, None, MAY_WRITE)
    lacking: list[str] = []

    def value(match: re.Match[str]) -> str:
        name = match["angle"] or match["brace"] or match["colon"]
        if name in examples:
            return quote(str(examples[name]), safe="")
        if match["type"] == "int" or A_NUMBER.search(name):
            return "1"
        lacking.append(name)
        return ""

    filled = PARAMETER.sub(value, path)
    if lacking:
        return Route(method, path, None, WITHOUT_VALUE.format(names=", ".join(lacking)))
    return Route(method, path, filled)


def _of_controllers(file: Path, text: str) -> Iterator[tuple[str, str]]:
    """Return method and path of what classes answer that have a path of their own."""
    if file.suffix == ".php":
        yield from _of_symfony(text)
    pattern = CLASSES.get(file.suffix)
    classes = list(pattern.finditer(text)) if pattern else []
    ends = [*(later.start() for later in classes[1:]), len(text)]
    for controller, end in zip(classes, ends, strict=False):
        for handler in METHOD.finditer(text, controller.end(), end):
            whole = _joined(controller["path"] or "", handler["path"] or "")
            yield handler["method"].upper(), whole


def _of_symfony(text: str) -> Iterator[tuple[str, str]]:
    """Return what attributes say, of which one before a class is for all that follow."""
    above = ""
    for route in ATTRIBUTE.finditer(text):
        path = REQUIREMENT.sub("", route["path"])
        if CLASS_OF_PHP.match(text, route.end()):
            above = path
        else:
            methods = METHODS_OF_PHP.search(route["rest"])
            named = re.findall(r"[A-Z]+", methods[1]) if methods else ["GET"]
            yield "GET" if "GET" in named else named[0], _joined(above, path)


def _context_path(file: Path) -> str:
    """Return what Spring's configuration puts before all paths."""
    resources = next((up / "resources" for up in file.parents if up.name == "main"), None)
    texts = (read_text(resources / name) or "" for name in SETTINGS) if resources else ()
    return _first_path(CONTEXT_PATH, texts)


def _first_path(pattern: re.Pattern[str], texts: Iterable[str], otherwise: str = "") -> str:
    given = next(filter(None, map(pattern.search, texts)), None)
    return given["path"] if given else otherwise


def _stands_below(file: Path, text: str, of_nest: str, of_laravel: str) -> str:
    """Return the path that all routes of a file stand below; empty where there is none."""
    if file.parts[-2:] == API_FILE:
        return of_laravel
    if file.suffix in {".java", ".kt"}:
        return _context_path(file)
    return of_nest if "@nestjs/common" in text else ""


def _joined(*parts: str) -> str:
    """Return a path of parts, however they begin and end."""
    return "/" + "/".join(filter(None, (part.strip("/") for part in parts)))
