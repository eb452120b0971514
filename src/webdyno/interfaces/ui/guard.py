"""Lets in only who has the address that was printed.

Any page that a browser shows may send requests to this machine's loopback interface. With a name of
its own that leads here (DNS rebinding) it may even read the answers. So a request has to name this
address as its host, and what changes something has to come from a page of ours.

The token is a part of every page's path, and in no cookie. A browser sends cookies to all ports of
a host, so another server on this machine would get it.

A report comes from a run's folder, which somebody else may have made. It has no rights: the browser
gives it an origin of its own (`sandbox`), and its path holds a seal for this report alone.

A connection whose request doesn't come to its end is ended, at once where there are many, so that
nobody can hold all of them.
"""

import asyncio
import hashlib
import hmac
from collections.abc import Callable
from secrets import randbelow
from typing import ClassVar
from urllib.parse import quote

import h11
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

Defect = Callable[[Exception], str]
"""Keeps an exception that nobody foresaw, and gives the sentence for people."""

READING = {"GET", "HEAD"}
REPORT = "report"
OUR_PAGES = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
REPORTS = (
    "sandbox allow-scripts; default-src 'none'; style-src 'unsafe-inline'; "
    "script-src 'unsafe-inline'; img-src data:; form-action 'none'; frame-ancestors 'none'; "
    "base-uri 'none'"
)
"""Reports hold their style and script, and ask nobody for anything."""

REQUEST_WITHIN_S = 20.0
MOST_AWAITED = 100
"""More than come in at once, and far fewer than files may be open."""
LOOPBACK = "127.0.0.1"


def fresh_address() -> str:
    """Return an address of the loopback interface that no page of this browser had before.

    A browser keeps what an address and port had registered with it, such as a service worker, which
    sees the token of whatever is served there next.
    """
    return f"127.{randbelow(254) + 1}.{randbelow(256)}.{randbelow(254) + 1}"


class Addresses:
    """The paths of the pages and of the reports; whoever knows a path may open it."""

    def __init__(self, token: str) -> None:
        self._token = token

    def page(self, *parts: str) -> str:
        """Return the path of a page, which holds the token."""
        return f"/{quote('/'.join((self._token, *parts)) if parts else f'{self._token}/')}"

    def report(self, name: str) -> str:
        """Return the path of a run's report, which holds its seal and no token."""
        return f"/{REPORT}/{self._seal(name)}/{quote(name)}"

    def holds_token(self, path: str) -> bool:
        return _same(path.removeprefix("/").partition("/")[0], self._token)

    def is_sealed(self, seal: str, name: str) -> bool:
        return _same(seal, self._seal(name))

    def _seal(self, name: str) -> str:
        return hmac.new(self._token.encode(), name.encode(), hashlib.sha256).hexdigest()


def _same(given: str, right: str) -> bool:
    return hmac.compare_digest(given.encode(errors="replace"), right.encode())


class Guard:
    """Stands before an application."""

    def __init__(
        self,
        app: ASGIApp,
        addresses: Addresses,
        port: int,
        defect: Defect,
        address: str = LOOPBACK,
    ) -> None:
        """Let in who asks this port for a path that holds the token, or for a report."""
        self._app = app
        self._defect = defect
        self._addresses = addresses
        self._address = f"{address}:{port}"
        # The others are those of a tunnel that leads here, such as SSH's.
        self._hosts = {self._address, f"{LOOPBACK}:{port}", f"localhost:{port}"}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        sending = _Sending(send)
        try:
            await (self._refusal(Request(scope)) or self._app)(scope, receive, sending)
        except Exception as error:  # noqa: BLE001 (a run may be such that judging it fails)
            said = PlainTextResponse(f"{self._defect(error)}\n", 500)
            if not sending.has_begun:
                await said(scope, receive, sending)

    def _refusal(self, request: Request) -> Response | None:
        if request.headers.get("host") not in self._hosts:
            return PlainTextResponse(f"ask for http://{self._address}\n", 400)
        path = request.scope["path"]
        is_page = self._addresses.holds_token(path)
        if not is_page and not path.startswith(f"/{REPORT}/"):
            return PlainTextResponse("open the address that `webdyno ui` printed\n", 403)
        ours = {f"http://{host}" for host in self._hosts}
        if request.method not in READING and request.headers.get("origin") not in ours:
            return PlainTextResponse("only webdyno's own pages may ask for that\n", 403)
        return None


class _Sending:
    """Sends an answer with the headers that all of ours have."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.has_begun = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.has_begun = True
            headers = MutableHeaders(scope=message)
            headers.setdefault("content-security-policy", OUR_PAGES)
            headers.setdefault("x-content-type-options", "nosniff")
            # A path holds the token: nobody but its own page learns it, reports neither.
            headers.setdefault("referrer-policy", "strict-origin")
            headers.setdefault("cache-control", "no-store")
        await self._send(message)


class ImpatientProtocol(H11Protocol):
    """HTTP/1.1 as Uvicorn speaks it, with limits on how long requests are awaited, and how many."""

    _awaited: ClassVar[dict["ImpatientProtocol", asyncio.TimerHandle]] = {}
    """The limits of those whose next request hasn't come, the one that came first first."""

    def connection_made(  # type: ignore[override] # as in Uvicorn
        self, transport: asyncio.Transport
    ) -> None:
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Wait for the rest of a request, or no longer once it is complete."""
        super().data_received(data)
        if self.conn.their_state in {h11.IDLE, h11.SEND_BODY}:
            self._wait()
        else:
            self._wait_no_more()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self._wait_no_more()
        super().connection_lost(exc)

    def _wait(self) -> None:
        if self in self._awaited:
            return
        if len(self._awaited) >= MOST_AWAITED:
            next(iter(self._awaited))._end()
        self._awaited[self] = self.loop.call_later(REQUEST_WITHIN_S, self._end)

    def _end(self) -> None:
        self._wait_no_more()
        self.transport.abort()

    def _wait_no_more(self) -> None:
        if limit := self._awaited.pop(self, None):
            limit.cancel()
