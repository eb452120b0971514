"""What can be asked of an application: routes of its sources and of OpenAPI, links, and logins."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import yaml

from webdyno.core.text import split_url
from webdyno.systems.containers.compose_file import plain_values
from webdyno.systems.layouts.app import FoundApp, Login, first_of, sources
from webdyno.systems.tables import Table, as_list, as_table, is_table, read_text, table

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
    """Return the routes that sources name, in their order."""
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
    """Return the paths below which sources have groups of routes; of few also one in another."""
    texts = (read_text(file) or "" for file in sources(folder))
    paths = dict.fromkeys(group["path"] for text in texts for group in PREFIX.finditer(text))
    prefixes = list(paths)[:MOST_PREFIXES]
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
    """Return the file that names routes, an OpenAPI document first, and the routes."""
    name = first_of(folder, *(f"{where}{file}" for where in FOLDERS for file in FILES))
    if name and (routes := routes_of_openapi(read_text(folder / name) or "")):
        return name, routes
    if app.paths != ("/",):
        return app.by, [Route("GET", path, path) for path in app.paths]
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
        parameter = _follow_reference(data, node)
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
    pairs = (f"{quote(key)}={quote(str(value), safe='')}" for key, value in query.items())
    return route._replace(filled=f"{route.filled}?{'&'.join(pairs)}")


def _follow_reference(data: Table, node: object) -> Table:
    """Follow one reference, such as `#/components/parameters/id`."""
    target = as_table(node)
    if isinstance(ref := target.get("$ref"), str) and ref.startswith("#/"):
        return table(data, *ref[2:].split("/"))
    return target


def _example(data: Table, parameter: Table) -> object:
    """Return a value for a parameter: its example, its default, the first that it may be, or 1."""
    schema = _follow_reference(data, parameter.get("schema")) or parameter
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


NAME, PASSWORD = "LOGIN_NAME", "LOGIN_PASSWORD"
"""Variables of the environment that hold a user's name and password."""
LOGINS = re.compile(
    r"(?:^|[/_.-])(?:(?:users?|account|do)?_?log[-_]?(?:in|on)|sign[-_]?in|auth|sessions?|accounts?)"
    r"(?:[/_.-]|$)",
    re.IGNORECASE,
)
ROUTES = (
    re.compile(r"log[-_]?in|sign[-_]?in", re.IGNORECASE),
    re.compile(r"(?:tokens?|sessions?|auth|authenticate)/?$", re.IGNORECASE),
)
"""In paths that are posted to: where users log in, the likeliest first."""
LONGEST_CONSTANT = 15
"""Letters of a hidden field; a longer one is a token."""
OF_RUBY = re.compile(r"\b(?:puma|ruby|rails|rackup|thin|unicorn|thrust|falcon)\b")
"""Its frameworks redirect with 303 after a POST, others with 302."""
READS = 1_500
"""Letters behind a route in which its function may be."""
NEAR = 100
OF_NAME = re.compile(r"\b(e-?mail|user_?name|userName)\b"), re.compile(r"\b(login|user|name)\b")
OF_PASSWORD = re.compile(r"\b(password|passwd|pass)\b")
OAUTH_FORM = re.compile(r"\bOAuth2PasswordRequestForm\b")
"""FastAPI's form of RFC 6749, section 4.3.2, with names of its own for both."""
OF_TOKEN = re.compile(r"""\b((?:access|id|auth)_?[tT]oken|jwt|token)\b["']?\s*(?:[:},\]]|=>)""")


def is_login(path: str) -> bool:
    """Whether a page of this path is likely to be for those who haven't logged in."""
    return LOGINS.search(path) is not None


