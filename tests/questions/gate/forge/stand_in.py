"""A stand-in for the comments' part of GitHub's and GitLab's API, on the loopback interface."""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


@dataclass
class Forge:
    """What is on the forge, and what was asked of it."""

    address: str = ""
    comments: list[dict[str, Any]] = field(default_factory=list)
    pulls: list[dict[str, Any]] = field(default_factory=list)
    may_write: bool = True
    asked: list[str] = field(default_factory=list)

    def answer(self, method: str, target: str, sent: dict[str, Any]) -> tuple[int, object]:
        """Answer as the two APIs do, as far as is asked here."""
        self.asked.append(f"{method} {target}")
        parts = urlsplit(target)
        page = int(parse_qs(parts.query).get("page", ["1"])[0])
        of_page = slice(100 * (page - 1), 100 * page)
        if method == "GET" and parts.path == "/user":
            return 200, {"id": 7}
        if method == "GET" and parts.path.endswith(("/comments", "/notes")):
            return 200, self.comments[of_page]
        if method == "GET" and parts.path.endswith("/pulls"):
            return 200, self.pulls[of_page]
        if not self.may_write:
            return 403, {"message": "Resource not accessible by integration"}
        if method == "POST":
            return 201, self.add(sent["body"])
        number = int(re.sub(r".*/", "", parts.path))
        (known,) = (it for it in self.comments if it["id"] == number)
        known["body"] = sent["body"]
        return 200, known

    def add(self, body: str, kind: str = "Bot", author: int = 7) -> dict[str, Any]:
        """Add a comment."""
        number = len(self.comments) + 1
        made = {
            "id": number,
            "body": body,
            "html_url": f"https://forge/comment/{number}",
            "user": {"type": kind},
            "author_association": "NONE",
            "author": {"id": author},
        }
        self.comments.append(made)
        return made


@contextmanager
def forge_stand_in() -> Iterator[Forge]:
    """Run it; its API's address is in it."""
    forge = Forge()

    class Handler(BaseHTTPRequestHandler):
        def handle_any(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            sent = json.loads(self.rfile.read(length)) if length else {}
            status, said = forge.answer(self.command, self.path, sent)
            body = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PATCH = do_PUT = handle_any  # noqa: N815 (names of the library)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        forge.address = f"http://127.0.0.1:{server.server_port}"
        yield forge
        server.shutdown()
