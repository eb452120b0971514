"""`.http` files, as editors run them: requests with ### between them."""

import re
from itertools import chain, zip_longest
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qsl

from webdyno.config.requests import (
    MOST_BODY_BYTES,
    Entry,
    headers_of,
    host_header,
    path_of,
    refuse_variables,
    with_body,
)
from webdyno.core.errors import UserError
from webdyno.core.files import neighbor, read_named
from webdyno.core.request import FORM_TYPE, header
from webdyno.core.session import PLACE

_SEPARATOR = re.compile(r"###(.*)")
_ANNOTATION = re.compile(r"(?:#|//)\s*@(\w+)(?:(?:\s*=\s*|\s+)(.*))?")
_OF_USERS = re.compile(r"^(?:#|//)\s*@(?:login|flow|capture)\b", re.MULTILINE)
_CAPTURE = re.compile(
    r"([A-Za-z_][\w-]*)(?:\s*=\s*|\s+)(css|regex|json|header|cookie)(?:@([\w-]+))?\s+(.+)"
)
_MARK = "webdyno-place"
LOGIN = "login"
"""A key of entries that no request has: it is part of the login."""
_REQUEST_LINE = re.compile(
    r"""
    (?: (?: ([A-Z]+) \s+ )?
        ( (?: / | \{\{[^{}]*\}\} | [A-Za-z][A-Za-z0-9+.-]*:// ) \S* )  # a path or an address
      | ([A-Z]+) \s+ ( [\w.-]+ (?: :[0-9]+ )? (?: [/?] \S* )? )        # behind a method also a host
    ) (?: \s+ HTTP/[0-9.]+ )?
    """,
    re.VERBOSE,
)
_HEADER_LINE = re.compile(r"([^\s:]+)\s*:\s*(.*)")
_ENVIRONMENT = re.compile(r"\{\{\s*\$(?:processEnv|env\.)\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")
_VARIABLE = re.compile(r"\{\{[^{}]*\}\}")


def requests_of(path: Path, text: str) -> list[Entry]:
    """Return the requests of a file; raise UserError, with its line, for what isn't understood.

    There is ### between them, `# @name` and the like before one, a body after a blank line,
    `< FILE` for one from a file. `{{$processEnv NAME}}` becomes `${env:NAME}`. Of an address only
    path and query count, so a variable may stand for the server. Where a request is part of a login
    or flow, or captures something, other variables are users' values.
    """
    has_users = _OF_USERS.search(text) is not None
    entries: list[Entry] = []
    title, begins, block = "", 1, list[str]()
    for number, line in enumerate([*text.splitlines(), "###"], 1):
        if match := _SEPARATOR.fullmatch(line.rstrip()):
            entries += _request(_Block(path, begins, block, has_users=has_users), title)
            title, begins, block = match[1].strip(), number + 1, []
        else:
            block.append(line)
    return entries


class _Block(NamedTuple):
    """What stands between two separators."""

    path: Path
    begins: int
    """Number of its first line."""
    lines: list[str]
    has_users: bool

    def place(self, index: int) -> str:
        return f"{self.path}:{self.begins + index}"


def _request(block: _Block, title: str) -> list[Entry]:
    """Read nothing, or one request."""
    lines, index = block.lines, 0
    entry: Entry = {"name": title} if title else {}
    while index < len(lines) and (
        not lines[index].strip() or lines[index].startswith(("#", "//", "@"))
    ):
        if match := _ANNOTATION.fullmatch(lines[index].strip()):
            entry = _with_annotation(entry, match[1], (match[2] or "").strip(), block.place(index))
        index += 1
    if index == len(lines):
        return []
    place = block.place(index)
    line = _REQUEST_LINE.fullmatch(lines[index].strip())
    if line is None:
        raise UserError(
            f"{place}: {lines[index]!r:.60} is no request: GET /path, /path or an address"
        )
    method, url = line[1] or line[3] or "GET", line[2] or line[4]
    pairs, index = _headers(block, index + 1)
    body, file = _body(block, index)
    entry = {"path": _path(url, place, block), "method": method, **entry}
    if headers := {**headers_of(pairs), **host_header(pairs)}:
        entry["headers"] = headers
    sent = with_body({}, body)
    kind = header(headers, "content-type") or ""
    if block.has_users and "body" in sent and kind.startswith(FORM_TYPE):
        # By its fields, so that whatever fills them is encoded.
        text = "".join(line.strip() for line in sent["body"].split("\n"))
        form = parse_qsl(text, keep_blank_values=True)
        if len(dict(form)) == len(form) > 0:
            sent = {"form": dict(form)}
    if file:
        refuse_variables(sent, f"{place}: {file}")
    return [{**entry, **sent}]


