"""The requests of a HAR file, with the times at which a browser made them."""

from collections.abc import Iterator
from typing import BinaryIO

from webdyno.definitions.traffic.parts import text_of
from webdyno.model.mistake import Mistake
from webdyno.readers.har import HarEntry, body_of, har_entries, no_har, own_requests
from webdyno.workload.formats import Access, took
from webdyno.workload.formats.times import moment_of


def read_har(file: BinaryIO, place: str) -> tuple[Iterator[Access], list[str]]:
    """Give a HAR file's requests, all of one client, and what was left out of it.

    Raise Mistake where it is none.
    """
    own = own_requests(har_entries(text_of(file, place), place), place)
    return _accesses(own.entries, place), [own.left_out] if own.left_out else []


def _accesses(entries: list[tuple[int, HarEntry]], place: str) -> Iterator[Access]:
    seen: set[str] = set()
    waits_s = [_waited_s(entry) for _, entry in entries]
    # The shortest has little but the way there and back, which all have.
    way_s = min((wait_s for wait_s in waits_s if wait_s is not None), default=0.0)
    for (number, entry), wait_s in zip(entries, waits_s, strict=True):
        first = entry.connection not in seen if entry.connection else None
        seen.add(entry.connection or "")
        told = entry.response.body_bytes
        body = body_of(entry, place)
        yield Access(
            _started_s(entry, f"log.entries.{number}.startedDateTime", place),
            b"",
            b"",
            entry.request.method.upper().encode(errors="replace"),
            entry.request.url.encode(errors="replace"),
            entry.response.status,
            max(told if told >= 0 else entry.response.content.size, 0),
            first,
            None if wait_s is None else wait_s - way_s,
            body=body,
            content_type=_content_type(entry) if body else "",
        )


def _started_s(entry: HarEntry, where: str, place: str) -> float:
    if entry.started is None:
        raise no_har(place, f"{where} field required")
    try:
        return moment_of(entry.started)
    except (ValueError, OverflowError):
        raise Mistake(
            f"{place}: {where} {entry.started!r:.60} is no time such as 2026-11-22T13:55:36.123Z"
        ) from None


def _content_type(entry: HarEntry) -> str:
    named = (it.value for it in entry.request.headers if it.name.lower() == "content-type")
    return next(named, entry.request.post_data.mime_type if entry.request.post_data else "")


def _waited_s(entry: HarEntry) -> float | None:
    """Give how long a server took; None where the browser doesn't know, or has a cache."""
    wait_ms = entry.timings.wait if entry.timings else None
    if wait_ms is None or entry.response.body_bytes == 0:
        return None
    return took.of_number(wait_ms, 1e-3)
