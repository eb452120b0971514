"""The requests of a HAR file, with the times at which a browser made them."""

from collections.abc import Iterator
from typing import BinaryIO

from webdyno.definitions.traffic.parts import text_of
from webdyno.model.mistake import Mistake
from webdyno.readers.har import HarEntry, har_entries, no_har
from webdyno.workload import took
from webdyno.workload.lines import Access, moment_of


def read_har(file: BinaryIO, place: str) -> Iterator[Access]:
    """Give a HAR file's requests, all of one client; raise Mistake where it is none."""
    entries = har_entries(text_of(file, place), place)
    seen: set[str] = set()
    waits_s = [_waited_s(entry) for entry in entries]
    # The shortest has little but the way there and back, which all have.
    way_s = min((wait_s for wait_s in waits_s if wait_s is not None), default=0.0)
    for number, (entry, wait_s) in enumerate(zip(entries, waits_s, strict=True)):
        where = f"log.entries.{number}.startedDateTime"
        if entry.started is None:
            raise no_har(place, f"{where} field required")
        first = entry.connection not in seen if entry.connection else None
        seen.add(entry.connection)
        try:
            started_s = moment_of(entry.started)
        except (ValueError, OverflowError):
            raise Mistake(
                f"{place}: {where} {entry.started!r:.60} is no time such as "
                "2026-11-22T13:55:36.123Z"
            ) from None
        told = entry.response.body_bytes
        yield Access(
            started_s,
            b"",
            entry.request.method.encode(errors="replace"),
            entry.request.url.encode(errors="replace"),
            entry.response.status,
            max(told if told >= 0 else entry.response.content.size, 0),
            first,
            None if wait_s is None else wait_s - way_s,
        )


def _waited_s(entry: HarEntry) -> float | None:
    """Give how long a server took; None where the browser doesn't know, or has a cache."""
    wait_ms = entry.timings.wait if entry.timings else None
    if wait_ms is None or entry.response.body_bytes == 0:
        return None
    return took.of_number(wait_ms / 1e3)
