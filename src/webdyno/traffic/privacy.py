"""What of a log is somebody's: dropped, or hashed with a salt that is thrown away."""

import re
import secrets
from collections import Counter
from hashlib import blake2b
from itertools import pairwise, starmap
from statistics import fmean
from typing import Literal
from urllib.parse import unquote

from webdyno.config.personal import is_key, variable_name, without_personal
from webdyno.config.requests import path_of

Treatment = Literal["drop", "hash", "keep"]
QUERIES, PARTS = "queries", "parts of paths that look personal"
FIELDS = "personal fields of bodies"

LONGEST_PATH = 700
"""So that a file of as many paths as a load asks for stays a file that can be read."""
_ESCAPED = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|([\"\\]))")
"""Bytes as nginx and Apache write them, and the quotes that Apache escapes."""
_UUID = r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F-]{22,27}"
_HASH = r"(?=.*\d)(?=.*[A-Za-z])[A-Za-z0-9=]{20,}"
_NUMBER = r"\d{7,}"
"""A telephone or account number."""
_PERSONAL = re.compile(rf".*@.*|{_UUID}|{_HASH}|{_NUMBER}", re.DOTALL)
_TELEPHONE = re.compile(r"\+\d[\d ().-]{5,18}|(?=(?:\D*\d){7})[\d(][\d ().-]{7,19}")
_DATE = re.compile(r"\d{4}[.-]\d\d?[.-]\d\d?|\d\d?[.-]\d\d?[.-]\d{4}")
_TOKEN = re.compile(r"[A-Za-z0-9_~=+.()-]{16,}")
_WORD = re.compile(r"[A-Za-z]*\d{0,4}|\d{1,6}[A-Za-z]{0,3}")
"""What stands between hyphens in a name that a person gave: a word, a number, `ipv6`, `4th`."""
_PARTS_OF_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
FEWEST_LETTERS, LONGEST_WORD = 3, 24
"""Letters of the words of a `camelCaseName`, on average, and of any word."""
_ASSET = re.compile(r"\.(?:m?js|css|map|woff2?|ttf|svg|ico|wasm)", re.IGNORECASE)
"""Names of these have hashes that are nobody's."""
_SESSION = re.compile(r".*(?:sess|sid|token|auth|key|ticket).*", re.IGNORECASE)


def looks_personal(text: str) -> bool:
    """Whether a part of a path looks like an address, a number or a token of somebody's."""
    if _PERSONAL.fullmatch(text) or (_TELEPHONE.fullmatch(text) and not _DATE.fullmatch(text)):
        return True
    return bool(_TOKEN.fullmatch(text)) and not all(map(_is_word, re.split(r"[_~=+.()-]", text)))


def _is_word(text: str) -> bool:
    """Whether it reads like a word, or several in one; letters at random change their case."""
    if not _WORD.fullmatch(text):
        return False
    lengths = [len(part) for part in _PARTS_OF_WORD.findall(text)]
    is_read = len(lengths) < 3 or fmean(lengths) >= FEWEST_LETTERS
    return is_read and max(lengths, default=0) <= LONGEST_WORD


class Privacy:
    """Makes names of clients and paths that say nothing of people; counts what it hid."""

    def __init__(
        self, queries: Treatment, parts: Literal["hash", "keep"], *, keeps_bodies: bool = False
    ) -> None:
        """`parts`: what is done with parts of paths that look like addresses, tokens, numbers."""
        self.keeps_bodies = keeps_bodies
        self.variables: list[str] = []
        """Of the environment: they stand for personal fields of bodies."""
        self._queries: Treatment = queries
        self._keep_parts = parts == "keep"
        self._salt = secrets.token_bytes(16)
        self.hidden: Counter[str] = Counter()

    def client(self, name: bytes) -> bytes:
        """Return a short name for a client, of which nobody can say who it was."""
        return blake2b(name, digest_size=8, key=self._salt).digest()

    def distinct_target(self, target: bytes) -> bytes:
        """Return what of a target distinguishes requests: without its query, if that is dropped."""
        before, mark, query = target.partition(b"?")
        if not mark:
            return target
        if self._queries != "keep":
            self.hidden[QUERIES] += 1
        if self._queries == "hash":
            return before + b"?" + self._hash(query).encode()
        return target if self._queries == "keep" else before

    def path(self, asked: bytes) -> str:
        """Return a path as experiments have it; raise ValueError, UserError where it is none."""
        text = _ESCAPED.sub(
            lambda escaped: f"%{escaped[1] or format(ord(escaped[2]), 'X')}",
            asked.decode(errors="replace"),
        )
        path = path_of(text.replace("\\", "%5C"), "the log")
        if len(path) > LONGEST_PATH or (asked[:1] != b"/" and b"://" not in asked):
            raise ValueError
        if self._keep_parts:
            return path
        place, mark, query = path.partition("?")
        parts = ["", *place.split("/")]
        return "/".join(starmap(self._part, pairwise(parts))) + mark + query

    def _part(self, before: str, part: str) -> str:
        name, *parameters = part.split(";")
        return ";".join([self._name(before, name), *map(self._parameter, parameters)])

    def _name(self, before: str, part: str) -> str:
        whole = unquote(part)
        name, dot, suffix = whole.rpartition(".")
        if not dot or not suffix.isalnum() or len(suffix) > 5 or "@" in whole:
            name, dot, suffix = whole, "", ""
        is_asset = _ASSET.fullmatch(dot + suffix)
        looks = looks_personal(name) or looks_personal(whole) or is_key(unquote(before), name)
        if not (_PERSONAL.fullmatch(name) if is_asset else looks):
            return part
        return self._hidden(name) + dot + suffix

    def _parameter(self, parameter: str) -> str:
        """Hide what a path has behind a semicolon, such as `jsessionid=…`."""
        name, equals, value = parameter.partition("=")
        if not _SESSION.fullmatch(name) and not looks_personal(unquote(value or name)):
            return parameter
        return name + equals + self._hidden(value) if equals else self._hidden(name)

    def _hidden(self, name: str) -> str:
        self.hidden[PARTS] += 1
        return self._hash(name.encode(errors="replace"))

    def body(self, body: bytes, kind: str) -> bytes:
        """Return what a request sent, with variables in the place of personal fields."""
        return without_personal(body, kind, self._variable)

    def _variable(self, field: str) -> str:
        name = variable_name(field)
        self.hidden[FIELDS] += 1
        if name not in self.variables:
            self.variables.append(name)
        return f"${{env:{name}}}"

    def _hash(self, text: bytes) -> str:
        return blake2b(text, digest_size=6, key=self._salt).hexdigest()
