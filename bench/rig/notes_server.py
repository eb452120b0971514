"""A server whose table grows: whoever posts leaves a note, and whoever asks has all of them read.

With --fill it makes the table; else it serves on $PORT. Its database is $DATABASE_URL.
"""

import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import psycopg

NOTES_AT_FIRST = 3_000
LEAVES = "INSERT INTO note (said) VALUES (repeat('-', 400))"
READS = "SELECT count(*) FROM note WHERE said LIKE '%x%'"


class Notes(BaseHTTPRequestHandler):
    """Answers on a connection of its own to the database."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def setup(self) -> None:
        super().setup()
        self.database = psycopg.connect(os.environ["DATABASE_URL"], autocommit=True)

    def finish(self) -> None:
        self.database.close()
        super().finish()

    def do_GET(self) -> None:
        self.answer(str(self.database.execute(READS).fetchone()))

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.database.execute(LEAVES)
        self.answer("left")

    def answer(self, text: str) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def fill() -> None:
    """Make the table, with notes enough that reading them takes most of a request."""
    with psycopg.connect(os.environ["DATABASE_URL"]) as database:
        database.execute("CREATE TABLE note (id serial PRIMARY KEY, said text NOT NULL)")
        database.execute(
            "INSERT INTO note (said) SELECT repeat('-', 400) FROM generate_series(1, %s)",
            (NOTES_AT_FIRST,),
        )


if __name__ == "__main__":
    if "--fill" in sys.argv:
        fill()
    else:
        ThreadingHTTPServer.request_queue_size = 128
        ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Notes).serve_forever()
