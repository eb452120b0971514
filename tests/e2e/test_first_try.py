"""`webdyno init` starts what it found, asks it, says what it saw, and leaves nothing behind."""

import re
import shutil
import signal
import tomllib
from pathlib import Path

import pytest

from e2e.commands import PATIENCE_S, left_behind, run_rounds, started_webdyno, wait_for, webdyno
from e2e.own import make_repository
from variants import further
from webdyno.core.errors import Exit
from webdyno.measure.folder import RunFolder
from webdyno.measure.point import FEW_USERS

SHOP = """
import http.server, json, os, sys

LISTS = json.dumps({"openapi": "3.1", "paths": {
    "/items/{id}": {"get": {"parameters": [
        {"name": "id", "in": "path", "example": 7}]}, "delete": {}},
    "/orders": {"get": {}}, "/me": {"get": {"security": [{"bearer": []}]}},
    "/gone": {"get": {}}, "/none": {"get": {}}}})
SAYS = {"/": (302, "", {"Location": "/home"}), "/home": (200, "<h1>hi</h1>", {}),
        "/items/7": (200, '{"id": 7}', {}), "/openapi.json": (200, LISTS, {}),
        "/none": (204, "", {}), "/orders": (302, "", {"Location": "/login"})}
SECRET = os.environ["SHOP_SECRET"]

class Shop(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        status, text, headers = SAYS.get(self.path, (404, "no", {}))
        self.send_response(status)
        for name, value in {"Content-Length": str(len(text)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_): pass

http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Shop).serve_forever()
"""


def test_what_is_answered_decides_what_is_written(tmp_path: Path) -> None:
    files = {"Procfile": "web: python3 shop.py\n", "shop.py": SHOP, ".gitignore": ".env\n"}
    make_repository(tmp_path, files)
    failed = webdyno("init", folder=tmp_path)
    assert failed.returncode == Exit.FAILED
    assert "KeyError: 'SHOP_SECRET'" in failed.stderr
    assert "--env SHOP_SECRET=VALUE" in failed.stderr
    assert not (tmp_path / "webdyno.toml").exists()

    done = webdyno("init", "--env", "SHOP_SECRET=x", folder=tmp_path)
    said = " ".join(done.stderr.split())
    assert done.returncode == Exit.OK, said
    assert "routes found in /openapi.json" in said
    assert "/items/7: 200, 9 bytes" in said
    assert "excluded (leads to /login: needs a login): /orders" in said
    assert "excluded (needs a login): /me" in said
    assert "excluded (writes): DELETE /items/{id}" in said
    assert "excluded (answers 404): /gone" in said
    assert left_behind(tmp_path) == []
    words = ("--env", "SHOP_SECRET=x", "--path", "/home", "--path", "/gone", "--force")
    again = webdyno("init", *words, folder=tmp_path)
    assert "/home: 200, 11 bytes" in again.stderr
    assert "excluded (answers 404): /gone" in " ".join(again.stderr.split())
    assert tomllib.loads((tmp_path / "webdyno.toml").read_text())["requests"] == [{"path": "/home"}]
    for name in (".env", ".env.example"):
        (tmp_path / name).write_text("export SHOP_SECRET=x\n")
    sourced = ("--start", ". ./.env && exec python3 shop.py", "--force", "--path", "/home")
    done = webdyno("init", *sourced, folder=tmp_path)
    assert "Git ignores .env: revisions get .env.example in its place" in done.stderr
    assert done.returncode == Exit.OK, done.stderr
    (tmp_path / ".env.example").unlink()
    done = webdyno("init", "--env", "SHOP_SECRET=x", "--force", folder=tmp_path)
    assert tomllib.loads((tmp_path / "webdyno.toml").read_text()) == {
        "app": {"start": "python3 shop.py", "environment": {"SHOP_SECRET": "x"}},
        "requests": [{"path": "/home"}, {"path": "/items/7"}, {"path": "/none", "status": 204}],
    }


LINKS = """
import http.server, os, sys

class Site(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        plain = "X-Forwarded-Proto" not in self.headers
        self.send_response(301 if plain else 200)
        if plain:
            self.send_header("Location", f"https://127.0.0.1{self.path}")
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"" if plain else b'<a href="/about">a</a> <a href="/logout">b</a>')

    def log_message(self, *_): pass

http.server.HTTPServer(("127.0.0.1", int(os.environ["PORT"])), Site).serve_forever()
"""


