"""HAR files (HTTP Archive 1.2), as browsers save them from their network panel."""

from pydantic import Field, ValidationError

from webdyno.model.base import Foreign
from webdyno.model.mistake import Mistake


class Pair(Foreign):
    """A header."""

    name: str
    value: str


class PostData(Foreign):
    """What a request sends."""

    text: str = ""
    encoding: str = ""


class HarRequest(Foreign):
    """What a browser asked for."""

    method: str
    url: str
    headers: list[Pair] = []
    post_data: PostData | None = Field(default=None, alias="postData")


class Content(Foreign):
    """An answer's body, unpacked."""

    size: int = 0


class HarResponse(Foreign):
    """What it was answered."""

    status: int = 0
    body_bytes: int = Field(default=-1, alias="bodySize")
    """As sent; -1 where the browser doesn't know."""
    content: Content = Content()


class Timings(Foreign):
    """Where the time of a request went, in ms."""

    wait: float | None = None
    """From the request's last byte to the answer's first; -1 where the browser doesn't know."""


class HarEntry(Foreign):
    """A request with its answer."""

    started: str | None = Field(default=None, alias="startedDateTime")
    connection: str = ""
    request: HarRequest
    response: HarResponse = HarResponse()
    timings: Timings | None = None


class _Log(Foreign):
    entries: list[HarEntry]


class _Har(Foreign):
    log: _Log


def har_entries(text: str, place: str) -> list[HarEntry]:
    """Give the entries of a HAR file; raise Mistake, which names its place, if it is none."""
    try:
        return _Har.model_validate_json(text).log.entries
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(str(part) for part in fault["loc"])
        raise no_har(place, f"{where} {fault['msg'].lower()}".strip()) from None


def no_har(place: str, why: str) -> Mistake:
    """Make the refusal of a file that lacks what a HAR file has."""
    return Mistake(f"{place}: is no HAR file: {why}")
