"""What can be asked of an application: routes of its sources, of an OpenAPI document, and links."""

import json
import re
from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import yaml

from webdyno.core.text import split_url
from webdyno.systems.containers.compose_file import plain_values
from webdyno.systems.layouts.app import FoundApp
from webdyno.systems.layouts.files import first_of, read_text, sources, table

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
    r"<(?:(?P<type>\w+):)?(?P<angle>\w+)>|\{(?P<brace>\w+)(?::[^}]*)?\}|:(?P<colon>\w+)"
)
A_NUMBER = re.compile(r"(?:^|_)(?:id|pk|page|number|num|no|n|year)$|Id$|ID$")
STAYS_AT_HOME = re.compile(
    r"log[-_]?out|sign[-_]?out|delete|remove|destroy|unsubscribe|restore|reset|revoke|shutdown"
    r"|snapshot|debug|livereload",
    re.IGNORECASE,
)
"""In a path: asking for it may change something, or it is none of the application's pages."""
FILES = (
    *("openapi.json", "openapi.yaml", "openapi.yml", "swagger.json", "swagger.yaml", "swagger.yml"),
)
FOLDERS = ("", "docs/", "api/", "public/", "static/", "src/main/resources/static/", "openapi/")
SERVED = (
    *("/openapi.json", "/v3/api-docs", "/swagger/v1/swagger.json", "/swagger.json"),
    *("/api/openapi.json", "/api/schema/?format=json", "/q/openapi?format=json"),
)
"""Where FastAPI, Spring, ASP.NET, Flask, Django's and Quarkus' extensions serve the document."""
WITHOUT_VALUE = "no example for {names}"
NEEDS_LOGIN = "needs a login"
IT_WRITES = "writes"
MAY_WRITE = "may change something, by its name"
SOURCES = "its sources"
MOST_UNTRIED = 6
MOST_ROUTES = 200
MOST_LINKS = 12


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
    """Give the routes that sources name, in their order."""
    routes: dict[tuple[str, str], Route] = {}
    for file in sources(folder):
        for match in IN_SOURCES.finditer(read_text(file) or ""):
            writing = WRITES.search(match[0].partition(match["path"])[0])
            method = (match["method"] or (writing[0] if writing else "GET")).upper()
            path = match["path"].replace("{$}", "")
            if "*" not in path and "$" not in path:
                routes.setdefault((method, path), _route(method, path, {}))
    return list(routes.values())[:MOST_ROUTES]


def prefixes_of_sources(folder: Path) -> list[str]:
    """Give what groups of routes stand below, as sources name it; of few also one in another."""
    prefixes = list(
        dict.fromkeys(
            group["path"]
            for file in sources(folder)
            for group in PREFIX.finditer(read_text(file) or "")
        )
    )[:MOST_PREFIXES]
    return prefixes + [outer + inner for outer in prefixes for inner in prefixes if outer != inner]


def _route(method: str, path: str, examples: Mapping[str, object]) -> Route:
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


def known_routes(app: FoundApp, folder: Path) -> tuple[str, list[Route]]:
    """Give the routes that files name, and what they are by; of an OpenAPI document first."""
    name = first_of(folder, *(f"{where}{file}" for where in FOLDERS for file in FILES))
    if name and (routes := routes_of_openapi(read_text(folder / name) or "")):
        return name, routes
    if app.paths != ("/",):
        return app.by, [Route("GET", path, path) for path in app.paths]
    return SOURCES, routes_of_sources(folder)


def untried_paths(app: FoundApp, folder: Path) -> list[str]:
    """Give some paths that may well be there, where nobody can ask for them."""
    _, routes = known_routes(app, folder)
    return [route.filled for route in routes if route.filled and not route.lacks][
        :MOST_UNTRIED
    ] or ["/"]


