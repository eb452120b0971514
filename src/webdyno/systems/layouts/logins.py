"""How users of an application log in, as its forms, its sources and OpenAPI documents say."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from webdyno.core.pages import PageParser
from webdyno.core.session import PLACE
from webdyno.core.tables import as_table, json_table, read_text, table
from webdyno.core.text import SECRET, split_url
from webdyno.systems.layouts.app import FoundApp, Login, sources
from webdyno.systems.layouts.routes import Route, follow_reference

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
TOKEN_NAME = re.compile(r"(?:access|id|auth)_?token|jwt|token", re.IGNORECASE)
LONGEST_CONSTANT = 15
"""Letters of a hidden field; a longer one is a token."""
OF_RUBY = re.compile(r"\b(?:puma|ruby|rails|rackup|thin|unicorn|thrust|falcon)\b")
"""Its frameworks redirect with 303 after a POST, others with 302."""
READS = 1_500
"""Letters behind a route in which its function may be."""
NEAR = 100
MOST_PAGES = 3
OF_NAME = re.compile(r"\b(e-?mail|user_?name|userName)\b"), re.compile(r"\b(login|user|name)\b")
OF_PASSWORD = re.compile(r"\b(password|passwd|pass)\b")
OAUTH_FORM = re.compile(r"\bOAuth2PasswordRequestForm\b")
"""FastAPI's form of RFC 6749, section 4.3.2, with names of its own for both."""
AS_FORM = re.compile(
    r"\bForm\(|\.form\b|\bPostForm\(|\bFormValue\(|x-www-form-urlencoded|\bAxumForm\(|\bForm<"
)
"""In a function: it reads a form."""
LEADS = re.compile(r"redirect|SEE_OTHER|Location", re.IGNORECASE)
SEE_OTHER, TEMPORARY_REDIRECT = 303, 307
STATUS_OF_REDIRECT = re.compile(
    r"(?<![A-Za-z0-9])(?P<code>30[12378])(?![0-9])|(?P<other>SEE_?OTHER|SeeOther|Redirect::to\()|(?P<found>\bRedirectResponse\()"
)
"""By number or by name; Starlette's own is 307 without one."""
OF_TOKEN = re.compile(r"""\b((?:access|id|auth)_?[tT]oken|jwt|token)\b["']?\s*(?:[:},\]]|=>)""")


def is_login(path: str) -> bool:
    """Whether a page of this path is likely to be for those who haven't logged in."""
    return LOGINS.search(path) is not None


def login_pages(routes: Sequence[Route], prefix: str = "") -> list[str]:
    """Return the paths of sources that are likely to show a form for logging in."""
    paths = [route.path for route in routes if route.method == "GET" and route.filled]
    return [f"{prefix}{path}" for path in paths if ROUTES[0].search(path)][:MOST_PAGES]


def _behind_route(folder: Path, path: str) -> str:
    """Return the text of the function that is posted to; empty where it isn't found."""
    route = re.compile(rf"post\W.{{0,40}}?[\"'`]{re.escape(path)}/?[\"'`]", re.IGNORECASE)
    places = ((text, route.search(text)) for text in map(read_text, sources(folder)) if text)
    return next((text[match.end() :][:READS] for text, match in places if match), "")


def _status_of_redirect(text: str) -> int | None:
    """Return the status with which a function leads on; None where it doesn't say one."""
    if not LEADS.search(text) or (match := STATUS_OF_REDIRECT.search(text)) is None:
        return None
    if match["found"]:
        given = STATUS_OF_REDIRECT.search(text, match.end())
        is_given = given and not given["found"]
        return int(given["code"] or SEE_OTHER) if given and is_given else TEMPORARY_REDIRECT
    return int(match["code"] or SEE_OTHER)


def login_by_form(
    page: bytes, path: str, app: FoundApp, folder: Path | None = None
) -> Login | None:
    """Find the form with one password; None where a page has none.

    `folder` has the sources of what the form is sent to.
    """
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
        # What the page's author wrote there names no variables of who measures it.
        is_filled = SECRET.search(value) or PLACE.search(value)
        if kind == "hidden" and (is_filled or len(value) > LONGEST_CONSTANT):
            placeholder = re.sub(r"\W+", "_", name).strip("_") or "token"
            of_name = name if re.fullmatch(r"[\w-]+", name) else f'"{name}"'
            captured[placeholder] = {"css": f"input[name={of_name}]"}
            sent[name] = f"{{{{{placeholder}}}}}"
        elif kind == "password":
            sent[name] = f"${{env:{PASSWORD}}}"
        elif kind in {"hidden", "submit"} and not is_filled:
            sent[name] = value
        elif kind in {"text", "email", "tel"}:
            sent[name] = f"${{env:{NAME}}}"
    posts: dict[str, Any] = {"path": target, "method": "POST", "form": sent}
    usual = 303 if OF_RUBY.search(app.start or "") else 302
    said = _status_of_redirect(_behind_route(folder, action.path)) if folder else None
    posts["status"] = said or usual
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
    text = _behind_route(folder, path)
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
    body = "form" if is_form or AS_FORM.search(text) else "json"
    step: dict[str, Any] = {"path": path, "method": "POST", body: sent}
    if token is None and (status := _status_of_redirect(text)):
        doubt = ", ".join(sent)
        return Login(f"POST {path} of its sources", path, ({**step, "status": status},), {}, doubt)
    step["capture"] = {"token": {"json": f"$.{token[1] if token else 'token'}"}}
    headers, doubt = {"Authorization": "Bearer {{token}}"}, f"{', '.join(sent)} and token"
    return Login(f"POST {path} of its sources", path, (step,), headers, doubt)


def login_by_openapi(text: str) -> Login | None:
    """Read how an OpenAPI document has users log in; None where nothing in it takes a password."""
    data = json_table(text)
    candidates = []
    for path, item in table(data, "paths").items():
        post = table(as_table(item), "post")
        for kind, body in table(post, "requestBody", "content").items():
            names = list(table(follow_reference(data, as_table(body).get("schema")), "properties"))
            password = next(filter(OF_PASSWORD.fullmatch, names), None)
            likely = [name for of_name in OF_NAME for name in names if of_name.fullmatch(name)]
            is_likely = any(pattern.search(path) for pattern in ROUTES)
            if password and likely and is_likely and re.fullmatch(r"/[\w./-]*", path):
                candidates.append((path, kind, likely[0], password, table(post, "responses")))
    if not candidates:
        return None
    path, kind, name, password, responses = min(
        candidates, key=lambda each: ROUTES[0].search(each[0]) is None
    )
    sent = {name: f"${{env:{NAME}}}", password: f"${{env:{PASSWORD}}}"}
    if kind == "application/x-www-form-urlencoded":
        step: dict[str, Any] = {"path": path, "method": "POST", "form": sent}
    else:
        step = {"path": path, "method": "POST", "json": sent}
    by = f"POST {path} of its OpenAPI document"
    status = next((code for code in ("200", "201", "303", "302") if code in responses), "200")
    content = as_table(responses.get(status)).get("content")
    schema = as_table(table(as_table(content), "application/json").get("schema"))
    names = list(table(follow_reference(data, schema), "properties"))
    token = next((name for name in names if TOKEN_NAME.fullmatch(name)), None)
    step |= {"status": int(status)} if status != "200" else {}
    if token is None:
        return Login(
            by, path, (step,), {}, "no token is in its responses: where it keeps the session"
        )
    step["capture"] = {"token": {"json": f"$.{token}"}}
    return Login(by, path, (step,), {"Authorization": "Bearer {{token}}"})


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


class _Forms(PageParser):
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
