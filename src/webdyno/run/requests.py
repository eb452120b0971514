"""Requests of a load with their valid responses, ready to be sent; and the users who send them.

Users make requests before the load (logins), and have values of their own: places for these are
written as the load generator takes them.
"""

import base64
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from webdyno.definitions.rows import read_rows
from webdyno.generator.interface import Expectation, SentRequest, Step, Users
from webdyno.model.experiment import Experiment
from webdyno.model.hiding import keep_secret
from webdyno.model.load import Load
from webdyno.model.request import (
    FORM_TYPE,
    JSON_TYPE,
    SECRET_HEADERS,
    EventFormat,
    Request,
    endpoints_of,
    header,
    with_headers,
)
from webdyno.model.service import SERVER_ERROR
from webdyno.model.session import PLACE, Row, Values, places
from webdyno.model.stack import Page, Site
from webdyno.model.text import secret_values, with_secrets
from webdyno.stack.ready import FirstRequest

PASSWORDS = re.compile(r"pass|pwd|secret|token|credential|pin$|otp|key", re.IGNORECASE)
NAMES = re.compile(r"name|user|login|mail|account|phone|id$", re.IGNORECASE)
"""Columns by which a user is called."""


@dataclass(frozen=True)
class PlannedRequest:
    """One request of the load, with its valid response."""

    path: str
    expect: Expectation
    label: str = ""
    """What reports call it; its path unless given."""
    method: str = "GET"
    headers: Mapping[str, str] | None = None
    """Those of the load among them; None: those of the load alone."""
    body: bytes | None = None
    weight: float = 1.0
    endpoint: str | None = None
    contains: str | None = None
    """Text that the valid response contains."""
    page: Page = field(default_factory=Page)
    """What the site says of it."""
    has_rules: bool = False
    """Whether the site's rules say what is right, whatever else responses hold."""
    step: Step | None = None
    """What a user does with it; None where connections are no users."""
    events: EventFormat | None = None
    """The response is a stream of these."""

    def sent_to(self, url: str, load: Load) -> SentRequest:
        """Give it as a load generator takes it, to be sent to a stack."""
        headers = load.headers if self.headers is None else self.headers
        expect = self.expect.under(headers)
        return SentRequest(
            url + self.path,
            expect,
            self.method,
            headers,
            self.body,
            self.weight,
            self.endpoint,
            self.step,
            self.events,
        )


@dataclass(frozen=True)
class PlannedUsers:
    """Users who log in before they are measured."""

    login: tuple[PlannedRequest, ...]
    values: Mapping[str, Any]
    """In the form of the engine's contract."""

    def sent_to(self, url: str, load: Load, key: str) -> Users:
        """Give them as a load generator takes them; they stay logged in for orders of that key."""
        return Users(tuple(step.sent_to(url, load) for step in self.login), self.values, key)


def planned_users(
    experiment: Experiment,
    requests: Sequence[Request],
    load: Load,
    environment: Mapping[str, str],
) -> PlannedUsers | None:
    """Give who makes the load; None where connections ask alike."""
    if not experiment.has_users:
        return None
    login = [
        replace(
            _as_user(
                _planned(request, request.path, load, Expectation(request.status), environment),
                request,
            ),
            label=f"login step {number}, {request.label}",
        )
        for number, request in enumerate(experiment.login, 1)
    ]
    columns = secret_columns(experiment.login, requests, load)
    values = engine_values(experiment.values, environment, columns)
    return PlannedUsers(tuple(login), values)


def with_steps(
    asked: Sequence[PlannedRequest], requests: Sequence[Request]
) -> tuple[PlannedRequest, ...]:
    """Give requests as users make them."""
    of_each = (request for request in requests for _ in request.paths)
    return tuple(_as_user(step, request) for step, request in zip(asked, of_each, strict=True))


def _as_user(asked: PlannedRequest, request: Request) -> PlannedRequest:
    """Give a request with places for a user's values, and what the user does with it."""
    body = asked.body
    if body is not None and request.body_base64 is None:
        body = with_places(body.decode(), encoding_of(request)).encode()
    headers = {name: with_places(value) for name, value in (asked.headers or {}).items()}
    path = sent_path(asked.path)
    return replace(asked, path=path, headers=headers, body=body, step=_step(request))


def _step(request: Request) -> Step:
    return Step(
        request.flow,
        {
            name: its.model_dump(by_alias=True, exclude_none=True)
            for name, its in request.capture.items()
        },
        request.think_s,
        None if request.contains is None else with_places(request.contains),
    )


def planned_requests(
    requests: Sequence[Request], load: Load, site: Site, environment: Mapping[str, str]
) -> tuple[PlannedRequest, ...]:
    """Give everything that a load asks for; raise UserError where a secret isn't there."""
    endpoints = endpoints_of(requests)
    return tuple(
        asked
        for request, endpoint in zip(requests, endpoints, strict=True)
        for asked in _spelled_out(request, load, site, environment, endpoint)
    )


def secrets_of(requests: Sequence[Request], load: Load, environment: Mapping[str, str]) -> set[str]:
    """Give what is filled in from the environment, which nothing on disk may show."""
    texts = [text for request in requests for text in request.fillable]
    return secret_values([*texts, *load.headers.values()], environment)


def _spelled_out(
    request: Request,
    load: Load,
    site: Site,
    environment: Mapping[str, str],
    endpoint: str | None,
) -> list[PlannedRequest]:
    paths = request.paths
    planned = (
        _planned(request, path, load, _expectation(request, path, site), environment)
        for path in paths
    )
    weight = request.weight / len(paths)
    return [
        replace(
            prepared,
            weight=weight,
            endpoint=endpoint,
            page=_page(request, path, site),
            has_rules=bool(site.rules),
        )
        for prepared, path in zip(planned, paths, strict=True)
    ]


