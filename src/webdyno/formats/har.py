"""HAR files (HTTP Archive 1.2), as browsers save them from their network panel."""

import base64
import binascii
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

from pydantic import Field, ValidationError

from webdyno.core.base import Foreign
from webdyno.core.errors import UserError
from webdyno.core.format import count

SWITCHING = 101
_NOT_FETCHED = ("Memory Cache", "Disk Cache", "Service Worker", "Inspector Override")
"""What Safari calls the ways that lead to no server."""


class HarHeader(Foreign):
    """A header."""

    name: str
    value: str


class PostData(Foreign):
    """What a request sends."""

    mime_type: str = Field(default="", alias="mimeType")
    text: str = ""
    encoding: str = ""


class HarRequest(Foreign):
    """What a browser asked for."""

    method: str
    url: str
    headers: list[HarHeader] = []
    post_data: PostData | None = Field(default=None, alias="postData")


class Content(Foreign):
    """A response's body, unpacked."""

    size: int = -1
    mime_type: str = Field(default="", alias="mimeType")
    text: str = ""
    """As text; empty where the browser didn't keep it."""


class HarResponse(Foreign):
    """What it was answered."""

    status: int = 0
    headers: list[HarHeader] = []
    body_bytes: int = Field(default=-1, alias="bodySize")
    """As sent; -1 where the browser doesn't know."""
    head_bytes: int = Field(default=-1, alias="headersSize")
    """-1 where the browser doesn't know, as with HTTP/2."""
    transferred_bytes: int = Field(default=-1, alias="_transferSize")
    """Chrome's: head and body as they were received; 0 of what no server sent."""
    content: Content = Content()
    by_service_worker: object = Field(default=None, alias="_fetchedViaServiceWorker")


class Timings(Foreign):
    """Where the time of a request went, in ms."""

    wait: float | None = None
    """From the request's last byte to the response's first; -1 where the browser doesn't know."""


class HarEntry(Foreign):
    """A request with its response."""

    started: str | None = Field(default=None, alias="startedDateTime")
    connection: str | None = None
    request: HarRequest
    response: HarResponse = HarResponse()
    timings: Timings | None = None
    kind: object = Field(default=None, alias="_resourceType")
    """As Chrome calls it: `eventsource`, `preflight`."""
    cache: object = Field(default=None, alias="_fromCache")
    """Chrome's `disk` or `memory`."""
    fetched: object = Field(default=None, alias="_fetchType")
    """Safari's `Disk Cache`, `Service Worker`."""


class OwnRequests(NamedTuple):
    """The requests of a HAR file that a server of the page's own had to answer."""

    entries: list[tuple[int, HarEntry]]
    """With their numbers in the file."""
    excluded: str | None
    """What isn't among them and why, as a sentence; None where nothing was excluded."""


class _Log(Foreign):
    entries: list[HarEntry]


class _Har(Foreign):
    log: _Log


def har_entries(text: str, place: str) -> list[HarEntry]:
    """Return the entries of a HAR file; raise UserError, which names its place, if it is none."""
    try:
        return _Har.model_validate_json(text).log.entries
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(str(part) for part in fault["loc"])
        raise no_har(place, f"{where} {fault['msg'].lower()}".strip()) from None


def own_requests(entries: Sequence[HarEntry], place: str) -> OwnRequests:
    """Keep what the first one's server answered; raise UserError where it is nothing."""
    kept, excluded = list[tuple[int, HarEntry]](), Counter[str]()
    origin = next((_origin(entry) for entry in entries if not _why_excluded(entry)), None)
    for number, entry in enumerate(entries):
        why = _why_excluded(entry)
        if why is None and _origin(entry) != origin:
            why = f"to others than {origin}"
        if why is None:
            kept.append((number, entry))
        else:
            excluded[why] += 1
    why_each = "; ".join(f"{many} {why}" for why, many in excluded.items())
    note = f"{place}: {count(excluded.total(), 'request')} excluded: {why_each}"
    if not kept:
        said = f" ({why_each})" if excluded else ""
        raise UserError(
            f"{place}: there is no request in it that a server answered{said}; save it while the "
            "page loads"
        )
    return OwnRequests(kept, note if excluded else None)


def _why_excluded(entry: HarEntry) -> str | None:
    """Return why an entry is no request that a load could make; None where it is one."""
    request, response = entry.request, entry.response
    scheme = request.url.partition(":")[0].lower()
    if scheme in {"ws", "wss"} or response.status == SWITCHING or entry.kind == "websocket":
        return "over WebSockets"
    if scheme not in {"http", "https"}:
        return "for data:, blob: and the like, which need no server"
    if entry.kind == "eventsource" or response.content.mime_type.startswith("text/event-stream"):
        return "for streams (server-sent events), which have no end"
    headers = {header.name.lower() for header in request.headers}
    asks_first = request.method.upper() == "OPTIONS" and "access-control-request-method" in headers
    if entry.kind == "preflight" or asks_first:
        return "as preflight (OPTIONS), which a browser makes by itself"
    if entry.cache or response.by_service_worker or entry.fetched in _NOT_FETCHED:
        return "answered from the browser's cache or a service worker"
    if not response.status:
        return "without a response (blocked, or given up)"
    return None


def _origin(entry: HarEntry) -> str:
    try:
        return urlsplit(entry.request.url).netloc
    except ValueError:
        return ""


def body_of(entry: HarEntry, place: str) -> bytes:
    """Return what a request sent; raise UserError where that can't be read."""
    data = entry.request.post_data
    if data is None or entry.request.method.upper() in {"GET", "HEAD"}:
        return b""
    if data.encoding != "base64":
        return data.text.encode(errors="replace")
    try:
        return base64.b64decode(data.text, validate=True)
    except (binascii.Error, ValueError):
        raise UserError(f"{place}: a body in it is no base64") from None


def sent_bytes(response: HarResponse) -> int | None:
    """Return the length of a response's body as sent; None where the browser doesn't know.

    Firefox says it. Chrome says what it received, head and all; the body's own length is that of
    its content where it came unpacked.
    """
    if response.body_bytes >= 0:
        return response.body_bytes
    size = response.content.size
    is_packed = any(header.name.lower() == "content-encoding" for header in response.headers)
    if is_packed and response.transferred_bytes > 0:
        return max(response.transferred_bytes - max(response.head_bytes, 0), 0)
    return size if size >= 0 else None


def no_har(place: str, why: str) -> UserError:
    """Make the refusal of a file that lacks what a HAR file has."""
    return UserError(f"{place}: is no HAR file: {why}")
