"""Before load, the same requests go to every variant; responses are written down, to be compared.

This is the pre-flight check; `differences.py` shows how bodies differ. Where connections are users,
one logs in and goes through all once: the load generator does that, so that what is checked is what
will be sent.
"""

import hashlib
import json
import re
import zlib
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any
from uuid import uuid4

import regex

from webdyno.core.errors import UserError
from webdyno.core.format import size
from webdyno.core.hiding import HIDDEN, SECRETS, hidden
from webdyno.core.load import Load
from webdyno.core.patterns import JSON_TOP, check_ignored, steps
from webdyno.core.records import Response
from webdyno.core.request import accepted_encodings, header
from webdyno.core.session import PLACE
from webdyno.core.text import begin_of
from webdyno.load.asking import LONGEST_S, Conversation
from webdyno.load.interface import (
    Generator,
    GeneratorError,
    LoadOrder,
    LoginError,
    Request,
    ServerResponse,
    Users,
)

SHOWN_BYTES = 500
"""How much of a body is kept as text: enough to recognise an error page."""

COMPARED_BYTES = 1 << 16
"""How much of a body is compared with the baseline's, to show where they differ."""

MOST_DECODED_BYTES = 1 << 28
"""A small body can unpack to one that fills the memory. No other one is longer, either."""

MOST_SEARCHED_BYTES = 1 << 25
"""Of a body of which something is ignored: as JSON it can take thirty times as much memory."""

ZLIB_FORMATS = {"gzip": 31, "deflate": 15}
"""By encoding: what zlib calls its format (RFC 9110, 8.4.1)."""
WITHIN_S = 5.0
SLOW = "; where whole responses take longer, such as streams, give a longer load.timeout_s"
INSTEAD = "…"

SHORTEST_HIDDEN = 4
"""Captured values of fewer letters may stand anywhere in a page."""


def ask_all(
    url: str,
    requests: Sequence[Request],
    load: Load,
    client_entry: Sequence[str] = (),
    ignored: Sequence[str] = (),
) -> list[Response]:
    """Ask a server each request over one connection, as the load will, and keep the responses.

    What is `ignored` is taken out of bodies, unless they have to be what site or request say. A
    request without a response gives a `Response` with an error.
    """
    if not requests:
        return []
    with Conversation(url, load, client_entry) as conversation:
        responses = conversation.ask_all(requests)
        return [
            _write_down(said, asked, ignored)
            for said, asked in zip(responses, requests, strict=True)
        ]


def _write_down(said: ServerResponse, asked: Request, ignored: Sequence[str]) -> Response:
    blank = blank_response(asked)
    if said.trouble is not None:
        is_slow = said.trouble == "late" and said.came_bytes
        return blank.replace(error=f"{said.failure}{SLOW if is_slow else ''}")
    if said.failure is not None:  # a call failed
        return blank.replace(error=said.failure)
    try:
        return describe_response(blank, said, asked, ignored)
    except (zlib.error, Undecodable) as error:
        return blank.replace(error=str(error) or type(error).__name__)


def blank_response(asked: Request) -> Response:
    """Describe what a response should be, before there is one."""
    return Response(
        path=asked.label or asked.path,
        expected_status=asked.expect.status,
        expected_sha256=asked.expect.body_sha256,
        expected_bytes=asked.expect.body_bytes,
        expected_reads=asked.expect.reads,
        has_rules=asked.expect.has_rules,
        status=None,
    )


def describe_response(
    blank: Response, said: ServerResponse, asked: Request, ignored: Sequence[str]
) -> Response:
    """Describe what a server sent; raise Undecodable or zlib.error for an unreadable body.

    Secrets are hidden in it, before sentences cut its texts.
    """
    encoding = (header(dict(said.headers), "content-encoding") or "").strip().lower()
    body = decode_body(said.body, encoding, accepted_encodings(asked.headers))
    contains = asked.expect.contains
    lacks = contains is not None and contains.encode() not in (said.json or body)
    if asked.expect.body_sha256 is None:
        body = without_ignored(body if said.json is None else said.json, ignored)
    return blank.replace(
        body=body[:COMPARED_BYTES],
        status=said.status,
        http_version=said.version,
        headers=[(hidden(name), hidden(value)) for name, value in said.headers],
        tls=said.tls,
        head_bytes=said.head_bytes,
        encoding="" if encoding == "identity" else encoding,
        wire_bytes=len(said.body),
        body_bytes=len(body),
        body_sha256=hashlib.sha256(body).hexdigest(),
        lacks=hidden(contains) if contains and lacks else None,
        lacks_header=_lacking(said.headers, asked.expect.headers),
        body_start=SECRETS.hidden(body[:COMPARED_BYTES])[:SHOWN_BYTES].decode("utf-8", "replace"),
    )


def _lacking(headers: Sequence[tuple[str, str]], wanted: Mapping[str, str]) -> str | None:
    """Name a header that isn't right, with what its value should match; None if all are right."""
    there = dict(headers)
    for name, pattern in wanted.items():
        value = header(there, name)
        if value is None:
            return f"{name}: there is none, but it should match {pattern!r}"
        if not regex.search(pattern, value, timeout=WITHIN_S):
            return f"{name}: it should match {pattern!r}, not be {begin_of(repr(value), 80)}"
    return None


class Undecodable(Exception):  # noqa: N818 (it becomes a line of the pre-flight check)
    """A body that can't be looked into; the message says why."""


