"""What of a log is somebody's: dropped, or hashed with a salt that is thrown away."""

import re
import secrets
from collections import Counter
from hashlib import blake2b
from typing import Literal

from webdyno.definitions.entries import path_of

Treatment = Literal["drop", "hash", "keep"]
QUERIES, PARTS = "queries", "parts of paths that look personal"

LONGEST_PATH = 700
"""So that a file of as many paths as a load asks for stays a file that can be read."""
_ESCAPED = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|([\"\\]))")
"""Bytes as nginx and Apache write them, and the quotes that Apache escapes."""
_PERSONAL = re.compile(
    r"[^/]*(?:@|%40)[^/]*"  # an e-mail address
    r"|[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F-]{22,27}"  # a UUID
    r"|(?=[^/]*\d)(?=[^/]*[A-Za-z])[A-Za-z0-9=]{20,}"  # a token
    r"|\+?\d{7,}"  # a telephone or account number
)


def _percent_encoded(escaped: re.Match[str]) -> str:
    return f"%{escaped[1] or format(ord(escaped[2]), 'X')}"


class Privacy:
    """Makes names of clients and paths that say nothing of people; counts what it hid."""

    def __init__(self, queries: Treatment, parts: Literal["hash", "keep"]) -> None:
        """`parts`: what is done with parts of paths that look like addresses, tokens, numbers."""
        self._queries: Treatment = queries
        self._keep_parts = parts == "keep"
        self._salt = secrets.token_bytes(16)
        self.hidden: Counter[str] = Counter()

    def client(self, name: bytes) -> bytes:
        """Give a short name for a client, of which nobody can tell who it was."""
        return blake2b(name, digest_size=8, key=self._salt).digest()

    def asked(self, target: bytes) -> bytes:
        """Give what of a target tells requests apart: without its query, if that is dropped."""
        before, mark, query = target.partition(b"?")
        if not mark:
            return target
        if self._queries != "keep":
            self.hidden[QUERIES] += 1
        if self._queries == "hash":
            return before + b"?" + self._hash(query).encode()
        return target if self._queries == "keep" else before

    def path(self, asked: bytes) -> str:
        """Give a path as experiments have it; raise ValueError, UserError where it is none."""
        text = asked.decode(errors="replace")
        path = path_of(_ESCAPED.sub(_percent_encoded, text).replace("\\", "%5C"), "the log")
        if len(path) > LONGEST_PATH or (asked[:1] != b"/" and b"://" not in asked):
            raise ValueError
        if self._keep_parts:
            return path
        place, mark, query = path.partition("?")
        return "/".join(map(self._part, place.split("/"))) + mark + query

    def _part(self, part: str) -> str:
        name, dot, suffix = part.rpartition(".")
        if not dot or not suffix.isalnum() or len(suffix) > 5 or "@" in part or "%40" in part:
            name, dot, suffix = part, "", ""
        if not _PERSONAL.fullmatch(name):
            return part
        self.hidden[PARTS] += 1
        return self._hash(name.encode()) + dot + suffix

    def _hash(self, text: bytes) -> str:
        return blake2b(text, digest_size=6, key=self._salt).hexdigest()
