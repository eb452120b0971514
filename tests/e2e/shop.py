"""A shop with a login, as a framework makes it: a form with a token, a session, orders.

    python shop.py PORT

Its environment says how it is unlike others: SLOW (seconds for a password), EXPIRES (requests of a
session), PASSWORD (what it should be).
"""

import gzip
import html
import http.server
import itertools
import json
import os
import sys
import threading
import time
from http import HTTPStatus
from http.cookies import SimpleCookie
from urllib.parse import parse_qs

SLOW = float(os.environ.get("SLOW", "0"))
EXPIRES = int(os.environ.get("EXPIRES", "0"))
PASSWORD = os.environ.get("PASSWORD", "pw+")
LOCK = threading.Lock()
NUMBERS = itertools.count(1)
TOKENS: dict[str, str] = {}
SESSIONS: dict[str, str] = {}
USES: dict[str, int] = {}
OFFERS: dict[str, str] = {}
LOGINS: dict[str, int] = {}


class Shop(http.server.BaseHTTPRequestHandler):
    """Answers who has logged in."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        with LOCK:
            path = self.path.partition("?")[0]
            if path == "/login":
                return self.form()
            if path == "/logins":
                return self.say(200, json.dumps(LOGINS))
            name = self.user()
            if name is None:
                return None
            if path == "/account":
                return self.say(200, f"<h1>Your orders</h1> {name}")
            if path == "/items":
                OFFERS[name] = str(next(NUMBERS))
                return self.say(200, json.dumps({"items": [{"id": int(OFFERS[name])}]}))
            return self.say(404, "no such page")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        if self.path in {"/login", "/token"}:
            time.sleep(SLOW)
        with LOCK:
            if self.path == "/login":
                return self.log_in({key: it[0] for key, it in parse_qs(body).items()})
            if self.path == "/token":
                return self.give_token(json.loads(body))
            name = self.user()
            if name is None:
                return None
            if str(json.loads(body).get("item")) != OFFERS.get(name):
                return self.say(409, "you were never offered this")
            return self.say(201, "thanks")

    def form(self) -> None:
        number = str(next(NUMBERS))
        TOKENS[number] = f't{number}&"+/='
        page = f'<form><input type="hidden" name="csrf" value="{html.escape(TOKENS[number])}">'
        self.say(200, page, ("Set-Cookie", f"pre={number}; Path=/login"))

    def log_in(self, given: dict[str, str]) -> None:
        pre = SimpleCookie(self.headers.get("Cookie", "")).get("pre")
        if pre is None or TOKENS.get(pre.value) != given.get("csrf"):
            return self.say(403, "CSRF token missing or incorrect")
        if given.get("password") != PASSWORD + given["name"]:
            return self.say(200, "<p>Wrong name or password</p>")
        cookie = f"session={self.session(given['name'])}; Path=/; HttpOnly; Secure; Max-Age=3600"
        other = ("Set-Cookie", "a=1")
        return self.say(302, "", ("Location", "/account"), ("Set-Cookie", cookie), other)

    def give_token(self, given: dict[str, str]) -> None:
        if given.get("password") != PASSWORD + given["name"]:
            return self.say(401, '{"error": "bad credentials"}')
        return self.say(200, json.dumps({"data": {"token": self.session(given["name"])}}))

    def session(self, name: str) -> str:
        LOGINS[name] = LOGINS.get(name, 0) + 1
        session = f"s3ss10n-{next(NUMBERS)}"
        SESSIONS[session] = name
        return session

    def user(self) -> str | None:
        """Give who asks; refuse others."""
        cookie = SimpleCookie(self.headers.get("Cookie", "")).get("session")
        bearer = self.headers.get("Authorization", "").removeprefix("Bearer ")
        session = cookie.value if cookie else bearer
        USES[session] = USES.get(session, 0) + 1
        if session not in SESSIONS:
            self.say(302, "", ("Location", "/login"))
        elif EXPIRES and USES[session] > EXPIRES:
            self.say(401, '{"error": "token expired"}')
        else:
            return SESSIONS[session]
        return None

    def say(self, status: int, text: str, *headers: tuple[str, str]) -> None:
        body = text.encode()
        packs = "gzip" in self.headers.get("Accept-Encoding", "")
        body = gzip.compress(body) if packs else body
        self.send_response(HTTPStatus(status))
        for name, value in (*headers, *([("Content-Encoding", "gzip")] if packs else [])):
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


if __name__ == "__main__":
    http.server.ThreadingHTTPServer.request_queue_size = 1024
    http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Shop).serve_forever()