def test_links_are_followed_and_tls_is_said_to_be_before_it(tmp_path: Path) -> None:
    (tmp_path / "backend").mkdir()
    files = {"backend/Procfile": "web: python3 site_.py\n", "backend/site_.py": LINKS}
    make_repository(tmp_path, files)
    done = webdyno("init", folder=tmp_path)
    assert done.returncode == Exit.OK, done.stderr
    written = tomllib.loads((tmp_path / "webdyno.toml").read_text())
    assert written["app"] == {"dir": "backend", "start": "python3 site_.py"}
    assert written["load"] == {"headers": {"X-Forwarded-Proto": "https"}}
    assert written["requests"] == [{"path": "/"}, {"path": "/about"}]
    assert "since it leads to https without" in " ".join(done.stderr.split())


def test_control_c_ends_what_it_has_started(tmp_path: Path) -> None:
    up = tmp_path / "up"
    make_repository(tmp_path, {"Procfile": f"web: echo >{up} && sleep 100\n"})
    with started_webdyno("init", folder=tmp_path) as process:
        wait_for(up, lines=1)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE_S)
    assert process.returncode == Exit.INTERRUPTED
    assert not (tmp_path / "webdyno.toml").exists()
    assert left_behind(tmp_path) == []


@pytest.mark.long
def test_a_fixed_port_is_refused_with_the_line_to_write(tmp_path: Path) -> None:
    text = SHOP.replace('int(os.environ["PORT"])', "18099").replace('["SHOP_SECRET"]', ".copy()")
    make_repository(tmp_path, {"Procfile": "web: python3 shop.py\n", "shop.py": text})
    done = webdyno("init", folder=tmp_path)
    said = " ".join(done.stderr.split())
    assert done.returncode == Exit.FAILED
    assert "listens on 127.0.0.1:18099 and not on" in said
    assert "have it listen on $PORT" in said
    assert not (tmp_path / "webdyno.toml").exists()
    assert left_behind(tmp_path) == []


GO = """package main

import ("net/http"; "os")

func main() {
	http.HandleFunc("/items", func(w http.ResponseWriter, _ *http.Request) {
		w.Write([]byte("go"))
	})
	http.ListenAndServe(os.Getenv("HTTP_ADDR"), nil)
}
"""
RUST = """use std::io::{Read, Write};

fn main() {
    let port: u16 = std::env::var("PORT").unwrap().parse().unwrap();
    for stream in std::net::TcpListener::bind(("127.0.0.1", port)).unwrap().incoming() {
        let mut stream = stream.unwrap();
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nrs");
    }
}
"""
REAL = {
    "go": ({"go.mod": "module m\n\ngo 1.20\n", "main.go": GO}, "/items"),
    "cargo": (
        {
            "Cargo.toml": '[package]\nname = "shop"\nedition = "2024"\n',
            "main.rs": RUST,
        },
        "/",
    ),
    "npm": (
        {
            "package.json": '{"scripts": {"start": "nodemon index.js"}, "dependencies": {}}',
            "index.js": 'require("http").createServer((q, s) => s.end("js"))'
            '.listen(process.env.PORT, "127.0.0.1")\n',
        },
        "/",
    ),
    "uv": (
        {
            "pyproject.toml": '[project]\nname = "x"\nversion = "1"\ndependencies = ["fastapi"]\n'
            'requires-python = ">=3.11"\n',
            "main.py": "from fastapi import FastAPI\napp = FastAPI()\n"
            '@app.get("/items/{n}")\ndef item(n: int): return n\n',
        },
        "/items/1",
    ),
}
"""What real tools build, and a path of each."""


@pytest.mark.parametrize("name", [*map(further, REAL)])
def test_what_a_real_tool_builds_is_asked(tmp_path: Path, name: str) -> None:
    files, path = REAL[name]
    if "main.rs" in files:
        (tmp_path / "src").mkdir()
        files = {"Cargo.toml": files["Cargo.toml"], "src/main.rs": files["main.rs"]}
    make_repository(tmp_path, files)
    done = webdyno("init", folder=tmp_path)
    assert done.returncode == Exit.OK, done.stderr
    assert f"{path}: 200" in done.stderr
    assert left_behind(tmp_path) == []