def _page(request: Request, path: str, site: Site) -> Page:
    """Give what the site says of a GET's response."""
    return site.page(path) if request.method == "GET" and site.paths else Page()


def _planned(
    request: Request, path: str, load: Load, expect: Expectation, environment: Mapping[str, str]
) -> PlannedRequest:
    headers = {
        name: with_secrets(value, environment)
        for name, value in with_headers(load.headers, request.sent_headers).items()
    }
    return PlannedRequest(
        path=path,
        expect=expect,
        label=request.name or (path if request.method == "GET" else f"{request.method} {path}"),
        method=request.method,
        headers=headers,
        body=_body(request, environment),
        contains=request.contains,
        events=request.events,
    )


def _body(request: Request, environment: Mapping[str, str]) -> bytes | None:
    if request.body_base64 is not None:
        return base64.b64decode(request.body_base64)
    if request.form is not None:
        return sent_form(request.form, environment).encode()
    if request.text is None:
        return None
    return with_secrets(request.text, environment).encode()


def _expectation(request: Request, path: str, site: Site) -> Expectation:
    """Take what the request says of its response, and for a GET what the site knows of the page.

    Of users' own systems no page is known: any status of 2xx is right unless they say another.
    """
    page = site.page(path) if request.method == "GET" and site.paths else None
    if page is None or (request.status or page.status) != page.status:
        return Expectation(request.status, body_sha256=request.sha256)
    if request.sha256 not in {None, page.body_sha256}:
        return Expectation(page.status, body_sha256=request.sha256)
    return Expectation(page.status, page.body_bytes, page.body_sha256)


def first_request(asked: Sequence[PlannedRequest], load: Load) -> FirstRequest | None:
    """Give what shows that a system is ready that is asked so: its first GET, if there is one."""
    first = next(
        (request for request in asked if request.method == "GET" and "{{" not in request.path), None
    )
    if first is None:
        return None
    wanted = first.expect.status
    return FirstRequest(
        first.path,
        lambda status, _: status == wanted or status < SERVER_ERROR,
        load.headers if first.headers is None else first.headers,
        checks_certificate=bool(load.tls_verify),
    )


def sent_path(path: str) -> str:
    """Give a path with its places as the load generator has them; one alone holds a whole link."""
    first = PLACE.match(path)
    if first is None:
        return with_places(path)
    return f"/{{{{{first[1]}|link}}}}{with_places(path[first.end() :])}"


def with_places(text: str, encoding: str = "") -> str:
    """Give a text with each place telling how it is written there."""
    return PLACE.sub(lambda match: f"{{{{{match[1]}{encoding}}}}}", text)


def sent_form(form: Mapping[str, str], environment: Mapping[str, str]) -> str:
    """Give a form's body, encoded all but places."""
    return "&".join(
        f"{quote(name, safe='')}={_sent_value(text, environment)}" for name, text in form.items()
    )


def _sent_value(text: str, environment: Mapping[str, str]) -> str:
    parts = PLACE.split(text)
    parts[::2] = [quote(with_secrets(part, environment), safe="") for part in parts[::2]]
    parts[1::2] = [f"{{{{{name}}}}}" for name in parts[1::2]]
    return "".join(parts)


def encoding_of(request: Request) -> str:
    """Say how values are written in a request's body, by its type."""
    kind = (header(request.sent_headers, "content-type") or "").partition(";")[0].strip().lower()
    return {JSON_TYPE: "|json", FORM_TYPE: "|url"}.get(kind, "")


def engine_values(
    values: Mapping[str, Values], environment: Mapping[str, str], hidden: Collection[str] = ()
) -> dict[str, Any]:
    """Give values in the form of the engine's contract, files read; some columns are hidden."""
    return {name: _engine_value(name, its, environment, hidden) for name, its in values.items()}


def secret_columns(login: Sequence[Request], requests: Sequence[Request], load: Load) -> set[str]:
    """Name the columns of files that are hidden, such as `user.password`.

    Those that a login sends, but names of users; elsewhere those that are called a secret, or are
    sent in a header that holds one.
    """
    every = [*login, *requests]
    tables = [load.headers, *(request.headers for request in every)]
    headers = [pair for table in tables for pair in table.items()]
    sent = places(text for name, text in headers if name.lower() in SECRET_HEADERS)
    of_login = places(text for step in login for text in step.texts)
    of_all = places(text for request in every for text in request.texts)
    return {
        *sent,
        *(place for place in of_login if not NAMES.search(place.partition(".")[2])),
        *(place for place in of_all if PASSWORDS.search(place.partition(".")[2])),
    }


def _engine_value(
    name: str, its: Values, environment: Mapping[str, str], hidden: Collection[str]
) -> dict[str, Any]:
    if its.file is not None:
        rows, _ = read_rows(Path(its.file), f"values.{name}", its.sha256)
        secret = [column for column in rows[0] if f"{name}.{column}" in hidden]
        keep_secret(row[column] for row in rows for column in secret)
        return _table(rows, its.each)
    if its.rows is not None:
        filled = [
            {key: with_secrets(text, environment) for key, text in row.items()} for row in its.rows
        ]
        return _table(filled, its.each)
    if its.counter is not None:
        return {"counter": {"from": its.counter, "step": 1}}
    if its.choose is not None:
        return {"choose": list(its.choose)}
    if its.random is not None:
        return {"random": {"from": its.random[0], "to": its.random[1]}}
    return {"unique": {}}


def _table(rows: Sequence[Row], each: str) -> dict[str, Any]:
    columns = list(rows[0])
    table = [[row[column] for column in columns] for row in rows]
    return {"rows": {"columns": columns, "rows": table, "each": each}}
