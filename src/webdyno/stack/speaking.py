"""Asks a server by hand: HTTP/1.1 and HTTP/2, with and without TLS."""

import http.client
import socket
import ssl
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Self
from urllib.parse import unquote

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    Event,
    ResponseReceived,
    StreamEnded,
    StreamReset,
)
from h2.exceptions import ProtocolError

from webdyno.stack.certificates import SECURE
from webdyno.stack.ports import NewSocket

HTTP_VERSIONS = {9: "HTTP/0.9", 10: "HTTP/1.0", 11: "HTTP/1.1"}
WITH_BODIES = frozenset({"POST", "PUT", "PATCH"})
"""Methods that announce that there is no body (RFC 9110, 8.6)."""
ONE_STREAM = 1
READ_BYTES = 65_536
SOCKET_PATH = "%2F"
"""How a Unix socket's path begins, percent-encoded."""


class NoAnswer(Exception):  # noqa: N818 (it becomes a line of the certificate)
    """There was no answer that can be understood; the message says why."""


@dataclass(frozen=True)
class Said:
    """An answer."""

    status: int
    version: str
    """`HTTP/1.1`, `HTTP/2`."""
    headers: list[tuple[str, str]]
    body: bytes
    head_bytes: int
    """Length of its head on the wire; of HTTP/2 as if it were not compressed."""


@dataclass
class Conversation:
    """A connection to a server, opened anew after each failure; a context manager."""

    netloc: str
    """Host and port, or the percent-encoded path of a Unix socket."""
    protocol: str
    """http, https, h2 or h2c."""
    timeout_s: float
    new_socket: NewSocket = socket.socket
    tls: str = field(default="", init=False)
    """What was agreed upon, such as `TLSv1.3, TLS_AES_256_GCM_SHA384`; empty without TLS."""
    _socket: socket.socket | None = field(default=None, init=False)
    _http1: http.client.HTTPConnection | None = field(default=None, init=False)

    def __enter__(self) -> Self:
        """Nothing is opened before it is needed."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connection."""
        self.close()

    def close(self) -> None:
        """Close the connection; the next request opens another one."""
        if self._socket is not None:
            self._socket.close()
        self._socket = self._http1 = None

    def ask(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None = None
    ) -> Said:
        """Send a request and wait for the answer; raise NoAnswer."""
        try:
            if self.protocol in {"h2", "h2c"}:
                return self._ask_2(method, path, headers, body)
            return self._ask_1(method, path, headers, body)
        except (http.client.HTTPException, ProtocolError, OSError) as error:
            self.close()
            raise NoAnswer(str(error) or type(error).__name__) from None

    @property
    def _is_unix(self) -> bool:
        return self.netloc.startswith(SOCKET_PATH)

    @property
    def _authority(self) -> str:
        return "localhost" if self._is_unix else self.netloc  # as the load engine has it

    def _open(self) -> socket.socket:
        opened = socket.socket(socket.AF_UNIX) if self._is_unix else self.new_socket()
        try:
            opened.settimeout(self.timeout_s)
            if self._is_unix:
                opened.connect(unquote(self.netloc))
            else:
                opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                host, _, port = self.netloc.partition(":")
                opened.connect((host, int(port)))
            if self.protocol in SECURE:
                opened = self._secured(opened)
        except BaseException:
            opened.close()
            raise
        self._socket = opened
        return opened

    def _secured(self, plain: socket.socket) -> ssl.SSLSocket:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # our own server's
        wanted = "h2" if self.protocol == "h2" else "http/1.1"
        context.set_alpn_protocols([wanted])
        secured = context.wrap_socket(plain)
        cipher = secured.cipher()
        self.tls = f"{secured.version()}, {cipher[0] if cipher else 'no cipher'}"
        if self.protocol == "h2" and secured.selected_alpn_protocol() != wanted:
            raise ConnectionError("the server speaks TLS, but no HTTP/2 on it")
        return secured

    def _ask_1(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None
    ) -> Said:
        if self._http1 is None:
            self._http1 = http.client.HTTPConnection(self._authority)
            self._http1.sock = self._open()
        connection = self._http1
        # http.client would add "Accept-Encoding: identity", which no load generator sends.
        connection.putrequest(method, path, skip_accept_encoding=True)
        for name, value in headers.items():
            connection.putheader(name, value)
        if body is not None or method in WITH_BODIES:
            connection.putheader("Content-Length", str(len(body or b"")))
        connection.endheaders(body)
        response = connection.getresponse()
        came, got = response.read(), response.getheaders()
        version = HTTP_VERSIONS.get(response.version, str(response.version))
        if response.will_close:
            self.close()
        head = [f"{version} {response.status} {response.reason}"]
        return Said(response.status, version, got, came, _head_bytes(head, got))

    def _ask_2(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None
    ) -> Said:
        """Ask over a connection of its own, as its only stream."""
        try:
            return _Stream(self._open()).ask(
                [
                    (":method", method),
                    (":scheme", "https" if self.protocol in SECURE else "http"),
                    (":authority", self._authority),
                    (":path", path),
                    *((name.lower(), value) for name, value in headers.items()),
                    *([("content-length", str(len(body)))] if body is not None else []),
                ],
                body,
            )
        finally:
            self.close()


