"""Headers that a load sends with its requests, and what they say of answers."""

import re
from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")
_HOST = re.compile(r"([A-Za-z0-9_-][\w.-]{0,252}|\[[0-9A-Fa-f:.]{2,45}\])(:\d{1,5})?", re.ASCII)
_FIELD_VALUE = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]{0,4000}[\x21-\x7e])?")
OWN_HEADERS = frozenset({"connection", "content-length", "transfer-encoding", "te", "upgrade"})
"""What the load generator itself says in its requests."""
READABLE_ENCODINGS = frozenset({"gzip", "deflate", "identity"})
"""Encodings of bodies that the certificate can look into."""


def _sendable(headers: dict[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        if not _TOKEN.fullmatch(name):
            raise ValueError(f"{name!r:.60} is no name of a header, such as Accept-Encoding")
        if name.lower() in OWN_HEADERS:
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
    """Give a header's value, whatever letters its name is written in."""
    return next((value for key, value in headers.items() if key.lower() == name.lower()), None)


def host_name(headers: Mapping[str, str]) -> str:
    """Give the name that a Host header asks for, without a port; empty without one."""
    return host_name_of(header(headers, "host") or "")


def host_name_of(host: str) -> str:
    """Give a host without its port."""
    return re.sub(r":[0-9]*$", "", host)


def with_headers(headers: Mapping[str, str], others: Mapping[str, str]) -> dict[str, str]:
    """Give headers with others added, which take the place of those of the same name."""
    taken = {name.lower() for name in others}
    return {key: value for key, value in headers.items() if key.lower() not in taken} | dict(others)


def accepted_encodings(headers: Mapping[str, str]) -> set[str]:
    """Encodings of bodies that requests accept; none unless a header says so."""
    said = header(headers, "accept-encoding") or ""
    return {part.partition(";")[0].strip().lower() for part in said.split(",") if part.strip()}


def may_be_compressed(headers: Mapping[str, str]) -> bool:
    """Whether answers may come compressed, so that bytes on the wire aren't the page's."""
    return bool(accepted_encodings(headers) - {"identity"})