def login_by_form(page: bytes, path: str, app: FoundApp) -> Login | None:
    """Find the form with one password; None where a page has none."""
    parser = _Forms()
    parser.feed(page.decode("utf-8", "replace"))
    form = next((form for form in parser.forms if form.kinds.count("password") == 1), None)
    if form is None or "post" not in form.method.lower():
        return None
    path = path.partition("?")[0]
    action = split_url(form.action, f"http://here{path}")
    target = (action.path or "/") + (f"?{action.query}" if action.query else "")
    captured: dict[str, Mapping[str, str]] = {}
    sent: dict[str, str] = {}
    for kind, name, value in form.fields:
        if kind == "hidden" and len(value) > LONGEST_CONSTANT:
            placeholder = re.sub(r"\W+", "_", name).strip("_") or "token"
            of_name = name if re.fullmatch(r"[\w-]+", name) else f'"{name}"'
            captured[placeholder] = {"css": f"input[name={of_name}]"}
            sent[name] = f"{{{{{placeholder}}}}}"
        elif kind == "password":
            sent[name] = f"${{env:{PASSWORD}}}"
        elif kind in {"hidden", "submit"}:
            sent[name] = value
        elif kind in {"text", "email", "tel"}:
            sent[name] = f"${{env:{NAME}}}"
    posts: dict[str, Any] = {"path": target, "method": "POST", "form": sent}
    posts["status"] = 303 if OF_RUBY.search(app.start or "") else 302
    first = [{"path": path, "capture": captured}] if captured else []
    return Login(f"the form of {path}", path, (*first, posts))


def login_by_json(routes: Sequence[Route], folder: Path, prefix: str = "") -> Login | None:
    """Guess from sources how a token is given for name and password; None where no path is.

    `prefix`: what other paths of the sources are found below.
    """
    posted = [route.path for route in routes if route.method == "POST" and route.path.isprintable()]
    path = next((path for likely in ROUTES for path in posted if likely.search(path)), None)
    if path is None or not re.fullmatch(r"/[\w./-]*", path):
        return None
    route = re.compile(rf"post\W.{{0,40}}?[\"'`]{re.escape(path)}[\"'`]", re.IGNORECASE)
    places = ((text, route.search(text)) for text in map(read_text, sources(folder)) if text)
    text = next((text[match.end() :][:READS] for text, match in places if match), "")
    password = OF_PASSWORD.search(text)
    begin = max(0, password.start() - NEAR) if password else 0
    near = text[begin : password.end() + NEAR] if password else text
    name = next(filter(None, (likely.search(near) for likely in OF_NAME)), None)
    token = OF_TOKEN.search(text)
    is_form = OAUTH_FORM.search(text) is not None
    sent = {
        name[1] if name and not is_form else "username": f"${{env:{NAME}}}",
        password[1] if password and not is_form else "password": f"${{env:{PASSWORD}}}",
    }
    path = path if path.startswith(f"{prefix}/") else prefix + path
    captured = {"token": {"json": f"$.{token[1] if token else 'token'}"}}
    body = "form" if is_form else "json"
    step = {"path": path, "method": "POST", body: sent, "capture": captured}
    headers, doubt = {"Authorization": "Bearer {{token}}"}, f"{', '.join(sent)} and token"
    return Login(f"POST {path} of its sources", path, (step,), headers, doubt)


class _Field(NamedTuple):
    kind: str
    name: str
    value: str


@dataclass
class _Form:
    action: str
    method: str
    fields: list[_Field] = field(default_factory=list)

    @property
    def kinds(self) -> list[str]:
        return [kind for kind, *_ in self.fields]


class _Forms(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.forms: list[_Form] = []
        self.is_inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin a form, or keep a field of the one that is open."""
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.forms.append(_Form(given.get("action", ""), given.get("method", "")))
            self.is_inside = True
        elif tag in {"input", "button"} and self.is_inside and given.get("name"):
            kind = given.get("type", "text" if tag == "input" else "submit").lower()
            self.forms[-1].fields.append(_Field(kind, given["name"], given.get("value", "")))

    def handle_endtag(self, tag: str) -> None:
        """End a form."""
        self.is_inside = self.is_inside and tag != "form"
