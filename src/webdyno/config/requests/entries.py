"""Entries of `[[requests]]` as TOML would have them: addresses, headers, bodies, weights.

And the content of files that an experiment names, so that a run keeps it.
"""

import base64
import io
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import parse_qsl, urlsplit

from webdyno.config.reading import PlaceOf
from webdyno.config.requests.personal import is_secret, leaves, parsed_json
from webdyno.config.requests.rows import with_rows
from webdyno.core.errors import UserError
from webdyno.core.files import MIB, opened, read_named, reading
from webdyno.core.replay import Replay
from webdyno.core.request import (
    OWN_HEADERS,
    READABLE_ENCODINGS,
    SECRET_HEADERS,
    accepted_encodings,
    encoded,
)

Entry = dict[str, Any]

_NOT_SENT = OWN_HEADERS | {"host", "keep-alive", "proxy-connection", "http2-settings"}
_BEFORE_PATH = re.compile(r"(?:\{\{[^{}]*\}\}|[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*|[^/?#\s]+)")
MOST_FILE_BYTES = 256 * 2**20
MOST_BODY_BYTES = 16 * MIB


def path_of(url: str, place: str) -> str:
    """Give path and query of a URL.

    Who is asked is the variants' matter, and a fragment never sent.
    """
    rest = url if url.startswith("/") else _BEFORE_PATH.sub("", url, count=1)
    parts = urlsplit("//x" + (rest if rest.startswith("/") else f"/{rest}"))
    if re.search(r"\{\{", rest):
        raise UserError(
            f"{place}: {url!r:.80} has a variable in its path; write what it stands for"
        )
    path = parts.path + (f"?{parts.query}" if parts.query else "")
    # Braces stand for ranges in an experiment's paths.
    return re.sub(r"\s", "%20", encoded(path)).replace("{", "%7B").replace("}", "%7D")


def headers_of(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Give the headers that a load sends as they were, but for those of each connection.

    Of several of one name the last counts, cookies apart, which are joined. Of encodings those stay
    that can be looked into: a browser's br and zstd can't.
    """
    headers: dict[str, tuple[str, str]] = {}
    for name, value in pairs:
        key, value = name.lower(), value.strip()
        if key in _NOT_SENT or key.startswith(":") or not value:
            continue
        if key == "cookie" and key in headers:
            value = f"{headers[key][1]}; {value}"
        headers[key] = (name, value)
    if "accept-encoding" in headers:
        name, value = headers.pop("accept-encoding")
        readable = accepted_encodings({name: value}) & READABLE_ENCODINGS
        if readable:
            headers["accept-encoding"] = (name, ", ".join(sorted(readable, reverse=True)))
    return dict(headers.values())


def host_header(headers: list[tuple[str, str]]) -> dict[str, str]:
    """Give the host that a header asks for; the URL's own is the variants' matter."""
    return {name: value.strip() for name, value in headers if name.lower() == "host"}


def with_body(entry: Entry, body: bytes | None) -> Entry:
    """Give an entry with a body, as text where it is text."""
    return {**entry, **_body_key(body)} if body else entry


def _body_key(body: bytes) -> Entry:
    try:
        return {"body": body.decode()}
    except UnicodeDecodeError:
        return {"body_base64": base64.b64encode(body).decode()}


def counted(entries: Iterable[Entry]) -> list[Entry]:
    """Give each entry once, its weight being how often it came."""
    distinct: list[Entry] = []
    weights: list[int] = []
    for entry in entries:
        if entry in distinct:
            weights[distinct.index(entry)] += 1
        else:
            distinct.append(entry)
            weights.append(1)
    if len(set(weights)) <= 1:
        return distinct
    return [
        {**entry, "weight": float(weight)} for entry, weight in zip(distinct, weights, strict=True)
    ]


def read_requests(path: Path, flag: str) -> str:
    """Read a file of requests; raise UserError, with the flag that names it, where that fails."""
    with reading(flag), io.BufferedReader(opened(path, follow=True, named=flag)) as file:
        return text_of(file, flag).replace("\r\n", "\n").replace("\r", "\n")


def text_of(file: BinaryIO, place: str) -> str:
    """Read all of an open file, packed ones too.

    Raise UserError where it is too large or no text.
    """
    whole = file.read(MOST_FILE_BYTES + 1)
    if len(whole) > MOST_FILE_BYTES:
        raise UserError(f"{place}: is larger than {MOST_FILE_BYTES // 2**20} MiB; cut it down")
    try:
        return whole.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UserError(f"{place}: is not UTF-8 text") from None


def open_secrets(entries: Iterable[Entry]) -> list[str]:
    """Name headers and fields that look like secrets and would be kept in the run's folder."""
    names = set[str]()
    for entry in entries:
        headers = entry.get("headers")
        pairs = headers.items() if isinstance(headers, dict) else ()
        secret = [pair for pair in pairs if pair[0].lower() in SECRET_HEADERS]
        secret += [pair for pair in _fields(entry) if is_secret(pair[0])]
        names |= {name for name, value in secret if _is_open(value)}
    return sorted(name.removeprefix(".") for name in names)


def _is_open(value: object) -> bool:
    """Whether a value is written out, not filled in."""
    return not re.search(r"\$\{env:|\{\{", str(value))


def _fields(entry: Entry) -> Iterable[tuple[str, str]]:
    """Give the fields of a body, of JSON or a form, with what they hold."""
    form = entry.get("form")
    if isinstance(form, dict):
        yield from ((str(name), str(value)) for name, value in form.items())
    yield from leaves(entry.get("json"))
    if isinstance(body := entry.get("body"), str):
        read = parsed_json(body)
        yield from parse_qsl(body) if read is None else leaves(read)


def with_contents(data: dict[str, Any], folder: Path, place: PlaceOf) -> dict[str, Any]:
    """Give an experiment's data with the content of each file in its place."""
    return with_rows(_with_replay(_with_bodies(data, folder, place), folder, place), folder, place)


def _with_replay(data: dict[str, Any], folder: Path, place: PlaceOf) -> dict[str, Any]:
    load = data.get("load")
    if not isinstance(load, dict) or not isinstance(load.get("replay_file"), str):
        return data
    where, path = place(("load", "replay_file")), folder / load["replay_file"]
    try:
        with reading(f"{where}: {path}"):
            packed = Replay.read(path).packed()
    except ValueError as error:
        raise UserError(f"{where}: {path}: {error}") from None
    others = {key: value for key, value in load.items() if key != "replay_file"}
    return {**data, "load": {**others, "replay": packed}}


def _with_bodies(data: dict[str, Any], folder: Path, place: PlaceOf) -> dict[str, Any]:
    for key in ("login", "requests"):
        if isinstance(requests := data.get(key), list):
            data = {
                **data,
                key: [
                    _with_body_of_file(request, folder, place((key, number, "body_file")))
                    if isinstance(request, dict) and isinstance(request.get("body_file"), str)
                    else request
                    for number, request in enumerate(requests)
                ],
            }
    return data


def _with_body_of_file(request: Entry, folder: Path, place: str) -> Entry:
    if "body" in request or "body_base64" in request:
        return request  # two bodies: that is reported with all that is wrong
    others = {key: value for key, value in request.items() if key != "body_file"}
    content = read_named(folder / request["body_file"], MOST_BODY_BYTES, place)
    return {**others, **_body_key(content)}
