# ruff: noqa: S608 (names of tables are our own)
"""An honest program for the sites of today, which cheats are made of."""

import hashlib
import html
import json
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

import psycopg

Said = tuple[int, dict[str, str], bytes]
ADDED = (0, "Additional fortune added at request time.")
ITEM = "SELECT id, name, price, version FROM item"
Row = dict[str, int]


def as_json(value: object, status: int = 200, **headers: str) -> Said:
    return status, {"Content-Type": "application/json", **headers}, json.dumps(value).encode()


NOT_FOUND = as_json({"error": "not found"}, 404)


class Honest:
    """Does all that the sites ask for."""

    def __init__(self, database: psycopg.Connection[tuple[Any, ...]]) -> None:
        self.database = database

    def answer(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Said:
        where, query = urlsplit(path).path, parse_qs(urlsplit(path).query)
        match method, where.strip("/").split("/"):
            case "GET", ["json"]:
                return as_json(self.message())
            case "GET", ["db"]:
                return as_json(self.row())
            case "GET", ["queries"]:
                return as_json(self.rows(self.count(query)))
            case "GET", ["updates"]:
                return as_json(self.updated(self.count(query)))
            case "GET", ["fortunes"]:
                return 200, {"Content-Type": "text/html; charset=utf-8"}, self.page().encode()
            case "POST", ["upload"]:
                return as_json(self.sum(body))
            case "GET", ["items"]:
                return as_json(self.items(query))
            case "POST", ["items"]:
                return self.created(body)
            case _, ["items", number]:
                return self.item(method, int(number), headers, body)
        return 404, {}, b""

    def message(self) -> dict[str, str]:
        return {"message": "Hello, World!"}

    def asked(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        return self.database.execute(sql.encode(), values).fetchall()

    def row(self) -> Row:
        sql = "SELECT id, randomnumber FROM world WHERE id = %s"
        ((number, value),) = self.asked(sql, random.randint(1, 10_000))
        return {"id": number, "randomNumber": value}

    def count(self, query: Mapping[str, list[str]]) -> int:
        try:
            return min(max(int(query["queries"][0]), 1), 500)
        except (KeyError, ValueError):
            return 1

    def rows(self, count: int) -> list[Row]:
        return [self.row() for _ in range(count)]

    def updated(self, count: int) -> list[Row]:
        rows = self.rows(count)
        for row in rows:
            row["randomNumber"] = self.new(row["randomNumber"])
        self.write({row["id"]: row["randomNumber"] for row in rows})
        return rows

    def new(self, old: int) -> int:
        return (old + random.randint(0, 9_998)) % 10_000 + 1

    def write(self, values: Mapping[int, int]) -> None:
        with self.database.cursor() as cursor:
            cursor.executemany(
                "UPDATE world SET randomnumber = %s WHERE id = %s",
                [(value, number) for number, value in sorted(values.items())],
            )

    def page(self) -> str:
        rows = self.ordered([*self.fortunes(), *self.added()])
        cells = (f"<tr><td>{number}</td><td>{self.escaped(it)}</td></tr>" for number, it in rows)
        return (
            "<!DOCTYPE html><html><head><title>Fortunes</title></head><body><table>"
            f"<tr><th>id</th><th>message</th></tr>{''.join(cells)}</table></body></html>"
        )

    def fortunes(self) -> list[tuple[Any, ...]]:
        return self.asked("SELECT id, message FROM fortune")

    def added(self) -> list[tuple[int, str]]:
        return [ADDED]

    def ordered(self, rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        return sorted(rows, key=lambda row: str(row[1]))

    def escaped(self, text: str) -> str:
        return html.escape(text)

    def sum(self, body: bytes) -> dict[str, object]:
        return {"bytes": len(body), "sha256": hashlib.sha256(body).hexdigest()}

    def items(self, query: Mapping[str, list[str]]) -> dict[str, object]:
        page = max(int(query.get("page", ["1"])[0]), 1)
        ((total,),) = self.asked("SELECT count(*) FROM item")
        rows = self.asked(f"{ITEM} ORDER BY id LIMIT 20 OFFSET %s", (page - 1) * 20)
        items = [self.shown(row) for row in rows]
        return {"page": page, "pages": -(-total // 20), "total": total, "items": items}

    def shown(self, row: tuple[Any, ...]) -> dict[str, Any]:
        return dict(zip(("id", "name", "price", "version"), row, strict=True))

    def fault(self, body: bytes) -> str | None:
        try:
            given = json.loads(body)
            name, price = given["name"], given["price"]
        except (ValueError, KeyError, TypeError):
            return "no JSON object with name and price"
        if not isinstance(name, str) or not 1 <= len(name) <= 100:
            return "name has from 1 to 100 characters"
        return None if type(price) is int and price >= 0 else "price is a whole number, 0 or more"

    def created(self, body: bytes) -> Said:
        if fault := self.fault(body):
            return as_json({"error": fault}, 400)
        given = json.loads(body)
        sql = "INSERT INTO item (name, price) VALUES (%s, %s) RETURNING id, name, price, version"
        (row,) = self.asked(sql, given["name"], given["price"])
        return as_json(self.shown(row), 201, Location=f"/items/{row[0]}")

    def item(self, method: str, number: int, headers: Mapping[str, str], body: bytes) -> Said:
        match method:
            case "GET":
                return self.read(number, headers)
            case "PUT":
                return self.changed(number, body)
        gone = self.asked("DELETE FROM item WHERE id = %s RETURNING id", number)
        return (204, {}, b"") if gone else NOT_FOUND

    def found(self, number: int) -> list[tuple[Any, ...]]:
        return self.asked(f"{ITEM} WHERE id = %s", number)

    def read(self, number: int, headers: Mapping[str, str]) -> Said:
        if not (rows := self.found(number)):
            return NOT_FOUND
        tag = self.tag(rows[0])
        if headers.get("If-None-Match") == tag:
            return 304, {"ETag": tag}, b""
        return as_json(self.shown(rows[0]), ETag=tag)

    def tag(self, row: tuple[Any, ...]) -> str:
        return f'"{row[3]}"'

    def changed(self, number: int, body: bytes) -> Said:
        if fault := self.fault(body):
            return as_json({"error": fault}, 400)
        given = json.loads(body)
        sql = (
            f"UPDATE item SET name = %s, price = %s, {self.version()} WHERE id = %s "
            "RETURNING id, name, price, version"
        )
        rows = self.asked(sql, given["name"], given["price"], number)
        return as_json(self.shown(rows[0])) if rows else NOT_FOUND

    def version(self) -> str:
        return "version = version + 1"


@contextmanager
def served(program: Honest) -> Iterator[str]:
    """Serve a program; give its host and port."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_one_request(self) -> None:
            self.raw_requestline = self.rfile.readline(65_537)
            if not self.raw_requestline or not self.parse_request():
                self.close_connection = True
                return
            length = int(self.headers.get("Content-Length") or 0)
            headers = dict(self.headers.items())
            status, given, body = program.answer(
                self.command, self.path, headers, self.rfile.read(length)
            )
            self.send_response(status)
            for name, value in given.items():
                self.send_header(name, value)
            if status not in {204, 304}:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None: ...  # noqa: A002

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
