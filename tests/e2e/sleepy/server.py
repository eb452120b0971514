"""Answers with "Hello", and says when it was asked again after it had been idle.

server.py PORT IDLE_S: prints the Unix time of each first request after so long without one.
"""

import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    """Opens again, like a pool of connections, what it closed when idle."""

    protocol_version = "HTTP/1.1"
    idle_s = float(sys.argv[2])
    asked_at = time.time()

    def do_GET(self) -> None:
        now = time.time()
        if now - Handler.asked_at > self.idle_s:
            sys.stdout.write(f"{now}\n")
            sys.stdout.flush()
        Handler.asked_at = now
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"Hello")

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
        """Say nothing else."""


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
