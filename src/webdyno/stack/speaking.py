"""Asks a server by hand: HTTP/1.1 and HTTP/2, with and without TLS."""

import http.client
import io
import re
import socket
import ssl
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Self, cast
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

from webdyno.model.format import size
from webdyno.model.request import header, host_name
from webdyno.model.service import OK
from webdyno.stack.certificates import SECURE
from webdyno.stack.sockets import NewSocket, TooLate, TooMuch, Wire, tcp

HTTP_VERSIONS = {9: "HTTP/0.9", 10: "HTTP/1.0", 11: "HTTP/1.1"}
WITH_BODIES = frozenset({"POST", "PUT", "PATCH"})
"""Methods that announce that there is no body (RFC 9110, 8.6)."""
ONE_STREAM = 1
SETTINGS = "\x04"
"""The kind of frame with which servers of HTTP/2 begin (RFC 9113, 3.4 and 6.5)."""
READ_BYTES = 65_536
SWITCHING_PROTOCOLS = 101
MOST_WORDS = 200
"""Most letters of a reason that are kept."""
SOCKET_PATH = "%2F"
"""How a Unix socket's path begins, percent-encoded."""


class NoResponse(Exception):  # noqa: N818 (it becomes a line of the pre-flight check)
    """There was no response that can be understood; the message says why."""

    def __init__(
        self,
        why: str,
        *,
        connected: bool = False,
        refused: bool = False,
        unread: bool = False,
        unfinished: str = "",
        is_late: bool = False,
    ) -> None:
        """Say why; whether it had accepted the connection, and ended it without a response.

        `unread`: what came instead can't be read. `unfinished` says how much came in which time of
        a response that has no end; `is_late`: its time was up.
        """
        super().__init__(why)
        self.connected = connected
        self.refused = refused
        self.unread = unread
        self.unfinished = unfinished
        self.is_late = is_late


class ResetStream(NoResponse):
    """The server speaks HTTP/2, but not about this request: a gRPC server resets a GET."""


class UntrustedServer(NoResponse):
    """The server's certificate isn't valid, so that nothing was said to it."""


@dataclass(frozen=True)
class ServerResponse:
    """A response."""

    status: int
    version: str
    """`HTTP/1.1`, `HTTP/2`."""
    headers: list[tuple[str, str]]
    body: bytes
    head_bytes: int
    """Length of its head on the wire; of HTTP/2 as if it were not compressed."""