def decode_body(body: bytes, encoding: str, accepted: Collection[str]) -> bytes:
    """Take a body out of its Content-Encoding; raise Undecodable or zlib.error if that fails."""
    if encoding in {"", "identity"}:
        return body
    if encoding not in ZLIB_FORMATS.keys() & accepted:
        raise Undecodable(
            f"its body came in the encoding {begin_of(repr(encoding), 40)}, which nobody asked for"
        )
    unpacking = zlib.decompressobj(wbits=ZLIB_FORMATS[encoding])
    page = unpacking.decompress(body, MOST_DECODED_BYTES)
    if not unpacking.eof:
        raise Undecodable(f"its {encoding} body is cut off, or unpacks to very many bytes")
    return page


def without_ignored(body: bytes, ignored: Sequence[str]) -> bytes:
    """Return a body without what may differ; raise UserError for a slow pattern, Undecodable."""
    if ignored and len(body) > MOST_SEARCHED_BYTES:
        raise Undecodable(
            f"its body has {size(len(body))}, and {size(MOST_SEARCHED_BYTES)} at most are searched "
            "for what to ignore"
        )
    for what in ignored:
        try:
            check_ignored(what)
        except ValueError as error:
            raise UserError(f"ignore: {error}") from None
        if what.startswith(JSON_TOP):
            with suppress(ValueError, RecursionError):  # it isn't JSON
                whole = json.loads(body)
                _drop(whole, steps(what))
                text = json.dumps(whole, ensure_ascii=False)
                body = text.encode("utf-8", "surrogatepass")
            continue
        try:
            text = regex.sub(
                what, INSTEAD, body.decode("utf-8", "surrogateescape"), timeout=WITHIN_S
            )
        except TimeoutError:
            raise UserError(
                f"ignore: the pattern {what!r} takes for ever; make it simpler"
            ) from None
        body = text.encode("utf-8", "surrogateescape")
    return body


def _drop(node: Any, path: Sequence[str]) -> None:  # noqa: ANN401 (JSON)
    """Put a mark in the place of values, so that it is still reported where one is missing."""
    step, *rest = path
    keys: list[Any] = []
    match node:
        case list():
            keys = [index for index in range(len(node)) if step in {"*", str(index)}]
        case dict():
            keys = [key for key in node if step in {"*", key}]
    for key in keys:
        if rest:
            _drop(node[key], rest)
        else:
            node[key] = INSTEAD


def ask_as_user(
    url: str,
    requests: Sequence[Request],
    load: Load,
    users: Users,
    generator: Generator,
    ignored: Sequence[str] = (),
    *,
    allow_remote: bool = False,
) -> list[Response]:
    """Have one user log in and ask everything once; keep the responses, without what is personal.

    Where the login fails, its response is the only one. `allow_remote`: the variant may be
    on another machine.
    """
    order = LoadOrder(
        id="pre-flight check",
        url=url,
        requests=tuple(requests),
        load=load.of_one_user,
        duration_s=LONGEST_S,
        users=replace(users, key=uuid4().hex),
        allow_remote=allow_remote,
    )
    try:
        traced = list(generator.trace(replace(order, count=len(order.flows()))))
    except GeneratorError as error:
        return [blank_response(requests[0]).replace(error=str(error))]
    for said in traced:
        if said.is_login and said.failure is not None:
            blank = blank_response(users.login[said.number])
            return [blank.replace(error=_without_address(said.failure, url), is_login=True)]
    captured = {value for said in traced for value in said.captured.values()}
    longest_first = sorted(captured, key=len, reverse=True)
    personal = [regex.escape(value) for value in longest_first if len(value) >= SHORTEST_HIDDEN]
    answers = {said.number: said for said in traced if not said.is_login}
    return [
        _response(url, asked, answers.get(number), (*ignored, *personal))
        for number, asked in enumerate(requests)
    ]


def login_refused(users: Users, failed: LoginError) -> Response:
    """Describe a login that failed when all users made theirs."""
    blank = blank_response(users.login[failed.step - 1])
    why = _without_address(failed.why, "http")
    return blank.replace(path=f"{blank.path}, of user {failed.user}", error=why, is_login=True)


def _without_address(failure: str, url: str) -> str:
    """Leave out what the step's name says already: method and address."""
    return re.sub(rf"^(?:[A-Z]+ )?{re.escape(url)}\S*: ", "", failure)


def _response(
    url: str, asked: Request, said: ServerResponse | None, ignored: Sequence[str]
) -> Response:
    blank = blank_response(asked)
    if said is None:
        return blank.replace(error="a request before it in its flow failed")
    if not said.status:
        return blank.replace(error=_without_address(said.failure or "there was no response", url))
    headers = [
        (name, f"{value.partition('=')[0]}={HIDDEN}" if name.lower() == "set-cookie" else value)
        for name, value in said.headers
    ]
    expect = asked.expect
    if expect.contains and PLACE.search(expect.contains):  # the load generator has looked for it
        asked = replace(asked, expect=replace(expect, contains=None))
    try:
        response = describe_response(blank, replace(said, headers=headers), asked, ignored)
    except (zlib.error, Undecodable) as error:
        return blank.replace(error=str(error))
    is_capture = said.failure is not None and response.has_right_status and response.lacks is None
    return blank.replace(error=_without_address(str(said.failure), url)) if is_capture else response