def _path(url: str, place: str, block: _Block) -> str:
    """Return the path of an address; users' values have places in it, or are all of it."""
    if not block.has_users:
        return path_of(url, place)
    first = PLACE.match(url)
    if first and not url.startswith("/", first.end()):
        return url
    url = url[first.end() :] if first else url  # it stands for the server
    parts = path_of(PLACE.sub(_MARK, url), place).split(_MARK)
    places = [f"{{{{{name}}}}}" for name in PLACE.findall(url)]
    return "".join(chain.from_iterable(zip_longest(parts, places, fillvalue="")))


def _with_annotation(entry: Entry, key: str, text: str, place: str) -> Entry:
    """Add what a line such as `# @flow buy` says; others are somebody else's."""
    match key:
        case "name" | "flow" | "contains" | "events" if text:
            return {**entry, key: text}
        case "think" if text:
            return {**entry, "think_s": text}
        case "login":
            return {**entry, LOGIN: True}
        case "status":
            if not text.isdecimal():
                raise UserError(f"{place}: # @status should be a number, as in # @status 302")
            return {**entry, "status": int(text)}
        case "capture":
            match = _CAPTURE.fullmatch(text)
            if match is None:
                raise UserError(
                    f"{place}: # @capture should be NAME KIND TEXT, as in # @capture csrf css "
                    "input[name=csrf]; kinds are css, css@ATTRIBUTE, regex, json, header, cookie"
                )
            name, kind, attribute, source = match.groups()
            capture = {kind: source} | ({"attribute": attribute} if attribute else {})
            return {**entry, "capture": {**entry.get("capture", {}), name: capture}}
    return entry


def _headers(block: _Block, index: int) -> tuple[list[tuple[str, str]], int]:
    """Read header lines up to a blank one; return them and where that is."""
    pairs, lines = [], block.lines
    while index < len(lines) and lines[index].strip():
        if not lines[index].startswith(("#", "//")):
            place = block.place(index)
            match = _HEADER_LINE.fullmatch(lines[index].strip())
            if match is None:
                raise UserError(f"{place}: {lines[index]!r:.60} should be a header, Name: value")
            pairs.append((match[1], _fill_in(match[2], place, block)))
        index += 1
    return pairs, index


def _body(block: _Block, index: int) -> tuple[bytes | None, Path | None]:
    """Read a body; return it, and the file that it is from, if it is."""
    text, place = "\n".join(block.lines[index + 1 :]).strip(), block.place(index)
    if text.startswith("< ") and "\n" not in text:
        file = neighbor(block.path, text[2:].strip(), place)
        return read_named(file, MOST_BODY_BYTES, place), file
    return _fill_in(text, place, block).encode() if text else None, None


def _fill_in(text: str, place: str, block: _Block) -> str:
    text = _ENVIRONMENT.sub(r"${env:\1}", text)
    for unknown in _VARIABLE.findall(text):
        if not (block.has_users and PLACE.fullmatch(unknown)):
            raise UserError(
                f"{place}: nobody knows what {unknown} stands for; write it out, or "
                "${env:NAME} for a variable of the environment"
            )
    return text
