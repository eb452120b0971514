"""One user's requests in a browser's recording as a login and a flow, tokens and all.

What a request sends that an earlier response gave becomes a capture, wherever it stands: in its
path, its body, its headers. What is personal becomes a variable of the environment. Cookies are the
user's own under load, and what a browser says of itself is no part of the flow: both are left out.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from webdyno.config.personal import (
    RECORDED,
    field_words,
    form_pairs,
    is_key,
    is_nested,
    is_personal,
    is_personal_value,
    is_secret,
    leaves,
    map_leaves,
    parsed_json,
    value_without,
    variable_name,
    without_personal,
)
from webdyno.config.requests import Entry, path_of, read_requests, refuse_variables, with_body
from webdyno.core.errors import UserError
from webdyno.core.pages import PageParser
from webdyno.core.request import JSON_TYPE
from webdyno.formats.har import HarEntry, body_of, har_entries, own_requests

SHORTEST_TOKEN = 6
"""Shorter values stand in too many places: where one comes from is known by names alone."""
MOST_PARSED = 10_000
"""Responses that are kept as they were parsed."""
LONGEST_BEFORE = 24
"""Characters of a page before a value by which it is found again."""
IDS = frozenset("id uuid guid slug key code number ref reference token sku".split())  # noqa: SIM905
_NOT_GIVEN = frozenset({"content-type", "content-length", "date", "server"})
"""Headers of responses that nothing is captured from."""
Capture = dict[str, str]


def is_token(value: str) -> bool:
    """Whether a value is too particular to stand in two places by chance."""
    return len(value) >= SHORTEST_TOKEN and not value.isalpha()


def has_digit(value: str) -> bool:
    return any(letter.isdigit() for letter in value)


def source_of(value: str, name: str, earlier: HarEntry, before: str = "") -> Capture | None:
    """Return where a response has a value, as a capture; None where it hasn't.

    `name`: of the field that it is sent in, or of the part of a path that stands before it, which
    a short value has to agree with. `before`: of a part of a path, all of the path before it.
    """
    if not value or not (is_token(value) or has_digit(value)):
        return None
    if is_token(value) and (in_head := _in_head(value, earlier)):
        return in_head
    text = earlier.response.content.text
    if (whole := _json_of(text)) is not None:
        return _in_json(value, name, whole, earlier)
    return _in_page(value, name, text, before)


def location_of(earlier: HarEntry) -> str | None:
    """Return path and query that a response leads to."""
    headers = earlier.response.headers
    leads = next((each.value for each in headers if each.name.lower() == "location"), None)
    return None if leads is None else _path_and_query(leads)


def _path_and_query(url: str) -> str:
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return parts.path + (f"?{parts.query}" if parts.query else "")


def _in_head(value: str, earlier: HarEntry) -> Capture | None:
    for header in earlier.response.headers:
        if header.name.lower() == "set-cookie":
            name, _, given = header.value.partition(";")[0].partition("=")
            if given.strip() == value:
                return {"cookie": name.strip()}
        elif header.value == value and header.name.lower() not in _NOT_GIVEN:
            return {"header": header.name}
    return None


def _in_json(value: str, name: str, whole: Any, earlier: HarEntry) -> Capture | None:  # noqa: ANN401
    asked = _path_and_query(earlier.request.url)
    for path, leaf in leaves(whole, "$"):
        if leaf != value or not _is_plain(path):
            continue
        if (is_token(value) and has_digit(value)) or _is_id_of(path, name, asked):
            return {"json": path}
    return None


def _is_id_of(path: str, name: str, asked: str) -> bool:
    """Whether a place in JSON is the id of what a field or a part of a path is named for.

    By the words of the place and of the path that gave it: `item` for `$.items[0].id`.
    """
    key = field_words(path)
    wanted = {_singular(word) for word in field_words(name)} - IDS
    around = {_singular(word.lower()) for word in re.findall(r"[A-Za-z]+", f"{path} {asked}")}
    return bool(key) and key[-1] in IDS and (not wanted or bool(wanted & around))


def _singular(word: str) -> str:
    return word[:-3] + "y" if word.endswith("ies") else word.removesuffix("s")


# Each field of each request is looked for in each response before it, which is parsed once.
_json_of = lru_cache(MOST_PARSED)(parsed_json)


@lru_cache(MOST_PARSED)
def _tokens_of(text: str) -> Sequence[tuple[str, str, str]]:
    page = _Tokens()
    page.feed(text)
    return page.values


def _in_page(value: str, name: str, text: str, before: str) -> Capture | None:
    for selector, own_name, given in _tokens_of(text):
        is_its = own_name == name and field_words(name)[-1:] and field_words(name)[-1] in IDS
        if given == value and (is_token(value) or is_its):
            return {"css": selector}
    if before or is_token(value):
        return _by_what_stands_before(value, text, before)
    return None


def _by_what_stands_before(value: str, text: str, before: str) -> Capture | None:
    """Return a regular expression, where what it finds first is the value."""
    place = text.find(before + value)
    if place < 0:
        return None
    begins = max(text.rfind("\n", 0, place) + 1, place - LONGEST_BEFORE)
    prefix = before or text[begins:place]
    expression = re.escape(prefix) + r"""([^"'/?#&<>\s\\]+)"""
    match = re.search(expression, text)
    return {"regex": expression} if prefix.strip() and match and match[1] == value else None


def _is_plain(path: str) -> bool:
    return re.fullmatch(r"\$(\.[^.\[\]]+|\[\d+\])+", path) is not None


class _Tokens(PageParser):
    """Finds what inputs and meta elements of a page hold."""

    def __init__(self) -> None:
        super().__init__()
        self.values: list[tuple[str, str, str]] = []
        """Selector, name, value."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given: Callable[[str], str] = lambda key: dict(attrs).get(key) or ""  # noqa: E731
        value = given({"input": "value", "meta": "content"}.get(tag, ""))
        if name := given("name"):
            self.values.append((f'{tag}[name="{name}"]', name, value))


_SENT_HEADERS = re.compile(r"content-type|authorization|x-(?!forwarded).+", re.IGNORECASE)
_TOKEN_HEADERS = re.compile(
    r"authorization|if-match|.*(?:csrf|xsrf|token|auth|session|nonce|api-?key).*", re.IGNORECASE
)
"""Whose values come from a response, or are secrets."""
_STATIC = re.compile(r"(image|font|audio|video)/|text/css|javascript|wasm", re.IGNORECASE)
_AS_NUMBER = re.compile(r'"\\u0000(.*?)\\u0000"')
FLOW = "recorded"
OWN = "own"
"""The table of [values] that has what is personal in paths."""


@dataclass
class Recording:
    """What became of a recording."""

    login: list[Entry] = field(default_factory=list)
    requests: list[Entry] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)
    """`[values]`: personal values in paths, where no variable can stand by itself."""
    notes: list[str] = field(default_factory=list)
    """What was found, a sentence each."""
    variables: list[str] = field(default_factory=list)
    """Names of what is to be in the environment."""

    def variable(self, field_name: str) -> str:
        """Return what stands in a personal field's place."""
        name = variable_name(field_name)
        if name not in self.variables:
            self.variables.append(name)
            self.notes.append(f"{field_name} is personal: export {name}=… before a run")
        return f"${{env:{name}}}"

    def place(self, field_name: str) -> str:
        """Return what stands in a path in its place."""
        column = variable_name(field_name).removeprefix(RECORDED).lower()
        variable = self.variable(field_name)
        own = self.values.setdefault(OWN, {"rows": [{}], "each": "turn"})
        own["rows"][0][column] = variable
        return f"{{{{{OWN}.{column}}}}}"


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
    after_login = 0
    for number, recorded in enumerate(pages, 1):
        body = body_of(recorded, flag).decode(errors="replace")
        fields = [*parse_qsl(body), *leaves(parsed_json(body))]
        if any(is_secret(name) for name, _ in fields):
            after_login = number
    recording.login = steps[:after_login]
    recording.requests = [{"flow": FLOW, **step} for step in steps[after_login:]]
    if not recording.requests:
        raise UserError(f"{flag}: nothing follows the login; record a page behind it, too")
    refuse_variables([steps, recording.values], flag, recording.variables)
    return recording


@dataclass
class _Step:
    """One request, known by what was there before it."""

    recorded: HarEntry
    before: Sequence[HarEntry]
    steps: list[Entry]
    """Of those before."""
    recording: Recording
    flag: str

    def entry(self) -> Entry:
        request, status = self.recorded.request, self.recorded.response.status
        entry: Entry = {"path": self._path(request.url), "method": request.method}
        headers = {
            header.name: self._header(header.name, header.value)
            for header in request.headers
            if not header.name.startswith(":")
            and (_SENT_HEADERS.fullmatch(header.name) or _TOKEN_HEADERS.fullmatch(header.name))
        }
        sent = request.post_data.mime_type if request.post_data else ""
        kind = next((headers[name] for name in headers if name.lower() == "content-type"), sent)
        entry |= self._body(body_of(self.recorded, self.flag), kind)
        if "form" in entry or "json" in entry or not body_of(self.recorded, self.flag):
            headers = {name: headers[name] for name in headers if name.lower() != "content-type"}
        if headers:
            entry["headers"] = headers
        return {**entry, "status": status} if not 200 <= status < 300 else entry

    def _path(self, url: str) -> str:
        path = path_of(url, self.flag)
        place, _, query = path.partition("?")
        if has_digit(path) and self.before and location_of(self.before[-1]) == path:
            # The last response led there, as after a form.
            return self._capture("location", len(self.before) - 1, {"header": "Location"})
        split = [part.split(";") for part in place.split("/")]
        parts = [name for name, *_ in split]
        written = [
            ";".join([self._part(parts, number), *map(self._pair, parameters)])
            for number, (_, *parameters) in enumerate(split)
        ]
        pairs = [self._pair(pair) for pair in query.split("&")] if query else []
        return "/".join(written) + (f"?{'&'.join(pairs)}" if pairs else "")

    def _part(self, parts: Sequence[str], number: int) -> str:
        part, name = unquote(parts[number]), unquote(parts[number - 1]) if number else ""
        is_hidden = is_key(name, part) or is_personal_value(part)
        if not is_hidden and not has_digit(part) and "-" not in part:
            return parts[number]
        before = "/".join(parts[:number]) + "/"
        if place := self._capture_of(name, part, before):
            return place
        return self.recording.place(name or "part") if is_hidden else parts[number]

    def _pair(self, pair: str) -> str:
        for name, value in parse_qsl(pair):
            begins = f"{pair.partition('=')[0]}="
            if not is_secret(name) and (place := self._capture_of(name, value)):
                return begins + place
            if is_personal(name, value):
                return begins + self.recording.place(name)
        return pair

    def _header(self, name: str, value: str) -> str:
        """Return a header's value: of those that hold tokens, where these come from."""
        if not _TOKEN_HEADERS.fullmatch(name):
            return value
        scheme, token = value.split(" ", 1) if " " in value else ("", value)
        place = self._capture_of(name, token) or self.recording.variable(name)
        return f"{scheme} {place}".strip()

    def _body(self, body: bytes, kind: str) -> Entry:
        text = body.decode(errors="replace")
        node = parsed_json(text)
        is_json = "json" in kind.lower()
        if body and not is_nested(node) and (pairs := form_pairs(text, kind)):
            return {"form": {name: self._value(name, value) for name, value in pairs}}
        if body and is_json and node is not None:
            filled = map_leaves(node, self._leaf)
            written = json.dumps(filled, ensure_ascii=False)
            if "\\u0000" not in written and kind.partition(";")[0].strip() == JSON_TYPE:
                return {"json": filled}
            return {"body": _AS_NUMBER.sub(r"\1", written)}
        return with_body({}, without_personal(body, kind, self.recording.variable))

    def _value(self, name: str, value: str) -> str:
        place = None if is_secret(name) else self._capture_of(name, value)
        return place or value_without(name, value, self.recording.variable)

    def _leaf(self, name: str, leaf: Any) -> Any:  # noqa: ANN401 (JSON)
        """Fill places into JSON; what stands for a number is marked by NUL at its ends."""
        if isinstance(leaf, str):
            return self._value(name, leaf)
        if isinstance(leaf, bool) or leaf is None:
            return leaf
        filled = self._value(name, str(leaf))
        return leaf if filled == str(leaf) else f"\0{filled}\0"

    def _capture_of(self, name: str, value: str, before: str = "") -> str | None:
        """Return a place for a value that an earlier response gave, the latest of several."""
        for number in reversed(range(len(self.before))):
            if source := source_of(value, name, self.before[number], before):
                return self._capture(name, number, source)
        return None

    def _capture(self, name: str, number: int, source: Capture) -> str:
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


def _free_name(name: str, steps: Sequence[Entry]) -> str:
    name = f"_{name}" if name[0].isdigit() or not name.isascii() else name
    name = name if name.isascii() else "value"
    taken = {known for step in steps for known in step.get("capture", {})} | {OWN}
    numbers = (f"{name}_{number}" for number in range(2, len(taken) + 3))
    return next(candidate for candidate in (name, *numbers) if candidate not in taken)
