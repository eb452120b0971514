"""One user's requests in a browser's recording as a login and a flow, tokens and all.

What a request sends that an earlier response gave becomes a capture. What is personal becomes a
variable of the environment; cookies are the user's own under load, and left out.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from webdyno.definitions.entries import Entry, path_of, read_requests, with_body
from webdyno.model.errors import UserError
from webdyno.model.request import FORM_TYPE, JSON_TYPE
from webdyno.readers.har import HarEntry, body_of, har_entries, own_requests

SHORTEST_TOKEN = 6
"""Shorter values stand in too many places to tell where one comes from."""
PASSWORD = re.compile(r"pass(word|wd|phrase)?|pwd|secret|\bpin\b|otp", re.IGNORECASE)
PERSONAL = re.compile(r"user(name)?|e?-?mail|login|account|phone", re.IGNORECASE)
_KEPT_HEADERS = re.compile(
    r"content-type|accept|authorization|origin|referer|x-(?!forwarded).+", re.IGNORECASE
)
_STATIC = re.compile(r"(image|font|audio|video)/|text/css|javascript|wasm", re.IGNORECASE)
FLOW = "recorded"


@dataclass
class Recording:
    """What became of a recording."""

    login: list[Entry] = field(default_factory=list)
    requests: list[Entry] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What was found, a sentence each."""
    variables: list[str] = field(default_factory=list)
    """Names of what is to be in the environment."""


def read_recording(path: Path) -> Recording:
    """Make a login and a flow of a HAR file; raise UserError where that can't be."""
    flag = str(path)
    own = own_requests(har_entries(read_requests(path, flag), flag), flag)
    pages = [
        entry for _, entry in own.entries if not _STATIC.search(entry.response.content.mime_type)
    ]
    if not pages:
        raise UserError(f"{flag}: there are pictures, styles and scripts in it, and no pages")
    recording = Recording(notes=[own.excluded] if own.excluded else [])
    steps: list[Entry] = []
    for number, recorded in enumerate(pages):
        steps.append(_Step(recorded, pages[:number], steps, recording, flag).entry())
    last = max((index for index, page in enumerate(pages) if _has_password(page, flag)), default=-1)
    recording.login = steps[: last + 1]
    recording.requests = [{"flow": FLOW, **step} for step in steps[last + 1 :]]
    if not recording.requests:
        raise UserError(f"{flag}: nothing follows the login; record a page behind it, too")
    return recording


def _has_password(recorded: HarEntry, flag: str) -> bool:
    body = body_of(recorded, flag).decode(errors="replace")
    names = [name for name, _ in parse_qsl(body)] + [key for key, _ in _leaves(_json(body))]
    return any(PASSWORD.search(name) for name in names)


