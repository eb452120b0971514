"""A small application on PostgreSQL: books with their authors, and notes that anybody may leave."""

import sys
from pathlib import Path

MIGRATE = """
import os, psycopg

with psycopg.connect(os.environ["DATABASE_URL"]) as database:
    database.execute("CREATE TABLE author (id int PRIMARY KEY, name text NOT NULL)")
    database.execute("CREATE TABLE book (title text NOT NULL, author int REFERENCES author)")
    database.execute("CREATE TABLE note (id serial PRIMARY KEY, said text NOT NULL)")
    database.execute("INSERT INTO author SELECT n, 'Author ' || n FROM generate_series(1, 50) n")
    database.execute("INSERT INTO book SELECT 'Book ' || n, n FROM generate_series(1, 50) n")
"""
JOINED = """
    found = database.execute("SELECT title, name FROM book JOIN author ON author.id = author")
    return found.fetchall()
"""
ONE_BY_ONE = """
    found = database.execute("SELECT title, author FROM book").fetchall()
    name = "SELECT name FROM author WHERE id = %s"
    return [(title, database.execute(name, (it,)).fetchone()[0]) for title, it in found]
"""
SERVER = """
import http.server, json, os, psycopg

def books(database):BOOKS
def notes(database):
    return database.execute("SELECT count(*) FROM note WHERE said LIKE '%x%'").fetchall()

def leave(database):
    database.execute("INSERT INTO note (said) VALUES (repeat('-', 400))")

ANSWERS = {("GET", "/books"): books, ("GET", "/notes"): notes, ("POST", "/notes"): leave}

class Library(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def setup(self):
        super().setup()
        self.database = psycopg.connect(os.environ["DATABASE_URL"], autocommit=True)

    def finish(self):
        self.database.close()
        super().finish()

    def do_GET(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = json.dumps(ANSWERS[self.command, self.path](self.database)).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET

    def log_message(self, *_): pass

http.server.ThreadingHTTPServer.request_queue_size = 128
http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Library).serve_forever()
"""
APP = f"""
[app]
start = "{sys.executable} server.py"
setup = "{sys.executable} migrate.py"
services.db = "postgresql"

[load]
connections = 4
"""


def write(folder: Path, books: str = JOINED) -> None:
    """Write the application, which looks books up in this way."""
    files = {"server.py": SERVER.replace("BOOKS", books), "migrate.py": MIGRATE}
    for name, text in {**files, "webdyno.toml": APP}.items():
        (folder / name).write_text(text)
