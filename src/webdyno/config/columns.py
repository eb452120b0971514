"""Which columns of `[values]` are secrets, by their names and by what sends them."""

import re
from collections.abc import Mapping, Sequence

from webdyno.core.request import SECRET_HEADERS, WrittenRequest
from webdyno.core.session import places

PASSWORDS = re.compile(r"pass|pwd|secret|token|credential|pin$|otp|key", re.IGNORECASE)
NAMES = re.compile(r"name|user|login|mail|account|phone|id$", re.IGNORECASE)
"""Columns that identify a user."""


def secret_columns(
    login: Sequence[WrittenRequest],
    requests: Sequence[WrittenRequest],
    headers: Mapping[str, str],
) -> set[str]:
    """Return the columns of files that are hidden, such as `user.password`.

    Those that a login sends, but names of users; elsewhere those that are called a secret, or are
    sent in a header that holds one. `headers`: those of the whole load.
    """
    every = [*login, *requests]
    tables = [headers, *(request.headers for request in every)]
    pairs = [pair for table in tables for pair in table.items()]
    sent = places(text for name, text in pairs if name.lower() in SECRET_HEADERS)
    of_login = places(text for step in login for text in step.texts)
    of_all = places(text for request in every for text in request.texts)
    return {
        *sent,
        *(place for place in of_login if not NAMES.search(place.partition(".")[2])),
        *(place for place in of_all if PASSWORDS.search(place.partition(".")[2])),
    }
