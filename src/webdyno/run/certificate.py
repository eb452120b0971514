"""The fairness certificate: before load, the same requests go to every arm and are written down."""

import hashlib
import http.client
import socket
import zlib
from collections.abc import Collection, Iterable
from urllib.parse import urlsplit

from webdyno.model.experiment import Load
from webdyno.model.headers import accepted_encodings
from webdyno.model.records import Answer
from webdyno.run.asked import Asked
from webdyno.stack.ports import NewSocket
from webdyno.stack.ready import HttpConnection

SHOWN_BYTES = 200
"""How much of a body is kept as text: enough to recognise an error page."""

MOST_DECODED_BYTES = 1 << 30
"""A small body can unpack to one that fills the memory."""

ZLIB_FORMATS = {"gzip": 31, "deflate": 15}
"""By encoding: what zlib calls its format (RFC 9110, 8.4.1)."""

WITH_BODIES = frozenset({"POST", "PUT", "PATCH"})
"""Methods that announce that there is no body (RFC 9110, 8.6)."""

HTTP_VERSIONS = {9: "HTTP/0.9", 10: "HTTP/1.0", 11: "HTTP/1.1"}


def ask(
    url: str,
    requests: Iterable[Asked],
    load: Load,
    new_socket: NewSocket = socket.socket,
) -> list[Answer]:
    """Ask a server each request over one connection, as the load will, and keep the answers.

    Headers are those of the load, so bodies may come compressed: what is kept of them is decoded.

    `url` is the server's base URL. A request that gets no answer gives an `Answer` with an error.
    """
    target = urlsplit(url)
    connection = HttpConnection(target.netloc, load.timeout_s, new_socket)
    try:
        return [_ask_one(connection, asked, load) for asked in requests]
    finally:
        connection.close()


def _ask_one(
    connection: http.client.HTTPConnection,
    asked: Asked,
    load: Load,
) -> Answer:
    headers = load.headers if asked.headers is None else asked.headers
    told = Answer(
        path=asked.label or asked.path,
        expected_status=asked.expect.status,
        expected_sha256=asked.expect.body_sha256,
        expected_bytes=asked.expect.body_bytes,
        status=None,
    )
    try:
        # http.client would add "Accept-Encoding: identity", which no load generator sends.
        connection.putrequest(asked.method, asked.path, skip_accept_encoding=True)
        for name, value in headers.items():
            connection.putheader(name, value)
        if asked.body is not None or asked.method in WITH_BODIES:
            connection.putheader("Content-Length", str(len(asked.body or b"")))
        connection.endheaders(asked.body)
        response = connection.getresponse()
        came = response.read()
        encoding = response.getheader("Content-Encoding", "").strip().lower()
        body = decoded(came, encoding, accepted_encodings(headers))
    except (http.client.HTTPException, OSError, zlib.error, Undecodable) as error:
        connection.close()
        return told.model_copy(update={"error": str(error) or type(error).__name__})
    got = response.getheaders()
    version = HTTP_VERSIONS.get(response.version, str(response.version))
    lacks = asked.contains is not None and asked.contains.encode() not in body
    return told.model_copy(
        update={
            "status": response.status,
            "http_version": version,
            "headers": got,
            "head_bytes": _head_bytes(version, response.status, response.reason, got),
            "encoding": "" if encoding == "identity" else encoding,
            "wire_bytes": len(came),
            "body_bytes": len(body),
            "body_sha256": hashlib.sha256(body).hexdigest(),
            "lacks": asked.contains if lacks else None,
            "body_start": body[:SHOWN_BYTES].decode("utf-8", "replace"),
        }
    )


class Undecodable(Exception):  # noqa: N818 (it becomes a line of the certificate)
    """A body that can't be looked into; the message says why."""


def decoded(body: bytes, encoding: str, accepted: Collection[str]) -> bytes:
    """Take a body out of its Content-Encoding; raise Undecodable or zlib.error if that fails."""
    if encoding in {"", "identity"}:
        return body
    if encoding not in ZLIB_FORMATS.keys() & accepted:
        raise Undecodable(f"its body came in the encoding {encoding!r:.40}, which nobody asked for")
    unpacking = zlib.decompressobj(wbits=ZLIB_FORMATS[encoding])
    page = unpacking.decompress(body, MOST_DECODED_BYTES)
    if not unpacking.eof:
        raise Undecodable(f"its {encoding} body is cut off, or unpacks to very many bytes")
    return page


def _head_bytes(version: str, status: int, reason: str, headers: list[tuple[str, str]]) -> int:
    """Length of the answer's head on the wire, given one space after each header's colon."""
    lines = [f"{version} {status} {reason}", *(f"{name}: {value}" for name, value in headers), ""]
    return sum(len(line.encode("latin-1", "replace")) + 2 for line in lines)
