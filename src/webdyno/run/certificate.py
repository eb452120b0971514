"""The fairness certificate: before load, the same requests go to every arm and are written down."""

import hashlib
import socket
import zlib
from collections.abc import Collection, Iterable, Sequence
from urllib.parse import urlsplit

from webdyno.model.load import Load
from webdyno.model.records import Answer
from webdyno.run.planned import PlannedRequest
from webdyno.run.unlike import without_ignored
from webdyno.stack.ports import NewSocket
from webdyno.stack.speaking import Conversation, NoAnswer

SHOWN_BYTES = 500
"""How much of a body is kept as text: enough to recognise an error page."""

COMPARED_BYTES = 1 << 16
"""How much of a body is held against the first arm's to show where they differ."""

MOST_DECODED_BYTES = 1 << 30
"""A small body can unpack to one that fills the memory."""

ZLIB_FORMATS = {"gzip": 31, "deflate": 15}
"""By encoding: what zlib calls its format (RFC 9110, 8.4.1)."""


def ask(
    url: str,
    requests: Iterable[PlannedRequest],
    load: Load,
    new_socket: NewSocket = socket.socket,
    ignored: Sequence[str] = (),
) -> list[Answer]:
    """Ask a server each request over one connection, as the load will, and keep the answers.

    What is `ignored` is taken out of bodies, unless they have to be what site or request say.

    Headers are those of the load, so bodies may come compressed: what is kept of them is decoded.

    `url` is the server's base URL. A request that gets no answer gives an `Answer` with an error.
    """
    netloc = urlsplit(url).netloc
    with Conversation(netloc, load.protocol, load.timeout_s, new_socket) as conversation:
        return [_ask_one(conversation, asked, load, ignored) for asked in requests]


def _ask_one(
    conversation: Conversation, asked: PlannedRequest, load: Load, ignored: Sequence[str]
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
        said = conversation.ask(asked.method, asked.path, headers, asked.body)
        encoding = (header(dict(said.headers), "content-encoding") or "").strip().lower()
        body = decoded(said.body, encoding, accepted_encodings(headers))
    except (NoAnswer, zlib.error, Undecodable) as error:
        conversation.close()
        return told.replace(error=str(error) or type(error).__name__)
    lacks = asked.contains is not None and asked.contains.encode() not in body
    if asked.expect.body_sha256 is None:
        body = without_ignored(body, ignored)
    return told.replace(
        body=body[:COMPARED_BYTES],
        status=said.status,
        http_version=said.version,
        tls=conversation.tls,
        headers=said.headers,
        head_bytes=said.head_bytes,
        encoding="" if encoding == "identity" else encoding,
        wire_bytes=len(said.body),
        body_bytes=len(body),
        body_sha256=hashlib.sha256(body).hexdigest(),
        lacks=asked.contains if lacks else None,
        body_start=body[:SHOWN_BYTES].decode("utf-8", "replace"),
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
