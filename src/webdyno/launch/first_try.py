"""Builds and starts what `webdyno init` found, once, asks it, and ends it."""

import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from webdyno.config import Catalogue, read_settings
from webdyno.core.errors import UserError
from webdyno.core.load import Load
from webdyno.core.request import WrittenRequest
from webdyno.core.service import OK
from webdyno.core.tables import is_table
from webdyno.core.text import split_url
from webdyno.host.this_machine import Testbed
from webdyno.host.workspace import Workspace
from webdyno.launch.arrangement import OneSystem, one_system
from webdyno.launch.caller import Caller
from webdyno.launch.consent import provide
from webdyno.load.asking import Conversation, NoResponse
from webdyno.load.loadgen import Loadgen
from webdyno.measure.planned import planned_requests, planned_users
from webdyno.measure.preflight import ask_as_user
from webdyno.servers.ready import FirstRequest
from webdyno.servers.starting import open_stack
from webdyno.systems.command import needs_of_services
from webdyno.systems.containers.image import check_containers, refuse_containers_of_others
from webdyno.systems.kinds import KIND_OF_APP
from webdyno.systems.layouts.app import FoundApp, Login
from webdyno.systems.layouts.logins import (
    NAME,
    PASSWORD,
    is_login,
    login_by_form,
    login_by_json,
    login_by_openapi,
    login_pages,
)
from webdyno.systems.layouts.routes import (
    NEEDS_LOGIN,
    OPENAPI_PATHS,
    SOURCES,
    Route,
    known_routes,
    links_of,
    prefixes_of_sources,
    routes_of_openapi,
    routes_of_sources,
)
from webdyno.systems.repository import WORKING_TREE, Repository
from webdyno.systems.revision import Recipe, build_revision, folder_inside_of, let_reader_in
from webdyno.systems.target import users_environment
from webdyno.systems.variants import OWN_SITE

ANSWERS_WITHIN_S, ASKS_FOR_S = 5.0, 60.0
MOST_REQUESTS = 6
MOST_ASKED = 40
FEW = 2
"""With fewer requests than these, the links of the first page are tried."""
REDIRECTS = range(300, 400)
NOT_FOUND = 404
LONGEST_EMPTY = 1_000
"""Bytes of a response that may have nothing in it."""
DENIED = {401, 403, 407}
OVER_TLS = {"X-Forwarded-Proto": "https"}
"""What a proxy says that speaks TLS: frameworks that want TLS believe it."""


class PageResponse(NamedTuple):
    """A response, as far as it matters here."""

    path: str
    status: int | None
    """None for none."""
    size_bytes: int
    took_s: float
    content_type: str
    leads_to: str
    """Of a redirect."""
    error: str
    body: bytes

    @property
    def is_valid(self) -> bool:
        return self.status is not None and OK <= self.status < REDIRECTS.start

    @property
    def is_empty(self) -> bool:
        """Whether it is a list without an entry, by itself or as all of a page of them."""
        if "json" not in self.content_type or len(self.body) > LONGEST_EMPTY:
            return False
        try:
            data = json.loads(self.body)
        except (ValueError, RecursionError):
            return False
        lists = (
            [value for value in data.values() if isinstance(value, list)]
            if data and is_table(data)
            else [data]
        )
        return bool(lists) and not any(lists) and all(isinstance(value, list) for value in lists)

    @property
    def why_not(self) -> str:
        """Why it can't be measured."""
        if self.status is None:
            return self.error
        if self.status in REDIRECTS:
            to = split_url(self.leads_to).path if self.needs_login else self.leads_to
            return f"leads to {to}" + (f": {NEEDS_LOGIN}" if self.needs_login else "")
        return NEEDS_LOGIN if self.status in DENIED else f"answers {self.status}"

    @property
    def needs_login(self) -> bool:
        """Whether it is for users who have logged in."""
        if self.status in DENIED:
            return True
        return self.status in REDIRECTS and is_login(split_url(self.leads_to).path)


@dataclass
class FirstTry:
    """What was seen of an application that was started once."""

    up_after_s: float
    by: str = ""
    """Where its routes were found."""
    headers: dict[str, str] = field(default_factory=dict)
    """That requests need, next to those that were known."""
    valid: list[PageResponse] = field(default_factory=list)
    excluded: dict[str, list[str]] = field(default_factory=dict)
    """By reason: what isn't requested."""
    login: Login | None = None
    """How users get in, where that was found."""
    behind: list[str] = field(default_factory=list)
    """Paths that need it."""
    has_logged_in: bool | None = None
    """Whether a user got in so; None where nobody tried."""

    @property
    def requests(self) -> dict[str, int | None]:
        """The paths, with each status that isn't the usual one."""
        valid = {
            response.path: response.status if response.status != OK else None
            for response in self.valid
        }
        if self.login is None:
            return valid
        page = self.login.page
        others = {path: value for path, value in valid.items() if path.partition("?")[0] != page}
        return dict.fromkeys(self.behind[:MOST_REQUESTS]) | others


