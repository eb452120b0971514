"""How users of an application log in: by the form that its pages lead to, or by a route of JSON."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple

from webdyno.core.text import split_url
from webdyno.systems.layouts.app import FoundApp
from webdyno.systems.layouts.files import read_text, sources
from webdyno.systems.layouts.routes import Route

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
OF_TOKEN = re.compile(
    r"""\b((?:access|id|auth)_?[tT]oken|jwt|token)\b["']?\s*(?:[:},\]]|=>)""",
)


class Login(NamedTuple):
    """What users do before they are measured."""

    by: str
    """What it was found by, as in `the form of /login`."""
    page: str
    """The path of the form, or of what is posted to."""
    steps: tuple[Mapping[str, Any], ...]
    """Entries of `[[login]]`."""
    headers: Mapping[str, str] = {}
    """Of the requests afterwards."""
    doubt: str = ""
    """What of it is a guess."""


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
    for form_field in form.fields:
        if form_field.kind == "hidden" and len(form_field.value) > LONGEST_CONSTANT:
            name = re.sub(r"\W+", "_", form_field.name).strip("_") or "token"
            of_name = (
                form_field.name
                if re.fullmatch(r"[\w-]+", form_field.name)
                else f'"{form_field.name}"'
            )
            captured[name] = {"css": f"input[name={of_name}]"}
            sent[form_field.name] = f"{{{{{name}}}}}"
        elif form_field.kind == "password":
            sent[form_field.name] = f"${{env:{PASSWORD}}}"
        elif form_field.kind in {"hidden", "submit"}:
            sent[form_field.name] = form_field.value
        elif form_field.kind in {"text", "email", "tel"}:
            sent[form_field.name] = f"${{env:{NAME}}}"
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
    text = _behind(path, folder)
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


def _behind(path: str, folder: Path) -> str:
    """Give what sources say behind a route that is posted to."""
    route = re.compile(rf"post\W.{{0,40}}?[\"'`]{re.escape(path)}[\"'`]", re.IGNORECASE)
    for file in sources(folder):
        text = read_text(file) or ""
        if match := route.search(text):
            return text[match.end() : match.end() + READS]
    return ""


class _Field(NamedTuple):
    """An input of a form."""

    kind: str
    name: str
    value: str


@dataclass
class _Form:
    """A form of a page."""

    action: str
    method: str
    fields: list[_Field] = field(default_factory=list)

    @property
    def kinds(self) -> list[str]:
        return [form_field.kind for form_field in self.fields]


class _Forms(HTMLParser):
    """Collects the forms of a page."""

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