@dataclass
class _Step:
    """One request, told by what was there before it."""

    recorded: HarEntry
    before: Sequence[HarEntry]
    steps: list[Entry]
    """Of those before."""
    recording: Recording
    flag: str

    def entry(self) -> Entry:
        request, status = self.recorded.request, self.recorded.response.status
        url = urlsplit(request.url)
        entry: Entry = {"path": self._path(request.url, url.query), "method": request.method}
        headers = {
            header.name: self._header(header.name, header.value)
            for header in request.headers
            if _KEPT_HEADERS.fullmatch(header.name) and not header.name.startswith(":")
        }
        body = body_of(self.recorded, self.flag)
        kind = next(
            (header for name, header in headers.items() if name.lower() == "content-type"), ""
        )
        text = body.decode(errors="replace")
        if body and kind.startswith(FORM_TYPE):
            pairs = parse_qsl(text, keep_blank_values=True)
            entry["form"] = {name: self._value(name, value) for name, value in pairs}
        elif body and kind.startswith(JSON_TYPE):
            entry["json"] = self._in_json(_json(text))
        else:
            entry = with_body(entry, body)
        if "form" in entry or "json" in entry:
            headers = {
                name: header for name, header in headers.items() if name.lower() != "content-type"
            }
        own_site = {"origin", "referer", "accept"}
        headers = {name: header for name, header in headers.items() if name.lower() not in own_site}
        if headers:
            entry["headers"] = headers
        return {**entry, "status": status} if not 200 <= status < 300 else entry

    def _path(self, url: str, query: str) -> str:
        path = path_of(url, self.flag)
        for name, value in parse_qsl(query):
            if place := self._captured(name, value):
                written = next(
                    part for part in query.split("&") if parse_qsl(part) == [(name, value)]
                )
                path = path.replace(written, f"{written.partition('=')[0]}={place}")
        return path

    def _header(self, name: str, value: str) -> str:
        scheme, _, token = value.rpartition(" ")
        if place := self._captured(name, token):
            return f"{scheme} {place}".strip()
        if name.lower() == "authorization":
            return f"{scheme} {self._variable(name)}".strip()
        return value

    def _value(self, name: str, value: str) -> str:
        if PASSWORD.search(name):
            return self._variable(name)
        if place := self._captured(name, value):
            return place
        return self._variable(name) if PERSONAL.fullmatch(name) else value

    def _in_json(self, node: Any, name: str = "") -> Any:  # noqa: ANN401 (JSON)
        if isinstance(node, dict):
            return {key: self._in_json(value, key) for key, value in node.items()}
        if isinstance(node, list):
            return [self._in_json(value, name) for value in node]
        return self._value(name, node) if isinstance(node, str) else node

    def _variable(self, name: str) -> str:
        variable = re.sub(r"\W+", "_", name).upper()
        if variable not in self.recording.variables:
            self.recording.variables.append(variable)
            self.recording.notes.append(f"{name} is personal: export {variable}=… before a run")
        return f"${{env:{variable}}}"

    def _captured(self, name: str, value: str) -> str | None:
        """Give a place for a value that an earlier response gave, the latest of several."""
        if len(value) < SHORTEST_TOKEN or value.isalpha():
            return None
        for number in reversed(range(len(self.before))):
            if source := _source_of(value, self.before[number]):
                captures = self.steps[number].setdefault("capture", {})
                for known, its in captures.items():
                    if its == source:
                        return f"{{{{{known}}}}}"
                own = _free_name(re.sub(r"\W+", "_", name).strip("_") or "token", self.steps)
                captures[own] = source
                earlier = self.steps[number]
                sources = ", ".join(f"{key} {text}" for key, text in source.items())
                self.recording.notes.append(
                    f"{name} comes from {earlier['method']} {earlier['path']}: {sources}"
                )
                return f"{{{{{own}}}}}"
        return None


def _free_name(name: str, steps: Sequence[Entry]) -> str:
    name = f"_{name}" if name[0].isdigit() else name
    taken = {known for step in steps for known in step.get("capture", {})}
    numbers = (f"{name}_{number}" for number in range(2, len(taken) + 3))
    return next(candidate for candidate in (name, *numbers) if candidate not in taken)


def _source_of(value: str, earlier: HarEntry) -> dict[str, str] | None:
    """Say where a response has a value, as a capture."""
    for header in earlier.response.headers:
        if header.name.lower() == "set-cookie":
            name, _, given = header.value.partition(";")[0].partition("=")
            if given.strip() == value:
                return {"cookie": name.strip()}
        elif header.value == value:
            return {"header": header.name}
    text = earlier.response.content.text
    if value not in text and "&" not in text and "\\" not in text:
        return None
    if (whole := _json(text)) is not None:
        places = (path for path, leaf in _leaves(whole, "$") if leaf == value)
        return next(({"json": path} for path in places if _is_plain(path)), None)
    page = _Tokens()
    page.feed(text)
    selector = next((css for css, given in page.values if given == value), None)
    return {"css": selector} if selector else None


def _is_plain(path: str) -> bool:
    return re.fullmatch(r"\$(\.[^.\[\]]+|\[\d+\])+", path) is not None


def _json(text: str) -> Any:  # noqa: ANN401 (JSON)
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _leaves(node: Any, path: str = "") -> Iterator[tuple[str, str]]:  # noqa: ANN401 (JSON)
    if isinstance(node, dict):
        for key, inner in node.items():
            yield from _leaves(inner, f"{path}.{key}")
    elif isinstance(node, list):
        for number, inner in enumerate(node):
            yield from _leaves(inner, f"{path}[{number}]")
    elif node is not None and not isinstance(node, bool):
        yield path, str(node)


class _Tokens(HTMLParser):
    """Finds what inputs and meta elements of a page hold."""

    def __init__(self) -> None:
        super().__init__()
        self.values: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given: Callable[[str], str] = lambda key: dict(attrs).get(key) or ""  # noqa: E731
        value = given({"input": "value", "meta": "content"}.get(tag, ""))
        if name := given("name"):
            self.values.append((f'{tag}[name="{name}"]', value))
