"""The fairness certificate: before load, the same requests go to every arm and are written down."""

import hashlib
import http.client
import socket
from collections.abc import Iterable
from urllib.parse import urlsplit

from webdyno.generator import Expectation
from webdyno.model.records import Answer
from webdyno.stack.ports import NewSocket
from webdyno.stack.ready import HttpConnection

SHOWN_BYTES = 200
"""How much of a body is kept as text: enough to recognise an error page."""

HTTP_VERSIONS = {9: "HTTP/0.9", 10: "HTTP/1.0", 11: "HTTP/1.1"}


def ask(
    url: str,
    paths: Iterable[tuple[str, Expectation]],
    timeout_s: float,
    new_socket: NewSocket = socket.socket,
) -> list[Answer]:
    """Ask a server for each path over one connection, as the load will, and keep the answers.

    `url` is the server's base URL. A path that gets no answer gives an `Answer` with an error.
    """
    target = urlsplit(url)
    connection = HttpConnection(target.netloc, timeout_s, new_socket)
    try:
        return [_ask_one(connection, path, expect) for path, expect in paths]
    finally:
        connection.close()


def _ask_one(connection: http.client.HTTPConnection, path: str, expect: Expectation) -> Answer:
    asked = Answer(
        path=path,
        expected_status=expect.status,
        expected_sha256=expect.body_sha256,
        expected_bytes=expect.body_bytes,
        status=None,
    )
    try:
        # http.client would add "Accept-Encoding: identity", which no load generator sends.
        connection.putrequest("GET", path, skip_accept_encoding=True)
        connection.endheaders()
        response = connection.getresponse()
        body = response.read()
    except (http.client.HTTPException, OSError) as error:
        connection.close()
        return asked.model_copy(update={"error": str(error) or type(error).__name__})
    headers = response.getheaders()
    version = HTTP_VERSIONS.get(response.version, str(response.version))
    return asked.model_copy(
        update={
            "status": response.status,
            "http_version": version,
            "headers": headers,
            "head_bytes": _head_bytes(version, response.status, response.reason, headers),
            "body_bytes": len(body),
            "body_sha256": hashlib.sha256(body).hexdigest(),
            "body_start": body[:SHOWN_BYTES].decode("utf-8", "replace"),
        }
    )


def _head_bytes(version: str, status: int, reason: str, headers: list[tuple[str, str]]) -> int:
    """Length of the answer's head on the wire, given one space after each header's colon."""
    lines = [f"{version} {status} {reason}", *(f"{name}: {value}" for name, value in headers), ""]
    return sum(len(line.encode("latin-1", "replace")) + 2 for line in lines)
