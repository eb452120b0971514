"""Requests of a load with their valid responses, ready to be sent; and the users who send them.

Users make requests before the load (logins), and have values of their own, which the load generator
fills in.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from webdyno.config.requests.rows import read_rows
from webdyno.core.experiment import Experiment
from webdyno.core.hiding import keep_secret
from webdyno.core.load import Load
from webdyno.core.request import SECRET_HEADERS, WrittenRequest, endpoints_of, with_headers
from webdyno.core.service import SERVER_ERROR
from webdyno.core.session import Row, Values, places
from webdyno.core.stack import Site
from webdyno.core.text import secret_values, with_secrets
from webdyno.load.interface import Expectation, Request, Users
from webdyno.servers.ready import FirstRequest

PASSWORDS = re.compile(r"pass|pwd|secret|token|credential|pin$|otp|key", re.IGNORECASE)
NAMES = re.compile(r"name|user|login|mail|account|phone|id$", re.IGNORECASE)
"""Columns by which a user is called."""


def planned_users(
    experiment: Experiment,
    requests: Sequence[WrittenRequest],
    load: Load,
    environment: Mapping[str, str],
) -> Users | None:
    """Give who makes the load; None where connections ask alike."""
    if not experiment.has_users:
        return None
    login = tuple(
        replace(
            _planned(
                written,
                written.path,
                load,
                Expectation(written.status, contains=written.contains),
                environment,
            ),
            label=f"login step {number}, {written.label}",
        )
        for number, written in enumerate(experiment.login, 1)
    )
    columns = secret_columns(experiment.login, requests, load)
    return Users(login, engine_values(experiment.values, environment, columns))


def planned_requests(
    requests: Sequence[WrittenRequest], load: Load, site: Site, environment: Mapping[str, str]
) -> tuple[Request, ...]:
    """Give everything that a load asks for; raise UserError where a secret isn't there."""
    endpoints = endpoints_of(requests)
    return tuple(
        request
        for written, endpoint in zip(requests, endpoints, strict=True)
        for request in _spelled_out(written, load, site, environment, endpoint)
    )


def secrets_of(
    requests: Sequence[WrittenRequest], load: Load, environment: Mapping[str, str]
) -> set[str]:
    """Give what is filled in from the environment, which nothing on disk may show."""
    texts = [text for request in requests for text in request.fillable]
    return secret_values([*texts, *load.headers.values()], environment)


def _spelled_out(
    written: WrittenRequest,
    load: Load,
    site: Site,
    environment: Mapping[str, str],
    endpoint: str | None,
) -> Iterator[Request]:
    paths = written.paths
    weight = written.weight / len(paths)
    for path in paths:
        expect = _expectation(written, path, site)
        request = _planned(written, path, load, expect, environment)
        yield replace(request, weight=weight, endpoint=endpoint)


def _planned(
    written: WrittenRequest,
    path: str,
    load: Load,
    expect: Expectation,
    environment: Mapping[str, str],
) -> Request:
    headers = {
        name: with_secrets(value, environment)
        for name, value in with_headers(load.headers, written.sent_headers).items()
    }
    return Request(
        path=path,
        expect=expect,
        label=written.name or (path if written.method == "GET" else f"{written.method} {path}"),
        method=written.method,
        headers=headers,
        body=written.content(environment),
        events=written.events,
        flow=written.flow,
        capture={
            name: its.model_dump(by_alias=True, exclude_none=True)
            for name, its in written.capture.items()
        },
        think_s=written.think_s,
    )


def _expectation(written: WrittenRequest, path: str, site: Site) -> Expectation:
    """Take what the request says of its response, and for a GET what the site knows of the page.

    Of users' own systems no page is known: any status of 2xx is right unless they say another.
    """
    page = site.page(path) if written.method == "GET" and site.paths else None
    expect = Expectation(
        written.status,
        body_sha256=written.sha256,
        contains=written.contains,
        headers=page.headers if page else {},
        reads=page.reads if page else 0,
        has_rules=bool(site.rules),
    )
    if page is None or (written.status or page.status) != page.status:
        return expect
    if written.sha256 not in {None, page.body_sha256}:
        return replace(expect, status=page.status)
    return replace(
        expect, status=page.status, body_bytes=page.body_bytes, body_sha256=page.body_sha256
    )


def first_request(requests: Sequence[Request], load: Load) -> FirstRequest | None:
    """Give what shows that a system is ready that is asked so: its first GET, if there is one."""
    first = next(
        (request for request in requests if request.method == "GET" and "{{" not in request.path),
        None,
    )
    if first is None:
        return None
    wanted = first.expect.status
    return FirstRequest(
        first.path,
        lambda status, _: status == wanted or status < SERVER_ERROR,
        first.headers,
        checks_certificate=bool(load.tls_verify),
    )


def engine_values(
    values: Mapping[str, Values], environment: Mapping[str, str], hidden: Collection[str] = ()
) -> dict[str, Any]:
    """Give values in the form of the engine's contract, files read; some columns are hidden."""
    return {name: _engine_value(name, its, environment, hidden) for name, its in values.items()}


def secret_columns(
    login: Sequence[WrittenRequest], requests: Sequence[WrittenRequest], load: Load
) -> set[str]:
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
