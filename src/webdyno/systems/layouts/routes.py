"""What can be asked of an application: routes of its sources and of OpenAPI, and links."""

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import quote

import yaml

from webdyno.core.text import split_url
from webdyno.systems.containers.compose_file import plain_values
from webdyno.systems.layouts.app import FoundApp, first_of
from webdyno.systems.layouts.source_routes import (
    MOST_ROUTES,
    STAYS_AT_HOME,
    WITHOUT_VALUE,
    Route,
    route_of,
    routes_of_sources,
)
from webdyno.systems.tables import Table, as_list, as_table, is_table, read_text, table

FILES = (
    *("openapi.json", "openapi.yaml", "openapi.yml", "swagger.json", "swagger.yaml", "swagger.yml"),
)
FOLDERS = ("", "docs/", "api/", "public/", "static/", "src/main/resources/static/", "openapi/")
SERVED = (
    *("/openapi.json", "/v3/api-docs", "/swagger/v1/swagger.json", "/swagger.json"),
    *("/api/openapi.json", "/api/schema/?format=json", "/q/openapi?format=json"),
    *("/api/v1/openapi.json", "/documentation/json", "/docs/json", "/api-json", "/docs-json"),
    *("/api/docs-json", "/swagger/doc.json", "/doc"),
)
"""Where FastAPI, Spring, ASP.NET, Flask, Django's and Quarkus' extensions serve the document, and
those of Fastify, NestJS, Gin and Hono."""
NEEDS_LOGIN = "needs a login"
SOURCES = "its sources"
MOST_UNTRIED = 6
MOST_LINKS = 12


def known_routes(app: FoundApp, folder: Path) -> tuple[str, list[Route]]:
    """Return the file that names routes, an OpenAPI document first, and the routes."""
    name = first_of(folder, *(f"{where}{file}" for where in FOLDERS for file in FILES))
    if name and (routes := routes_of_openapi(read_text(folder / name) or "")):
        return name, routes
    if app.paths != ("/",):
        return app.by, [route_of("GET", path, {}) for path in app.paths]
    return SOURCES, routes_of_sources(folder)


def untried_paths(app: FoundApp, folder: Path) -> list[str]:
    """Return some paths that may well be there, where nobody can ask for them."""
    _, routes = known_routes(app, folder)
    paths = [route.filled for route in routes if route.filled and not route.lacks]
    return paths[:MOST_UNTRIED] or ["/"]


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
    pairs = (f"{quote(key)}={quote(str(value), safe='')}" for key, value in query.items())
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


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.targets: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep where a link leads, unless it downloads, or posts by script."""
        given = dict(attrs)
        scripted = {"download", "data-method", "data-turbo-method", "hx-post"} & given.keys()
        if tag == "a" and (target := given.get("href")) and not scripted:
            self.targets.append(target)