def routes_of_openapi(text: str) -> list[Route]:
    """Give the routes of an OpenAPI document, JSON or YAML; none where it isn't one."""
    try:
        data: Any = json.loads(text) if text.lstrip().startswith("{") else plain_values(text)
    except (ValueError, RecursionError, yaml.YAMLError):
        return []
    if not isinstance(data, dict) or not ({"openapi", "swagger"} & data.keys()):
        return []
    base = _base_of(data)
    routes = []
    for path, item in table(data, "paths").items():
        for method, operation in table(table(data, "paths"), path).items():
            if method in {"get", "post", "put", "patch", "delete"} and isinstance(operation, dict):
                routes.append(_operation(data, base + str(path), method.upper(), operation, item))
    return routes[:MOST_ROUTES]


def _base_of(data: Mapping[str, Any]) -> str:
    if isinstance(base := data.get("basePath"), str):
        return base.rstrip("/")
    servers = data.get("servers")
    first = servers[0] if isinstance(servers, list) and servers else None
    return split_url(str(table(first).get("url", ""))).path.rstrip("/")


def _operation(
    data: Mapping[str, Any], path: str, method: str, operation: Mapping[str, Any], item: object
) -> Route:
    security = operation.get("security", data.get("security"))
    is_closed = isinstance(security, list) and bool(security) and {} not in security
    examples: dict[str, object] = {}
    query: dict[str, object] = {}
    lacking = []
    both = [item.get("parameters") if isinstance(item, dict) else None, operation.get("parameters")]
    for node in (listed for some in both if isinstance(some, list) for listed in some):
        parameter = _resolved(data, node)
        name, example = str(parameter.get("name")), _example(data, parameter)
        if parameter.get("in") == "path" and example is not None:
            examples[name] = example
        elif parameter.get("in") in {"query", "header"} and parameter.get("required"):
            lacking += [name] if example is None or parameter.get("in") == "header" else []
            query |= {name: example} if parameter.get("in") == "query" else {}
    route = _route(method, path, examples)
    if route.filled is not None and is_closed:
        route = route._replace(lacks=NEEDS_LOGIN)
    if route.filled is None or not (query or lacking):
        return route
    if lacking:
        return route._replace(filled=None, lacks=WITHOUT_VALUE.format(names=", ".join(lacking)))
    query_text = "&".join(
        f"{quote(key)}={quote(str(value), safe='')}" for key, value in query.items()
    )
    return route._replace(filled=f"{route.filled}?{query_text}")


def _resolved(data: Mapping[str, Any], node: object) -> dict[str, Any]:
    """Follow one reference, such as `#/components/parameters/id`."""
    resolved = node if isinstance(node, dict) else {}
    if isinstance(ref := resolved.get("$ref"), str) and ref.startswith("#/"):
        return table(data, *ref[2:].split("/"))
    return resolved


def _example(data: Mapping[str, Any], parameter: Mapping[str, Any]) -> object:
    """Give a value for a parameter: its example, its default, the first that it may be, or 1."""
    schema = _resolved(data, parameter.get("schema")) or parameter
    several = [*table(parameter, "examples").values()]
    for source in (parameter, *several, schema):
        for key in ("example", "value", "default"):
            if isinstance(source, dict) and isinstance(source.get(key), str | int | float):
                example: object = source[key]
                return example
    of_schema = schema.get("examples")
    choices = schema.get("enum") or (of_schema if isinstance(of_schema, list) else None)
    if isinstance(choices, list) and choices:
        return choices[0]
    if schema.get("type") == "integer":
        least = schema.get("minimum", 1)
        return max(1, least) if isinstance(least, int) else 1
    return None


def links_of(page: bytes, path: str) -> list[str]:
    """Give the paths of the same server that a page links to, without what may change something."""
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


class _Links(HTMLParser):
    """Collects what the links of a page lead to."""

    def __init__(self) -> None:
        super().__init__()
        self.targets: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep where a link leads, unless it is one to download or to post by script."""
        given = dict(attrs)
        scripted = {"download", "data-method", "data-turbo-method", "hx-post"} & given.keys()
        if tag == "a" and (target := given.get("href")) and not scripted:
            self.targets.append(target)