LETS_IN = """
import http.server, json, os

class Shop(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status, data):
        body = json.dumps(data).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        let_in = self.headers.get("Authorization") == "Bearer t0k3n"
        if self.path == "/":
            self.answer(200, "shop")
        elif not let_in:
            self.answer(401, "who?")
        else:
            self.answer(404 if self.path == "/gone" else 200, self.path)

    # app.post("/login"): username, password, { token: … }
    # app.get("/orders"); app.get("/gone")
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        is_right = asked == {"username": "ann", "password": "pw"}
        self.answer(200 if is_right else 403, {"token": "t0k3n"} if is_right else "no")

    def log_message(self, *_): pass

http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Shop).serve_forever()
"""


def test_users_log_in_where_their_names_are_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_repository(tmp_path, {"Procfile": "web: python3 shop.py\n", "shop.py": LETS_IN})
    done = webdyno("init", folder=tmp_path)
    assert "behind a login: /orders, /gone" in done.stderr, done.stderr
    assert "export LOGIN_NAME=… LOGIN_PASSWORD=…" in done.stderr
    monkeypatch.setenv("LOGIN_NAME", "ann")
    monkeypatch.setenv("LOGIN_PASSWORD", "wrong")
    done = webdyno("init", "--force", folder=tmp_path)
    assert "/login isn't accepted: " in " ".join(done.stderr.split()), done.stderr
    monkeypatch.setenv("LOGIN_PASSWORD", "pw")
    done = webdyno("init", "--force", folder=tmp_path)
    assert "users get in by POST /login of its sources, as one did now" in done.stderr
    assert "excluded (answers 404): /gone" in done.stderr
    written = tomllib.loads((tmp_path / "webdyno.toml").read_text())
    assert written["requests"] == [{"path": "/orders"}, {"path": "/"}]
    with started_webdyno("up", "rev:.", folder=tmp_path) as process:
        lines = iter(process.stdout.readline, "")
        said = [next(line for line in lines if part in line) for part in ("logged in", "/orders")]
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE_S)
    assert said == ["  logged in by POST /login\n", "  /orders: 200, 9 bytes\n"]

    (tmp_path / "users.csv").write_text("name,password\nann,no\n")
    text = (tmp_path / "webdyno.toml").read_text().replace("${env:LOGIN_NAME}", "{{user.name}}")
    text = text.replace("${env:LOGIN_PASSWORD}", "{{user.password}}")
    (tmp_path / "webdyno.toml").write_text(f'{text}\n[values.user]\nfile = "users.csv"\n')
    with started_webdyno("up", "rev:.", folder=tmp_path) as process:
        line = next(line for line in iter(process.stdout.readline, "") if "/login" in line)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE_S)
    assert "403" in line
    assert left_behind(tmp_path) == []


@pytest.mark.long
def test_where_logins_are_dear_there_are_fewer_users(tmp_path: Path) -> None:
    slow = LETS_IN.replace("        is_right =", "        time.sleep(1.5)\n        is_right =")
    slow = slow.replace("import http.server, json, os", "import http.server, json, os, time")
    project = (
        '[app]\nstart = "python3 shop.py"\n'
        '[load]\nheaders.Authorization = "Bearer {{token}}"\npaths = ["/orders"]\n'
        '[[login]]\npath = "/login"\nmethod = "POST"\n'
        'json = { username = "ann", password = "pw" }\ncapture.token.json = "$.token"\n'
    )
    make_repository(tmp_path, {"shop.py": slow, "webdyno.toml": project})
    asked = ("compare", "rev:.", "rev:.", "--set=measure.warmup_s=0.2", "--set=measure.slot_s=0.2")
    reported = run_rounds(1, *asked, folder=tmp_path)
    assert re.search(r"a user takes 1\.\d+ s to log in: 8 users instead of 64", reported), reported
    run = RunFolder.open(tmp_path / "run")
    assert run.head.experiment.load.connections == FEW_USERS
    shutil.rmtree(tmp_path / "run")
    reported = run_rounds(1, *asked, "-c", "9", folder=tmp_path)
    assert "instead of 64" not in reported
