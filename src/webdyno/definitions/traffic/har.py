"""The requests of a HAR file as an experiment has them."""

from pathlib import Path

from webdyno.definitions.traffic.parts import (
    Entry,
    counted,
    headers_of,
    path_of,
    read_text,
    with_body,
)
from webdyno.readers.har import HarEntry, body_of, har_entries, own_requests

NOT_MODIFIED, PARTIAL = 304, 206
_CONDITIONS = frozenset(
    {"if-none-match", "if-modified-since", "if-range", "range", "if-match", "if-unmodified-since"}
)
"""Headers without which an answer comes in full."""


def read_har(path: Path) -> tuple[list[Entry], str | None]:
    """Give the requests to the first one's server, and what was left out, in words.

    Raise Mistake where it is no HAR file or holds nothing to ask for. What was asked for several
    times has that as its weight. The status that was recorded is the expected one; conditions
    (`If-None-Match` and the like) are left out, so that every answer comes in full.
    """
    flag = f"--har {path}"
    own = own_requests(har_entries(read_text(path, flag), flag), flag)
    return counted(_entry(entry, flag) for _, entry in own.entries), own.left_out


def _entry(recorded: HarEntry, flag: str) -> Entry:
    request, status = recorded.request, recorded.response.status
    pairs = [(it.name, it.value) for it in request.headers if it.name.lower() not in _CONDITIONS]
    entry: Entry = {"path": path_of(request.url, flag), "method": request.method.upper()}
    if headers := headers_of(pairs):
        entry["headers"] = headers
    if 200 <= status < 600 and status not in {NOT_MODIFIED, PARTIAL}:
        entry["status"] = status
    return with_body(entry, body_of(recorded, flag))
