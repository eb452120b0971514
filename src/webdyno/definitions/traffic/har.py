"""The requests of a HAR file as an experiment has them."""

import base64
import binascii
from pathlib import Path
from urllib.parse import urlsplit

from webdyno.definitions.traffic.parts import (
    Entry,
    counted,
    headers_of,
    path_of,
    read_text,
    with_body,
)
from webdyno.model.mistake import Mistake
from webdyno.readers.har import HarEntry, PostData, har_entries

NOT_MODIFIED = 304
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
    entries = har_entries(read_text(path, flag), flag)
    asked = [it for it in entries if it.request.url.startswith(("http://", "https://"))]
    if not asked:
        raise Mistake(f"{flag}: there is no request in it; save it while the page loads")
    origin = _origin(asked[0])
    own = [entry for entry in asked if _origin(entry) == origin]
    left_out = len(entries) - len(own)
    told = f"{flag}: {left_out} requests to others than {origin} are left out" if left_out else None
    return counted(_entry(entry, flag) for entry in own), told


def _origin(entry: HarEntry) -> str:
    try:
        return urlsplit(entry.request.url).netloc
    except ValueError:
        return ""


def _entry(recorded: HarEntry, flag: str) -> Entry:
    request, status = recorded.request, recorded.response.status
    pairs = [(it.name, it.value) for it in request.headers if it.name.lower() not in _CONDITIONS]
    entry: Entry = {"path": path_of(request.url, flag), "method": request.method.upper()}
    if headers := headers_of(pairs):
        entry["headers"] = headers
    partial = 206
    if 200 <= status < 600 and status not in {NOT_MODIFIED, partial}:
        entry["status"] = status
    sends = request.post_data if entry["method"] not in {"GET", "HEAD"} else None
    return with_body(entry, _content(sends, flag) if sends else None)


def _content(data: PostData, flag: str) -> bytes:
    if data.encoding != "base64":
        return data.text.encode(errors="replace")
    try:
        return base64.b64decode(data.text, validate=True)
    except (binascii.Error, ValueError):
        raise Mistake(f"{flag}: a body in it is no base64") from None
