"""Lets nobody in but whoever has the address that was printed: token, host and origin are checked.

Any page that a browser shows may send requests to this machine's loopback interface; with a name of
its own that leads here (DNS rebinding) it may even read the answers. So a request has to name this
very address as its host, has to hold the token (in a cookie after the first one), and what changes
something has to come from a page of ours.
"""

from hmac import compare_digest
from urllib.parse import urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

TOKEN = "token"  # noqa: S105 (the name of a parameter)
COOKIE = "webdyno"
READING = {"GET", "HEAD"}
OUR_PAGES = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
REPORTS = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; "
    "frame-ancestors 'none'; base-uri 'none'"
)
"""Reports hold their style and script, and ask nobody for anything."""


class Guard:
    """Stands before an application."""

    def __init__(self, app: ASGIApp, token: str, port: int) -> None:
        """Let in who asks this port and knows the token."""
        self._app = app
        self._token = token
        self._hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        self._cookie = f"{COOKIE}-{port}"  # cookies know no ports: another one's isn't ours

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or hand on what may pass."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        refused = self._refused(request)
        if refused is not None:
            await refused(scope, receive, _with_headers(send))
            return
        await self._app(scope, receive, _with_headers(send))

    def _refused(self, request: Request) -> Response | None:
        if request.headers.get("host") not in self._hosts:
            return PlainTextResponse("ask for http://127.0.0.1 and the port\n", 400)
        given = request.query_params.get(TOKEN)
        if given is not None and compare_digest(given.encode(), self._token.encode()):
            return self._welcome(request)
        cookie = request.cookies.get(self._cookie, "")
        if not compare_digest(cookie.encode(), self._token.encode()):
            return PlainTextResponse("open the address that `webdyno serve` printed\n", 403)
        if request.method not in READING and not self._is_ours(request.headers):
            return PlainTextResponse("only webdyno's own pages may ask for that\n", 403)
        return None

    def _welcome(self, request: Request) -> Response:
        """Keep the token in a cookie, and out of the address."""
        rest = [(key, value) for key, value in request.query_params.multi_items() if key != TOKEN]
        answer = RedirectResponse(f"{request.url.path}?{urlencode(rest)}".rstrip("?"), 303)
        answer.set_cookie(self._cookie, self._token, httponly=True, samesite="strict")
        return answer

    def _is_ours(self, headers: Headers) -> bool:
        return headers.get("origin") in {f"http://{host}" for host in self._hosts}


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers.setdefault("content-security-policy", OUR_PAGES)
            headers.setdefault("x-content-type-options", "nosniff")
            headers.setdefault("referrer-policy", "same-origin")
            headers.setdefault("cache-control", "no-store")
        await send(message)

    return sending
