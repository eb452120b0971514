"""Answers with method, path, headers and body of the request, logs them all."""

import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer


class Echo(BaseHTTPRequestHandler):
    """Says what it was sent."""

    protocol_version = "HTTP/1.1"

    def response(self) -> None:
        """Answer 201 to POST, 200 to all else."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        until = time.process_time() + int(sys.argv[3]) / 1e6
        while self.command == "POST" and time.process_time() < until:
            pass
        head = "".join(f"{name}: {value}\n" for name, value in self.headers.items())
        said = f"{self.command} {self.path}\n".encode() + body + b"\n"
        if self.path.startswith("/headers"):
            said = head.encode() + said
        sys.stderr.write(head)
        sys.stderr.flush()
        self.wfile.write(
            f"HTTP/1.1 {201 if self.command == 'POST' else 200} OK\r\n"
            f"Content-Length: {len(said)}\r\n\r\n".encode()
            + said
        )

    do_GET = do_POST = do_PUT = response  # noqa: N815 (names of the standard library)

    def setup(self) -> None:
        """Write answers as one."""
        super().setup()
        self.wfile = self.connection.makefile("wb", buffering=-1)

    def handle_one_request(self) -> None:
        """Send what was written."""
        super().handle_one_request()
        self.wfile.flush()

    def log_message(self, *_: object) -> None:
        """Say nothing else."""


class Server(HTTPServer):
    """With room for all that connect."""

    request_queue_size = 128


Server((sys.argv[1], int(sys.argv[2])), Echo).serve_forever()
