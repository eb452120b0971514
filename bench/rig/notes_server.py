"""A server whose notes grow: whoever posts leaves one, and whoever asks waits until all are read.

Reading a note takes a microsecond of CPU time by the thread's own clock, so that a request costs
what its notes cost, however fast the machine is at the moment. With --fill it makes the table in
$DATABASE_URL; else it serves on $PORT. Without a database the notes are bytes of the file $NOTES.
"""

import os
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

NOTES_AT_FIRST = 3_000
READ_S = 1e-6
LEAVES = "INSERT INTO note (said) VALUES (repeat('-', 400))"
COUNTS = "SELECT max(id) FROM note"


class Table:
    """Notes in a database, on a connection of its own."""

    def __init__(self, url: str) -> None:
        import psycopg

        self.database: Any = psycopg.connect(url, autocommit=True)

    def count(self) -> int:
        return int(self.database.execute(COUNTS).fetchone()[0])

    def leave(self) -> None:
        self.database.execute(LEAVES)


class Bytes:
    """Notes in a file, which nobody puts back."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.exists():
            path.write_bytes(b"-" * NOTES_AT_FIRST)

    def count(self) -> int:
        return self.path.stat().st_size

    def leave(self) -> None:
        with self.path.open("ab") as file:
            file.write(b"-")


IDLE: SimpleQueue[Table | Bytes] = SimpleQueue()
"""Those whose client has gone: slots open new connections, and a database's take long to open."""


def notes() -> Table | Bytes:
    """Give the notes of a new client."""
    try:
        return IDLE.get_nowait()
    except Empty:
        url = os.environ.get("DATABASE_URL")
        return Table(url) if url else Bytes(Path(os.environ["NOTES"]))


class Notes(BaseHTTPRequestHandler):
    """Answers a client."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def setup(self) -> None:
        super().setup()
        self.notes = notes()

    def finish(self) -> None:
        IDLE.put(self.notes)
        super().finish()

    def do_GET(self) -> None:
        ends_s = time.thread_time() + READ_S * self.notes.count()
        while time.thread_time() < ends_s:
            pass
        self.answer("read")

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.notes.leave()
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
    import psycopg

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