class _Stream:
    """One request over HTTP/2."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._http2 = H2Connection(H2Configuration(client_side=True, header_encoding="utf-8"))
        self._headers: list[tuple[str, str]] = []
        self._body = b""
        self._ended = False

    def ask(self, head: list[tuple[str, str]], body: bytes | None) -> Said:
        self._http2.initiate_connection()
        self._http2.send_headers(ONE_STREAM, head, end_stream=body is None)
        left = body
        while not self._ended:
            if left is not None:
                left = self._send(left)
            self._socket.sendall(self._http2.data_to_send())
            came = self._socket.recv(READ_BYTES)
            if not came:
                raise ConnectionError("the server closed the connection before it had answered")
            self._take(self._http2.receive_data(came))
        fields = {name: value for name, value in self._headers if name.startswith(":")}
        headers = [(name, value) for name, value in self._headers if not name.startswith(":")]
        status = int(fields.get(":status", "0"))
        length = _head_bytes([f":status: {status}"], headers)
        return Said(status, "HTTP/2", headers, self._body, length)

    def _send(self, left: bytes) -> bytes | None:
        """Send what the server takes now; give the rest, None at the end."""
        room = self._http2.local_flow_control_window(ONE_STREAM)
        most = min(room, self._http2.max_outbound_frame_size)
        if most <= 0:
            return left
        self._http2.send_data(ONE_STREAM, left[:most], end_stream=most >= len(left))
        return left[most:] if most < len(left) else None

    def _take(self, events: Iterable[Event]) -> None:
        for event in events:
            match event:
                case ResponseReceived():
                    self._headers = [(str(name), str(value)) for name, value in event.headers]
                case DataReceived():
                    self._body += event.data
                    self._http2.acknowledge_received_data(
                        event.flow_controlled_length, event.stream_id
                    )
                case StreamEnded():
                    self._ended = True
                case StreamReset() | ConnectionTerminated():
                    if not self._ended:
                        raise ConnectionError(f"the server ended HTTP/2: {_code(event.error_code)}")


def _code(code: ErrorCodes | int | None) -> str:
    return code.name if isinstance(code, ErrorCodes) else str(code)


def _head_bytes(first: list[str], headers: list[tuple[str, str]]) -> int:
    """Length of an answer's head as HTTP/1.1 writes it, one space after each header's colon."""
    lines = [*first, *(f"{name}: {value}" for name, value in headers), ""]
    return sum(len(line.encode("latin-1", "replace")) + 2 for line in lines)
