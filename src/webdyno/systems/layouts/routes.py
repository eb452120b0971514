"""What can be asked of an application: routes of its sources and of OpenAPI, and links.

Sources name routes whole, or below what their class, file or framework says.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import yaml

from webdyno.core.pages import PageParser
from webdyno.core.tables import Table, as_list, as_table, is_table, read_text, table
from webdyno.core.text import split_url
from webdyno.systems.containers.compose_file import plain_values
from webdyno.systems.layouts.app import FoundApp, first_of, sources

IN_SOURCES = re.compile(
    r"""(?:\.(?:get|route|map_?get)\(|HandleFunc\(|\.Handle\(|\b(?:get|post|put|patch|delete)\(?"""
    r"""|\bwhen|\blive\b|Route::\w+\(|(?:Get|Post|Put|Patch|Delete|Request)Mapping\(|\.Map(?:Get|Post)\("""
    r"""|\.(?:post|put|patch|delete)\(|\bCROW_ROUTE\(\w+,|\bregisterHandler\()"""
    r"""\s*(?:value\s*=\s*|path\s*=\s*)?"""
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
OF_JAX_RS = re.compile(rf"@Path\(\s*+{PATH}{REST}{UNTIL_CLASS}")
ANNOTATIONS = r"(?:\s*+@[\w.]++(?:\([^()]{0,300}\))?+){0,12}+"
METHOD_OF_JAX_RS = re.compile(rf"@(?P<method>GET|POST|PUT|PATCH|DELETE)\b(?P<rest>{ANNOTATIONS})")
BETWEEN = re.compile(rf"{ANNOTATIONS}\s*+")
PATH_OF_METHOD = re.compile(r"""@Path\(\s*["'](?P<path>[^"'\n]{0,200})["']\s*\)""")
BEFORE = 200
"""Letters before a method's word in which its path may stand, behind the end of another one."""
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
CONTEXT_PATH = re.compile(
    r"(?:(?:context|base)-?[pP]ath|rest(?:easy)?\.path|http\.root-path)\s*[:=]\s*[\"']?(?P<path>/[\w./-]+)"
)
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
            return quote(str(examples[name]), safe="", errors="replace")
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
    if file.suffix in {".java", ".kt"}:
        yield from _of_jax_rs(text)
    pattern = CLASSES.get(file.suffix)
    classes = list(pattern.finditer(text)) if pattern else []
    ends = [*(later.start() for later in classes[1:]), len(text)]
    for controller, end in zip(classes, ends, strict=False):
        for handler in METHOD.finditer(text, controller.end(), end):
            whole = _joined(controller["path"] or "", handler["path"] or "")
            yield handler["method"].upper(), whole


def _of_jax_rs(text: str) -> Iterator[tuple[str, str]]:
    """Return what resources of Quarkus and Jersey answer: paths stand before or behind methods."""
    if (resource := OF_JAX_RS.search(text)) is None:
        return
    for method in METHOD_OF_JAX_RS.finditer(text, resource.end()):
        begin = max(resource.end(), method.start() - BEFORE)
        before = (
            path
            for path in PATH_OF_METHOD.finditer(text, begin, method.start())
            if BETWEEN.fullmatch(text, path.end(), method.start())
        )
        inner = PATH_OF_METHOD.search(method["rest"]) or next(before, None)
        yield method["method"], _joined(resource["path"] or "", inner["path"] if inner else "")


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


OPENAPI_FILES = (
    *("openapi.json", "openapi.yaml", "openapi.yml", "swagger.json", "swagger.yaml", "swagger.yml"),
)
OPENAPI_FOLDERS = (
    "",
    "docs/",
    "api/",
    "public/",
    "static/",
    "src/main/resources/static/",
    "openapi/",
)
OPENAPI_PATHS = (
    *("/openapi.json", "/v3/api-docs", "/swagger/v1/swagger.json", "/swagger.json"),
    *("/api/openapi.json", "/api/schema/?format=json", "/q/openapi?format=json"),
    *("/api/v1/openapi.json", "/documentation/json", "/docs/json", "/api-json", "/docs-json"),
    *("/api/docs-json", "/swagger/doc.json", "/doc"),
)
"""Where FastAPI, Spring, ASP.NET, Flask, Django's and Quarkus' extensions serve the document, and
those of Fastify, NestJS, Gin and Hono."""
NEEDS_LOGIN = "needs a login"
SOURCES = "its sources"
MOST_LINKS = 12


def known_routes(app: FoundApp, folder: Path) -> tuple[str, list[Route]]:
    """Return the file that names routes, an OpenAPI document first, and the routes."""
    name = first_of(
        folder, *(f"{where}{file}" for where in OPENAPI_FOLDERS for file in OPENAPI_FILES)
    )
    if name and (routes := routes_of_openapi(read_text(folder / name) or "")):
        return name, routes
    if app.paths != ("/",):
        return app.by, [route_of("GET", path, {}) for path in app.paths]
    return SOURCES, routes_of_sources(folder)


def routes_of_openapi(text: str) -> list[Route]:
    """Return the routes of an OpenAPI document, JSON or YAML; none where it isn't one."""
    try:
        data: Any = json.loads(text) if text.lstrip().startswith("{") else plain_values(text)
    except (ValueError, RecursionError, yaml.YAMLError):
        return []
    if not is_table(data) or not ({"openapi", "swagger"} & data.keys()):
        return []
    base = data.get("basePath")
    if not isinstance(base, str):
        server = next(iter(as_list(data.get("servers"))), None)
        base = split_url(str(as_table(server).get("url", ""))).path
    routes = []
    for path, item in table(data, "paths").items():
        for method, operation in as_table(item).items():
            if method in {"get", "post", "put", "patch", "delete"} and is_table(operation):
                parameters = as_list(item.get("parameters")) + as_list(operation.get("parameters"))
                whole = operation | {"parameters": parameters}
                routes.append(_operation(data, f"{base.rstrip('/')}{path}", method.upper(), whole))
    return routes[:MOST_ROUTES]


def _operation(data: Table, path: str, method: str, operation: Table) -> Route:
    security = as_list(operation.get("security", data.get("security")))
    is_closed = bool(security) and {} not in security
    examples: dict[str, object] = {}
    query: dict[str, object] = {}
    lacking = []
    for node in operation["parameters"]:
        parameter = follow_reference(data, node)
        name, example = str(parameter.get("name")), _example(data, parameter)
        if parameter.get("in") == "path" and example is not None:
            examples[name] = example
        elif parameter.get("in") in {"query", "header"} and parameter.get("required"):
            lacking += [name] if example is None or parameter.get("in") == "header" else []
            query |= {name: example} if parameter.get("in") == "query" else {}
    route = route_of(method, path, examples)
    if route.filled is not None and is_closed:
        route = route._replace(lacks=NEEDS_LOGIN)
    if route.filled is None or not (query or lacking):
        return route
    if lacking:
        return route._replace(filled=None, lacks=WITHOUT_VALUE.format(names=", ".join(lacking)))
    pairs = (
        f"{quote(key, errors='replace')}={quote(str(value), safe='', errors='replace')}"
        for key, value in query.items()
    )
    return route._replace(filled=f"{route.filled}?{'&'.join(pairs)}")


def follow_reference(data: Table, node: object) -> Table:
    """Follow one reference, such as `#/components/parameters/id`."""
    target = as_table(node)
    if isinstance(ref := target.get("$ref"), str) and ref.startswith("#/"):
        return table(data, *ref[2:].split("/"))
    return target


def _example(data: Table, parameter: Table) -> object:
    """Return a value for a parameter: its example, its default, the first that it may be, or 1."""
    schema = follow_reference(data, parameter.get("schema")) or parameter
    for source in (parameter, *table(parameter, "examples").values(), schema):
        for key in ("example", "value", "default"):
            if isinstance(example := as_table(source).get(key), str | int | float):
                return example
    if choices := as_list(schema.get("enum") or schema.get("examples")):
        return choices[0]
    if schema.get("type") == "integer":
        least = schema.get("minimum", 1)
        return max(1, least) if isinstance(least, int) else 1
    return None


def links_of(page: bytes, path: str) -> list[str]:
    """Return the paths on its server that a page links to, unless they may change something."""
    parser = _Links()
    parser.feed(page.decode("utf-8", "replace"))
    links: dict[str, None] = {}
    for target in parser.targets:
        parts = split_url(target, f"http://here{path}")
        link = parts.path + (f"?{parts.query}" if parts.query else "")
        if parts.netloc == "here" and link.startswith("/") and not STAYS_AT_HOME.search(link):
            links[quote(link, safe="/?&=%:@!$'()*+,;~.-_")] = None
    links.pop(path, None)
    return list(links)[:MOST_LINKS]


class _Links(PageParser):
    def __init__(self) -> None:
        super().__init__()
        self.targets: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep where a link leads, unless it downloads, or posts by script."""
        given = dict(attrs)
        scripted = {"download", "data-method", "data-turbo-method", "hx-post"} & given.keys()
        if tag == "a" and (target := given.get("href")) and not scripted:
            self.targets.append(target)