@dataclass
class Conversation:
    """A connection to a server, opened again after each failure; a context manager."""

    netloc: str
    """Host and port, or the percent-encoded path of a Unix socket."""
    protocol: str
    """http, https, h2 or h2c."""
    timeout_s: float
    new_socket: NewSocket = socket.socket
    checks_certificate: bool = False
    """Whether it is only spoken with if its certificate is valid for the host that is asked."""
    tls: str = field(default="", init=False)
    """What was agreed upon, such as `TLSv1.3, TLS_AES_256_GCM_SHA384`; empty without TLS."""
    _name: str = field(default="", init=False)
    """The host that is requested on this connection; TLS names it, too."""
    _wire: Wire | None = field(default=None, init=False)
    _is_connected: bool = field(default=False, init=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; the next request opens another one."""
        if self._wire is not None:
            self._wire.close()
        self._wire = None

    def ask(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None = None
    ) -> ServerResponse:
        """Send a request and wait for the response; raise NoResponse, UntrustedServer among them.

        Of informational responses (1xx) none is the answer, however many come before it.
        """
        if (name := host_name(headers)) != self._name:
            self.close()
            self._name = name
        self._is_connected = self._wire is not None
        try:
            if self.protocol in {"h2", "h2c"}:
                return self._ask_2(method, path, headers, body)
            return self._ask_1(method, path, headers, body)
        except ssl.SSLCertVerificationError as error:
            self.close()
            why = f"its certificate isn't valid: {error.verify_message}"
            raise UntrustedServer(why, connected=True) from None
        except ResetStream:
            self.close()
            raise
        except (OSError, http.client.HTTPException, ProtocolError, TooMuch, ValueError) as error:
            so_far = self._wire.so_far if self._wire and isinstance(error, TooMuch) else ""
            self.close()
            raise NoResponse(
                _words(error),
                connected=self._is_connected,
                refused=self._is_connected and not isinstance(error, TimeoutError | TooMuch),
                unread=_is_unread(error),
                unfinished=so_far,
                is_late=isinstance(error, TooLate),
            ) from None

    @property
    def _is_unix(self) -> bool:
        return self.netloc.startswith(SOCKET_PATH)

    @property
    def _authority(self) -> str:
        return "localhost" if self._is_unix else self.netloc  # as the load engine has it

    @property
    def _host(self) -> str:
        return self.netloc.rpartition(":")[0].strip("[]")

    def _open(self) -> Wire:
        host, port = self._host, self.netloc.rpartition(":")[2]
        opened = socket.socket(socket.AF_UNIX) if self._is_unix else tcp(host, self.new_socket)
        try:
            opened.settimeout(self.timeout_s)
            if self._is_unix:
                opened.connect(unquote(self.netloc))
            else:
                opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                opened.connect((host, int(port)))
            self._is_connected = True
            if self.protocol in SECURE:
                opened = self._secured(opened)
        except BaseException:
            opened.close()
            raise
        self._wire = Wire(opened, self.timeout_s)
        return self._wire

    def _secured(self, plain: socket.socket) -> ssl.SSLSocket:
        context, name = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), _server_name(self._name)
        if self.checks_certificate:
            context.load_default_certs()
            name = name or (self._name or self._host).strip("[]")
        else:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        wanted = "h2" if self.protocol == "h2" else "http/1.1"
        context.set_alpn_protocols([wanted])
        secured = context.wrap_socket(plain, server_hostname=name)
        cipher = secured.cipher()
        self.tls = f"{secured.version()}, {cipher[0] if cipher else 'no cipher'}"
        if self.protocol == "h2" and secured.selected_alpn_protocol() != wanted:
            raise ConnectionError("the server speaks TLS, but no HTTP/2 on it")
        return secured

    def _ask_1(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None
    ) -> ServerResponse:
        wire = self._wire or self._open()
        wire.begins()
        # http.client would add "Accept-Encoding: identity", which no load generator sends.
        sending = http.client.HTTPConnection(self._authority)
        sending.sock = wire
        own_host = header(headers, "host") is not None
        sending.putrequest(method, path, skip_host=own_host, skip_accept_encoding=True)
        for name, value in headers.items():
            sending.putheader(name, value)
        if body is not None or method in WITH_BODIES:
            sending.putheader("Content-Length", str(len(body or b"")))
        try:
            sending.endheaders(body)
        except (BrokenPipeError, ConnectionResetError):
            if not body:
                raise
            taken = f"it ended the connection before it had the whole body ({size(len(body))})"
            raise ConnectionError(taken) from None
        response = _final_response(wire, method)
        came, got = _body(response), response.getheaders()
        version = HTTP_VERSIONS.get(response.version, str(response.version))
        if response.will_close:
            self.close()
        head = [f"{version} {response.status} {response.reason}"]
        return ServerResponse(response.status, version, got, came, _head_bytes(head, got))

    def _ask_2(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None
    ) -> ServerResponse:
        """Ask over a connection of its own, as its only stream."""
        try:
            return _Stream(self._open()).ask(
                [
                    (":method", method),
                    (":scheme", "https" if self.protocol in SECURE else "http"),
                    (":authority", header(headers, "host") or self._authority),
                    (":path", path),
                    *(
                        (name.lower(), value)
                        for name, value in headers.items()
                        if name.lower() != "host"
                    ),
                    *([("content-length", str(len(body)))] if body is not None else []),
                ],
                body,
            )
        finally:
            self.close()


def _server_name(name: str) -> str | None:
    """Give what TLS can name: addresses have no place there (RFC 6066, 3)."""
    is_address = name.startswith("[") or re.fullmatch(r"[0-9.]*", name)
    return None if is_address else name


def _final_response(wire: Wire, method: str) -> http.client.HTTPResponse:
    """Give the response with its head read; those of status 1xx before it are passed over."""
    readable = cast("socket.socket", wire)  # `makefile` is all that is asked of it
    while True:
        response = http.client.HTTPResponse(readable, method=method)
        response.begin()
        if response.status == SWITCHING_PROTOCOLS:
            raise ConnectionError("it changed to another protocol (101), which nobody asked for")
        if response.status >= OK:
            return response


def _body(response: http.client.HTTPResponse) -> bytes:
    """Read a body piece by piece: who trusts its length makes room for what never comes."""
    body = io.BytesIO()  # hands out what it holds without a copy
    while piece := response.read(READ_BYTES):
        body.write(piece)
    if response.length:  # what is still missing
        raise http.client.IncompleteRead(b"", response.length)
    return body.getvalue()


class _Stream:
    """One request over HTTP/2."""

    def __init__(self, connection: Wire) -> None:
        self._wire = connection
        self._http2 = H2Connection(H2Configuration(client_side=True, header_encoding="utf-8"))
        self._headers: list[tuple[str, str]] = []
        self._body = io.BytesIO()
        self._ended = False

    def ask(self, head: list[tuple[str, str]], body: bytes | None) -> ServerResponse:
        self._http2.initiate_connection()
        self._http2.send_headers(ONE_STREAM, head, end_stream=body is None)
        left = body
        while not self._ended:
            if left is not None:
                left = self._send(left)
            self._wire.sendall(self._http2.data_to_send())
            came = self._wire.recv(READ_BYTES)
            if not came:
                raise ConnectionError("it closed the connection without a response")
            self._take(self._http2.receive_data(came))
        fields = {name: value for name, value in self._headers if name.startswith(":")}
        headers = [(name, value) for name, value in self._headers if not name.startswith(":")]
        status = int(fields.get(":status", "0"))
        length = _head_bytes([f":status: {status}"], headers)
        return ServerResponse(status, "HTTP/2", headers, self._body.getvalue(), length)

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
                    self._body.write(event.data)
                    self._http2.acknowledge_received_data(
                        event.flow_controlled_length, event.stream_id
                    )
                case StreamEnded():
                    self._ended = True
                case StreamReset() if not self._ended:
                    why = f"the server reset the stream: {_code(event.error_code)}"
                    # A refused one was not looked at: the server isn't ready, or is busy.
                    if event.error_code == ErrorCodes.REFUSED_STREAM:
                        raise ConnectionError(why)
                    raise ResetStream(why, connected=True)
                case ConnectionTerminated() if not self._ended:
                    raise ConnectionError(f"the server ended HTTP/2: {_code(event.error_code)}")


def _is_unread(error: Exception) -> bool:
    """Whether something came as an answer that can't be read; a cut-off one isn't that."""
    cut_off = isinstance(error, OSError | http.client.IncompleteRead | TooMuch)
    return not cut_off and isinstance(error, http.client.HTTPException | ValueError)


def _words(error: Exception) -> str:
    """Say what went wrong; what the server sent itself may be of any length."""
    match error:
        case http.client.RemoteDisconnected():
            return "it closed the connection without a response"
        case http.client.IncompleteRead():
            return "it ended the connection in the middle of its response"
        case http.client.BadStatusLine():
            line = str(error)
            if line[3:4] == SETTINGS:
                return "it speaks HTTP/2 there, not HTTP/1.1"
            return f"what it says isn't HTTP/1.1: {line[:MOST_WORDS]!r}"
        case OSError() if error.strerror:
            return error.strerror
    return str(error)[:MOST_WORDS] or type(error).__name__


def _code(code: ErrorCodes | int | None) -> str:
    return code.name if isinstance(code, ErrorCodes) else str(code)


def _head_bytes(first: list[str], headers: list[tuple[str, str]]) -> int:
    """Length of a response's head as HTTP/1.1 writes it, one space after each header's colon."""
    lines = [*first, *(f"{name}: {value}" for name, value in headers), ""]
    return sum(len(line.encode("latin-1", "replace")) + 2 for line in lines)