def try_out(
    app: FoundApp, folder: Path, repository: Repository, paths: Sequence[str], caller: Caller
) -> FirstTry:
    """Build the working tree, start it, and ask for `paths`, or for what can be found.

    Raise OperationError, with the end of the log, where it isn't built or doesn't start, UserError
    for root in a repository of another user.
    """
    if repository.user is not None and not repository.user.called_sudo:
        raise UserError(
            f"{repository.top} belongs to {repository.user.name}, and would be built and started: "
            f"call webdyno as {repository.user.name}"
        )
    within = folder.resolve().relative_to(repository.top) / app.dir
    environment = users_environment(repository.top, app.environment)
    revision = repository.revision(WORKING_TREE, str(folder))
    catalogue = Catalogue.load()
    provide([], [], needs_of_services(app.services.values(), catalogue.services), caller)
    way, text = next((key, said) for key in KIND_OF_APP if (said := getattr(app, key)) is not None)
    if way == "image":
        refuse_containers_of_others(repository, str(folder))
    recipe = Recipe(app.build, within, environment)
    top = build_revision(repository, revision, recipe, "the working tree", caller.notify).resolve()
    let_reader_in(way, repository.user, top)
    files = folder_inside_of(top, within, str(folder / app.dir))
    if way == "image":
        check_containers(text, files, top, str(folder))
    own = {
        "dir": str(files),
        "environment": dict(app.environment),
        "services": dict(app.services),
        "setup": app.setup,
        "prepare": app.prepare if way == "start" else None,
        "root": app.root,
        "ready_within": app.ready_within_s,
    }
    own = {key: value for key, value in own.items() if value}
    system = one_system(f"{KIND_OF_APP[way]}:{text}", own, catalogue, {}, [], caller, top)
    site, testbed = system.catalogue.site(OWN_SITE), Testbed()
    # Whatever is answered: to see that is what it was started for.
    first = FirstRequest(
        paths[0] if paths else app.paths[0], lambda _status, _body: True, dict(app.headers)
    )
    with (
        Workspace() as scratch,
        open_stack(
            system.stack,
            read_settings(system.stack, [], site),
            site,
            folder=scratch.make_kept(),
            testbed=testbed,
            asked=first,
        ) as running,
        Conversation(
            running.url, Load(timeout_s=ANSWERS_WITHIN_S), testbed.client_entry()
        ) as conversation,
    ):
        trial = FirstTry(running.ready_s)
        _Asking(conversation, app, files, trial).ask(paths)
        if trial.login and {NAME, PASSWORD} <= os.environ.keys():
            _log_in(trial, trial.login, app, system, running.url)
    return trial


def _log_in(trial: FirstTry, login: Login, app: FoundApp, system: OneSystem, url: str) -> None:
    """Have one user log in, and see what is answered behind that."""
    load = Load(
        timeout_s=ANSWERS_WITHIN_S, headers={**app.headers, **trial.headers, **login.headers}
    )
    steps = [WrittenRequest.model_validate(step) for step in login.steps]
    asked = [WrittenRequest(path=path) for path in trial.behind]
    as_user = replace(system, load=load, requests=asked, login=steps)
    users = planned_users(as_user, asked, load, os.environ)
    requests = planned_requests(asked, load, system.catalogue.site(OWN_SITE), os.environ)
    if users is None:
        return
    with Loadgen((), Testbed().client_entry()) as engine:
        responses = ask_as_user(url, requests, load, users, engine)
    if refused := next((its for its in responses if its.is_login), None):
        trial.login = login._replace(doubt=f"{refused.path} isn't accepted: {refused.error}")
        trial.has_logged_in = False
        return
    trial.has_logged_in = True
    for response in responses:
        if response.status is None or not OK <= response.status < REDIRECTS.start:
            trial.behind.remove(response.path)
            why = f"answers {response.status}" if response.status else response.error
            trial.excluded.setdefault(why or NEEDS_LOGIN, []).append(response.path)


