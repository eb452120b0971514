"""A request: its path, headers and body, how often it is sent, and what the valid response is."""

import base64
import binascii
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, Self
from urllib.parse import quote

from pydantic import AfterValidator, ConfigDict, Field, JsonValue, model_validator

from webdyno.core.base import Model, Pause
from webdyno.core.paths import WrittenPath, count_paths, demand_few_paths, spell_out
from webdyno.core.session import PLACE, Capture, ValueName
from webdyno.core.tables import is_table, without_nulls
from webdyno.core.text import Name, with_secrets

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")
_HOST = re.compile(r"([A-Za-z0-9_-][\w.-]{0,252}|\[[0-9A-Fa-f:.]{2,45}\])(:\d{1,5})?", re.ASCII)
_FIELD_VALUE = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]{0,4000}[\x21-\x7e])?")
OWN_HEADERS = frozenset({"connection", "content-length", "transfer-encoding", "te", "upgrade"})
"""What the load generator itself says in its requests."""
TRAILERS = ("te", "trailers")
"""Except that gRPC's clients say so (RFC 9113, 8.2.2)."""
READABLE_ENCODINGS = frozenset({"gzip", "deflate", "identity"})
"""Encodings of bodies that the pre-flight check can look into."""


def _sendable(headers: dict[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        if not _TOKEN.fullmatch(name):
            raise ValueError(f"{name!r:.60} is no name of a header, such as Accept-Encoding")
        if name.lower() in OWN_HEADERS and (name.lower(), value) != TRAILERS:
            raise ValueError(f"the load generator itself sends {name}; leave it out of headers")
        if not _FIELD_VALUE.fullmatch(value):
            raise ValueError(f"{name}: {value!r:.60} is no value of a header: ASCII in one line")
        if name.lower() == "host" and not _HOST.fullmatch(value):
            raise ValueError(f"{name}: {value!r:.60} is no host, such as example.com")
    if len({name.lower() for name in headers}) < len(headers):
        raise ValueError("headers has the same name twice, in other letters")
    if unknown := accepted_encodings(headers) - READABLE_ENCODINGS:
        raise ValueError(
            f"webdyno can't look into bodies in the encoding {', '.join(sorted(unknown))}; "
            f"accept {', '.join(sorted(READABLE_ENCODINGS))}"
        )
    return headers


Headers = Annotated[dict[str, str], AfterValidator(_sendable)]


def header(headers: Mapping[str, str], name: str) -> str | None:
    """Return a header's value, whatever letters its name is written in."""
    return next((value for key, value in headers.items() if key.lower() == name.lower()), None)


def host_name_of(host: str) -> str:
    """Return the name in what a Host header says, without a port."""
    return re.sub(r":[0-9]*$", "", host)


def with_headers(headers: Mapping[str, str], others: Mapping[str, str]) -> dict[str, str]:
    """Return headers with others added, which take the place of those of the same name."""
    taken = {name.lower() for name in others}
    return {key: value for key, value in headers.items() if key.lower() not in taken} | dict(others)


def accepted_encodings(headers: Mapping[str, str]) -> set[str]:
    """Encodings of bodies that requests accept; none unless a header says so."""
    accepted = header(headers, "accept-encoding") or ""
    return {part.partition(";")[0].strip().lower() for part in accepted.split(",") if part.strip()}


def may_be_compressed(headers: Mapping[str, str]) -> bool:
    """Whether responses may come compressed, so that bytes on the wire aren't the page's."""
    return bool(accepted_encodings(headers) - {"identity"})


MOST_REQUESTS = 5_000
MOST_ENDPOINTS = 50
"""Endpoints that are said of apart; of more than these only all together."""
JSON_TYPE = "application/json"
FORM_TYPE = "application/x-www-form-urlencoded"
SECRET_HEADERS = frozenset({"authorization", "proxy-authorization", "cookie", "x-api-key"})
"""What stands in these is a secret, or holds one."""
_METHOD = re.compile(r"[A-Z]{1,20}")
_CALL = re.compile(r"[A-Za-z_][\w.]{0,200}/[A-Za-z_]\w{0,100}", re.ASCII)


def is_of_grpc(method: object) -> bool:
    """Whether a method is one of gRPC, such as `helloworld.Greeter/SayHello`."""
    return "/" in str(method)


def _method(text: str) -> str:
    if _CALL.fullmatch(text):
        return text
    if not _METHOD.fullmatch(text):
        raise ValueError(
            f"{text!r:.60} is no method such as GET or POST, in capital letters, nor one of gRPC "
            "such as helloworld.Greeter/SayHello"
        )
    if text in {"CONNECT", "TRACE"}:
        raise ValueError(f"{text} asks for no page; a load can't be made of it")
    return text


def _base64(text: str) -> str:
    try:
        base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ValueError("body_base64 is no base64") from None
    return text


EventFormat = Literal["sse", "lines", "grpc"]
"""How events of a streamed response are distinguished."""

MessageKind = Literal["text", "binary"]
"""What a message of a WebSocket is."""


def _path_or_method(schema: dict[str, JsonValue]) -> None:
    """Let a JSON schema demand a path of those that name no method: gRPC's are their paths."""
    del schema["required"]
    schema["anyOf"] = [{"required": ["path"]}, {"required": ["method"]}]


class WrittenRequest(Model):
    """One entry of `[[requests]]`."""

    model_config = ConfigDict(
        serialize_by_alias=True,
        validate_by_name=True,
        validate_by_alias=True,
        json_schema_extra=_path_or_method,
    )

    path: WrittenPath
    """With query; `/many/{1..2000}.txt` is many. gRPC needs none."""
    method: Annotated[str, AfterValidator(_method)] = "GET"
    """GET, POST, PUT, … or, by gRPC, `helloworld.Greeter/SayHello`."""
    name: Name | None = None
    """In reports; method and path by default."""
    headers: Headers = {}
    """In addition to the load's."""
    body: str | None = None
    """Sent as text; `${env:NAME}` stands for a secret."""
    body_file: str | None = None
    """A file, relative to the experiment's; kept with the run."""
    body_base64: Annotated[str, AfterValidator(_base64)] | None = None
    """Base64, for bytes that are no text."""
    json_: JsonValue = Field(default=None, alias="json")
    """Sent as JSON, with its Content-Type. By gRPC: the message, or a list."""
    json_file: str | None = None
    """A file with that; kept with the run."""
    form: dict[str, str] | None = None
    """Sent as an HTML form is, with its Content-Type."""
    message: str | None = None
    """A text message over WebSocket; the next follows when one has come back, or is due."""
    message_base64: Annotated[str, AfterValidator(_base64)] | None = None
    """The same, a binary one."""
    weight: Annotated[float, Field(gt=0, le=1e9)] = 1.0
    """How often, relative to the others' weights."""
    status: Annotated[int, Field(ge=200, le=599)] | None = None
    """The valid one; by default that of the site's page for a GET, else 200–299."""
    contains: str | None = None
    """Text of the valid response, looked for before the load; with `[[login]]` or flows in each."""
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None = None
    """Of the valid body, checked under load as well."""
    flow: Name | None = None
    """Requests of a flow follow each other, by one user. The first one's weight is the flow's."""
    capture: dict[ValueName, Capture] = {}
    """By name: what of its response `{{NAME}}` stands for in the user's later requests."""
    think_s: Pause | None = None
    """In a flow: mean pause before the next request; the load's by default."""
    events: EventFormat | None = None
    """Its response is a stream of events, each timed: server-sent events, lines, messages of
    gRPC."""

    @model_validator(mode="before")
    @classmethod
    def _path_of_call(cls, data: object) -> object:
        if not is_table(data) or "path" in data or not is_of_grpc(data.get("method")):
            return data
        return {**data, "path": f"/{data['method']}"}

    @model_validator(mode="after")
    def _one_body(self) -> Self:
        bodies = {
            "body": self.body,
            "body_file": self.body_file,
            "body_base64": self.body_base64,
            "json": self.json_,
            "json_file": self.json_file,
            "form": self.form,
        }
        given = [key for key, value in bodies.items() if value is not None]
        if self.message_kind is not None:
            self._check_message(given)
        if len(given) > 1:
            raise ValueError(f"{' and '.join(given)} are both the body; give one of them")
        if given and self.method in {"GET", "HEAD"}:
            raise ValueError(f'{self.method} has no body; give method = "POST", or omit {given[0]}')
        if self.is_call:
            self._check_call()
        return self

    def _check_call(self) -> None:
        if self.path != f"/{self.method}":
            raise ValueError("the method of a call says its path; omit path")
        others = {"form": self.form, "flow": self.flow, "capture": self.capture}
        if also := [key for key, its in others.items() if its]:
            raise ValueError(f"a call of gRPC has no {also[0]}; omit it")

    def _check_message(self, bodies: Sequence[str]) -> None:
        if self.message is not None and self.message_base64 is not None:
            raise ValueError("message and message_base64 are both the message; give one of them")
        others: dict[str, object] = {
            **dict.fromkeys(bodies, True),
            "method": self.method != "GET",
            "status": self.status,
            "flow": self.flow,
            "capture": self.capture,
            "events": self.events,
        }
        if also := [key for key, is_given in others.items() if is_given]:
            raise ValueError(f"a message goes over WebSocket, where there is no {also[0]}; omit it")

    @property
    def message_kind(self) -> MessageKind | None:
        """How it is sent over WebSocket; None where it is a request of HTTP."""
        if self.message is not None:
            return "text"
        return None if self.message_base64 is None else "binary"

    @property
    def is_call(self) -> bool:
        """Whether it is a call of gRPC."""
        return is_of_grpc(self.method)

    @property
    def label(self) -> str:
        """What reports call it: `/`, `POST /orders`, `message to /chat`."""
        return self.name or self.named(self.path)

    def named(self, path: str) -> str:
        """Return what it is called where this is the path."""
        if self.message_kind:
            return f"message to {path}"
        if self.is_call:
            return self.method
        return path if self.method == "GET" else f"{self.method} {path}"

    @property
    def paths(self) -> list[str]:
        return spell_out(self.path)

    @property
    def stands_for(self) -> int:
        """How many paths these are."""
        return count_paths(self.path)

    @property
    def sent_headers(self) -> dict[str, str]:
        """Its headers, with the Content-Type of JSON or a form where nothing else is said."""
        kind = FORM_TYPE if self.form is not None else JSON_TYPE
        is_plain = self.json_ is None and self.form is None
        if is_plain or self.is_call or header(self.headers, "content-type"):
            return self.headers
        return {**self.headers, "Content-Type": kind}

    @property
    def text(self) -> str | None:
        """The body or message that is sent, where it is text, without secrets."""
        if self.message is not None:
            return self.message
        return self.body if self.json_ is None else json.dumps(self.json_, ensure_ascii=False)

    @property
    def without_nulls(self) -> "WrittenRequest":
        """The same request as TOML can have it: its JSON as text, or a call's without them."""
        plain = without_nulls(self.json_)
        if plain == self.json_:
            return self
        if self.is_call:
            return self.replace(json_=plain)
        return self.replace(json_=None, body=self.text, headers=self.sent_headers)

    @property
    def call_json(self) -> str | None:
        """What a call sends as JSON, without secrets; None where it is bytes, or no call."""
        is_bytes = self.body is not None or self.body_base64 is not None
        return None if is_bytes or not self.is_call else self.text or "{}"

    def content(self, environment: Mapping[str, str]) -> bytes | None:
        """Return the body as it is sent, with secrets and without users' values."""
        if self.call_json is not None:
            return None
        for encoded in (self.message_base64, self.body_base64):
            if encoded is not None:
                return base64.b64decode(encoded)
        if self.form is not None:
            fields = (
                f"{quote(name, safe='')}={_form_value(text, environment)}"
                for name, text in self.form.items()
            )
            return "&".join(fields).encode()
        return None if self.text is None else with_secrets(self.text, environment).encode()

    @property
    def fillable(self) -> list[str]:
        """The texts in which secrets are filled in."""
        return [*self.headers.values(), self.text or "", *(self.form or {}).values()]

    @property
    def texts(self) -> list[str]:
        """The texts in which a user's values are filled in."""
        return [self.path, *self.fillable, self.contains or ""]


def _form_value(text: str, environment: Mapping[str, str]) -> str:
    """Return a form's value, percent-encoded all but the places of users' values."""
    parts = PLACE.split(text)
    parts[::2] = [quote(with_secrets(part, environment), safe="") for part in parts[::2]]
    parts[1::2] = [f"{{{{{name}}}}}" for name in parts[1::2]]
    return "".join(parts)


def endpoints_of(requests: Sequence[WrittenRequest]) -> list[str | None]:
    """Return the names of endpoints; what has neither a name nor its own path is numbered.

    None for each where there is only one, or too many.
    """
    names: list[str] = []
    seen: Counter[str] = Counter()
    for request in requests:
        label = f"{request.flow}: {request.label}" if request.flow else request.label
        seen[label] += 1
        nth = seen[label] if request.name is None else 1
        names.append(label if nth == 1 else f"{label} ({nth})")
    apart = 1 < len(set(names)) <= MOST_ENDPOINTS
    return [name if apart else None for name in names]


def parts_of(requests: Sequence[WrittenRequest]) -> list[str | None]:
    """Return what can be measured alone: flows, and requests of none; None where all are one."""
    names = [
        request.flow or endpoint
        for request, endpoint in zip(requests, endpoints_of(requests), strict=True)
    ]
    return names if len(set(names)) > 1 else [None] * len(names)


def _not_too_many(requests: list[WrittenRequest]) -> list[WrittenRequest]:
    demand_few_paths((request.path for request in requests), "the requests")
    return requests


WrittenRequests = Annotated[
    list[WrittenRequest], Field(max_length=MOST_REQUESTS), AfterValidator(_not_too_many)
]
"""What a load asks for."""
