"""A request that a load makes: what is sent, how often, and what the right answer is."""

import base64
import binascii
import json
import re
from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Self

from pydantic import AfterValidator, ConfigDict, Field, JsonValue, model_validator

from webdyno.model.base import Model
from webdyno.model.headers import Headers, header
from webdyno.model.paths import MOST_PATHS, WrittenPath, spell_out
from webdyno.model.text import Name

MOST_REQUESTS = 5_000
MOST_ENDPOINTS = 50
"""Endpoints that are told of apart; of more than these only all together."""
JSON_TYPE = "application/json"
_METHOD = re.compile(r"[A-Z]{1,20}")


def _method(text: str) -> str:
    if not _METHOD.fullmatch(text):
        raise ValueError(f"{text!r:.60} is no method such as GET or POST, in capital letters")
    if text in {"CONNECT", "TRACE"}:
        raise ValueError(f"{text} asks for no page; a load can't be made of it")
    return text


def _base64(text: str) -> str:
    try:
        base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ValueError("body_base64 is no base64") from None
    return text


class Request(Model):
    """One entry of `[[requests]]`."""

    model_config = ConfigDict(
        serialize_by_alias=True, validate_by_name=True, validate_by_alias=True
    )

    path: WrittenPath
    """What is asked for, a query included; `/many/{1..2000}.txt` stands for many."""
    method: Annotated[str, AfterValidator(_method)] = "GET"
    """GET, POST, PUT, …"""
    name: Name | None = None
    """What reports call it; method and path unless given. Requests of one name are told of
    together."""
    headers: Headers = {}
    """Sent with it, beside those of the load; `${env:NAME}` stands for a secret."""
    body: str | None = None
    """What is sent, as text; `${env:NAME}` stands for a secret."""
    body_file: str | None = None
    """A file that holds what is sent, named from where the experiment's file lies. Its content is
    kept with the run."""
    body_base64: Annotated[str, AfterValidator(_base64)] | None = None
    """What is sent, as base64, for bytes that are no text."""
    json_: JsonValue = Field(default=None, alias="json")
    """What is sent, as a table, list or value that is written as JSON, with its Content-Type."""
    weight: Annotated[float, Field(gt=0, le=1e9)] = 1.0
    """How often it is asked for, beside the weights of the others."""
    status: Annotated[int, Field(ge=200, le=599)] | None = None
    """The right answer's status. Unless given, that of the site's page for a GET, else 200 to 299.
    """
    contains: str | None = None
    """Text that the right answer contains; looked for before the load."""
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None = None
    """SHA-256 of the right answer's body, checked under load as well."""

    @model_validator(mode="after")
    def _one_body(self) -> Self:
        bodies = {
            "body": self.body,
            "body_file": self.body_file,
            "body_base64": self.body_base64,
            "json": self.json_,
        }
        given = [key for key, value in bodies.items() if value is not None]
        if len(given) > 1:
            raise ValueError(f"{' and '.join(given)} are both the body; give one of them")
        if given and self.method in {"GET", "HEAD"}:
            raise ValueError(
                f'{self.method} has no body; give method = "POST", or leave out {given[0]}'
            )
        return self

    @property
    def label(self) -> str:
        """What reports call it: `/`, `POST /orders`."""
        return self.name or (self.path if self.method == "GET" else f"{self.method} {self.path}")

    @property
    def paths(self) -> list[str]:
        """The paths that it stands for, as they are asked for."""
        return spell_out(self.path)

    @property
    def sent_headers(self) -> dict[str, str]:
        """Its headers, with the Content-Type of JSON where nothing else is said."""
        if self.json_ is None or header(self.headers, "content-type"):
            return self.headers
        return {**self.headers, "Content-Type": JSON_TYPE}

    @property
    def text(self) -> str | None:
        """The body that is sent, where it is text."""
        return self.body if self.json_ is None else json.dumps(self.json_, ensure_ascii=False)

    @property
    def fillable(self) -> list[str]:
        """The texts in which secrets are filled in."""
        return [*self.headers.values(), self.text or ""]


def endpoints_of(requests: Sequence[Request]) -> list[str | None]:
    """Name what is told of apart; what has neither a name nor its own path is numbered.

    None for each where there is only one, or too many.
    """
    names: list[str] = []
    seen: Counter[str] = Counter()
    for request in requests:
        seen[request.label] += 1
        nth = seen[request.label] if request.name is None else 1
        names.append(request.label if nth == 1 else f"{request.label} ({nth})")
    apart = 1 < len(set(names)) <= MOST_ENDPOINTS
    return [name if apart else None for name in names]


def _not_too_many(requests: list[Request]) -> list[Request]:
    if sum(len(request.paths) for request in requests) > MOST_PATHS:
        raise ValueError(f"the requests are more than {MOST_PATHS} in all; ask for fewer")
    return requests


WrittenRequests = Annotated[
    list[Request], Field(max_length=MOST_REQUESTS), AfterValidator(_not_too_many)
]
"""What a load asks for."""
