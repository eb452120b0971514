"""The requests of a HAR file, with the times at which a browser made them."""

from collections.abc import Iterator
from typing import BinaryIO

from webdyno.definitions.traffic.parts import text_of
from webdyno.model.mistake import Mistake
from webdyno.readers.har import HarEntry, har_entries, no_har
from webdyno.workload.lines import Access, moment_of
from webdyno.workload.took import LONGEST_S


def read_har(file: BinaryIO, place: str) -> Iterator[Access]:
    """Give a HAR file's requests, all of one client; raise Mistake where it is none."""
    entries = har_entries(text_of(file, place), place)
    seen: set[str] = set()
    # The shortest has little but the way there and back, which all have.
    way_ms = min((it.timings.wait for it in entries if _was_sent(it)), default=0.0)
    for number, entry in enumerate(entries):
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
            (entry.timings.wait - way_ms) / 1e3 if _was_sent(entry) else None,
        )


def _was_sent(entry: HarEntry) -> bool:
    """Whether a server answered, of whom the browser knows when; not a cache of its own."""
    return 0 <= entry.timings.wait <= LONGEST_S * 1e3 and entry.response.body_bytes != 0
