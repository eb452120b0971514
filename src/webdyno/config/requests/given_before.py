"""Where a value that a request of a recording sends was given before: a capture of a response."""

import re
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlsplit

from webdyno.config.requests.personal import field_words, leaves, parsed_json
from webdyno.formats.har import HarEntry

SHORTEST_TOKEN = 6
"""Shorter values stand in too many places: where one comes from is known by names alone."""
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
    """Say where a response has a value, as a capture; None where it hasn't.

    `name`: of the field that it is sent in, or of the part of a path that stands before it, which
    a short value has to agree with. `before`: of a part of a path, all of the path before it.
    """
    if not value or not (is_token(value) or has_digit(value)):
        return None
    if is_token(value) and (in_head := _in_head(value, earlier)):
        return in_head
    text = earlier.response.content.text
    if (whole := parsed_json(text)) is not None:
        return _in_json(value, name, whole, earlier)
    return _in_page(value, name, text, before)


def location_of(earlier: HarEntry) -> str | None:
    """Give path and query that a response leads to."""
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


def _in_page(value: str, name: str, text: str, before: str) -> Capture | None:
    page = _Tokens()
    page.feed(text)
    for selector, own_name, given in page.values:
        is_its = own_name == name and field_words(name)[-1:] and field_words(name)[-1] in IDS
        if given == value and (is_token(value) or is_its):
            return {"css": selector}
    if before or is_token(value):
        return _by_what_stands_before(value, text, before)
    return None


def _by_what_stands_before(value: str, text: str, before: str) -> Capture | None:
    """Give a regular expression, where what it finds first is the value."""
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


class _Tokens(HTMLParser):
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
