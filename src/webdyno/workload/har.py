"""The requests of a HAR file (HTTP Archive 1.2), with the times at which a browser made them."""

from collections.abc import Iterator
from pathlib import Path

from pydantic import Field, ValidationError

from webdyno.model.base import Foreign
from webdyno.model.mistake import Mistake
from webdyno.workload.lines import Access, moment_of

MOST_BYTES = 256 * 2**20
"""A HAR file is read as a whole; browsers write none that is nearly as large."""


class _Request(Foreign):
    method: str
    url: str


class _Content(Foreign):
    size: int = 0


class _Response(Foreign):
    status: int = 0
    body_bytes: int = Field(default=-1, alias="bodySize")
    content: _Content = _Content()


class _Entry(Foreign):
    started: str = Field(alias="startedDateTime")
    connection: str = ""
    request: _Request
    response: _Response = _Response()


class _Log(Foreign):
    entries: list[_Entry]


class _Har(Foreign):
    log: _Log


def read_har(path: Path) -> Iterator[Access]:
    """Give a HAR file's requests, all of one client; raise Mistake where it is none."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise Mistake(f"{path}: is larger than {MOST_BYTES // 2**20} MiB; cut it down")
        entries = _Har.model_validate_json(path.read_bytes()).log.entries
    except OSError as error:
        raise Mistake(f"{path}: can't be read: {error.strerror}") from None
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(str(part) for part in fault["loc"])
        raise Mistake(f"{path}: is no HAR file: {where} {fault['msg'].lower()}".strip()) from None
    seen: set[str] = set()
    for number, entry in enumerate(entries):
        first = entry.connection not in seen if entry.connection else None
        seen.add(entry.connection)
        try:
            started_s = moment_of(entry.started)
        except (ValueError, OverflowError):
            raise Mistake(
                f"{path}: log.entries.{number}.startedDateTime {entry.started!r:.60} is no time "
                "such as 2026-11-22T13:55:36.123Z"
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
        )