@dataclass
class _Asking:
    """Asks an application that is up."""

    conversation: Conversation
    app: FoundApp
    files: Path
    trial: FirstTry
    asked: dict[str, PageResponse] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)
    """Of those, the paths that were looked at, to be written or excluded."""
    closed: dict[str, str] = field(default_factory=dict)
    """Paths that need a login, each with why."""
    prefix: str = ""
    """The last one below which a path of the sources was found."""
    document: str = ""
    """OpenAPI's, as it is served."""
    began: float = field(default_factory=time.monotonic)

    def ask(self, paths: Sequence[str]) -> None:
        first = self._see(paths[0] if paths else "/")
        if first.status in REDIRECTS and first.leads_to.startswith("https://"):
            self.trial.headers |= OVER_TLS
            self.asked.clear()
        for path in paths:
            self._take(path)
        if not paths:
            self._take_found()
        self._find_login()

    def _take_found(self) -> None:
        self._take("/")
        if self.asked["/"].status in REDIRECTS:
            self._take(_within(self.asked["/"].leads_to))
        self.trial.by, routes = self._routes()
        for route in routes:
            if route.filled is None:
                self._exclude(route.lacks, route.label)
            elif route.lacks:
                self.closed[route.filled] = route.lacks
            elif self._has_room():
                self._take(
                    self._below_prefix(route.filled) if self.trial.by == SOURCES else route.filled
                )
        pages = (page for page in self.asked.values() if page.is_valid)
        html = [page for page in pages if "html" in page.content_type]
        links = [link for page in html for link in links_of(page.body, page.path)]
        if len(self.trial.valid) < FEW and links:
            self.trial.by = "links of its pages"
            for path in links:
                if self._has_room():
                    self._take(path)

    def _below_prefix(self, path: str) -> str:
        """Below the prefix of its group, where it isn't found without one."""
        if self._see(path).status != NOT_FOUND:
            return path
        for prefix in (self.prefix, *prefixes_of_sources(self.files)):
            if self._has_room() and self._see(prefix + path).status != NOT_FOUND:
                self.prefix = prefix
                return prefix + path
        return path

    def _find_login(self) -> None:
        """See how users get in, where something needs that; else it is excluded."""
        targets = [
            _within(response.leads_to)
            for response in list(self.asked.values())
            if response.needs_login and response.leads_to
        ]
        routes = routes_of_sources(self.files)
        if self.closed:
            targets += login_pages(routes, self.prefix)
        pages = [self._see(target) for target in dict.fromkeys(targets)]
        forms = (
            login_by_form(page.body, page.path, self.app, self.files)
            for page in pages
            if page.is_valid
        )
        login = next(filter(None, forms), None)
        if self.closed and login is None:
            login = login_by_openapi(self.document) or login_by_json(
                routes, self.files, self.prefix
            )
        self.trial.login = login if self.closed else None
        for path, why in self.closed.items():
            if login:
                self.trial.behind.append(path)
            else:
                self._exclude(why, path)

    def _has_room(self) -> bool:
        """Whether more may be asked for than what the user names."""
        is_late = time.monotonic() > self.began + ASKS_FOR_S
        return (
            len(self.trial.valid) < MOST_REQUESTS and len(self.asked) < MOST_ASKED and not is_late
        )

    def _routes(self) -> tuple[str, list[Route]]:
        """By the best that says of them, and what that is."""
        by, routes = known_routes(self.app, self.files)
        for path in OPENAPI_PATHS if by == SOURCES else ():
            seen = self._see(path)
            text = seen.body.decode(errors="replace")
            if seen.is_valid and (listed := routes_of_openapi(text)):
                self.document = text
                return path, listed
        return by, routes

    def _take(self, path: str) -> None:
        """Ask for a path, and keep its response among those that can be measured, or why not."""
        if path in self.taken:
            return
        self.taken.add(path)
        seen = self._see(path)
        if seen.is_valid:
            self.trial.valid.append(seen)
        elif seen.needs_login:
            self.closed[path] = seen.why_not
        else:
            self._exclude(seen.why_not, path)

    def _exclude(self, why: str, what: str) -> None:
        self.trial.excluded.setdefault(why, []).append(what)

    def _see(self, path: str) -> PageResponse:
        if path not in self.asked:
            headers = {**self.app.headers, **self.trial.headers}
            self.asked[path] = _seen(self.conversation, path, headers)
        return self.asked[path]


def _seen(conversation: Conversation, path: str, headers: Mapping[str, str]) -> PageResponse:
    began = time.monotonic()
    try:
        said = conversation.ask("GET", path, headers)
    except NoResponse as none:
        return PageResponse(path, None, 0, time.monotonic() - began, "", "", str(none), b"")
    took_s = time.monotonic() - began
    fields = {name.lower(): value for name, value in said.headers}
    kind = fields.get("content-type", "").partition(";")[0]
    to = fields.get("location", "")
    return PageResponse(path, said.status, len(said.body), took_s, kind, to, "", said.body)


def _within(target: str) -> str:
    parts = split_url(target)
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
