"""Secrets leave memory in no form: not in the folder, the reports, the logs, or what is printed."""

import base64
import html
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest

from e2e.commands import FEW, environment, webdyno
from e2e.own import commit, git
from webdyno.core.files import everything_below
from webdyno.interfaces.cli.report import FORMATS
from webdyno.questions.gate.comment import gate_comment_in

SECRET = 'pw+s3cr3t&/"%41 Zq8'  # noqa: S105 (nobody's)
PASSWORDS = ("Tr0ub4dor&3", "correct/horse+b", '9"x\\y<z>', "plain-pass")
ECHO = '''
"""Answers with what it was sent, in all encodings, and logs it; $STATUS is what it answers."""
import base64, html, json, os, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import quote, quote_plus


def all_forms(text):
    forms = [text, quote(text, safe=""), quote_plus(text), html.escape(text)]
    forms += [json.dumps(text), json.dumps({"said": json.dumps(text)})]
    for user in ("", "u", "us"):
        pair = f"{user}:{text}:x".encode()
        forms += [base64.b64encode(pair).decode(), base64.urlsafe_b64encode(pair).decode()]
        forms += [quote(base64.b64encode(pair).decode(), safe="")]
    return forms


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        given = self.headers.get("Authorization", "").removeprefix("Bearer ")
        length = int(self.headers.get("Content-Length") or 0)
        sent = self.rfile.read(length).decode()
        self.say(200 if self.path == "/up" else STATUS, given or sent or os.environ["PORT"])

    do_POST = do_GET

    def say(self, status, given):
        lines = [f"you sent: {form}" for form in all_forms(given)]
        body = "\\n".join(lines).encode()
        print("\\n".join(lines), file=sys.stderr, flush=True)
        self.send_response(status)
        self.send_header("X-Sent", quote(given))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words):
        pass


STATUS = int(os.environ.get("STATUS", "500"))
ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
'''
HEADERS = '[load.headers]\nAuthorization = "Bearer ${env:SHOP_PASSWORD}"\n'


def forms(secret: str) -> Iterator[str]:
    """Give how a secret can stand in a text, or what of it can't be anything else."""
    for text in {secret, quote(secret, safe=""), quote_plus(secret), json.dumps(secret)[1:-1]}:
        yield from (text, re.sub("%..", lambda it: it[0].lower(), text), json.dumps(text)[1:-1])
        yield html.escape(text)
    for before in range(3):
        one, other = (
            base64.b64encode(fill * before + secret.encode() + fill * 3).decode()
            for fill in (b"\0", b"\xff")
        )
        digits = "".join(a for a, b in zip(one, other, strict=True) if a == b)
        yield from (digits, digits.translate(str.maketrans("+/", "-_")), quote(digits, safe=""))


def check_hidden(secrets: Sequence[str], *texts: bytes) -> None:
    assert any("…hidden…".encode() in text for text in texts)
    for secret in secrets:
        for form in forms(secret):
            for text in texts:
                at = text.find(form.encode())
                assert at < 0, text[max(at - 200, 0) : at + 100]


def all_texts(folder: Path, done: subprocess.CompletedProcess[str]) -> list[bytes]:
    """Give all that is printed and all files below a folder, but webdyno's own sources."""
    files = [path for path in everything_below(folder) if path.is_file() and not path.is_symlink()]
    return [done.stdout.encode(), done.stderr.encode(), *(path.read_bytes() for path in files)]


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SHOP_PASSWORD", SECRET)
    (tmp_path / "echo.py").write_text(ECHO)
    return tmp_path


def experiment(more: str) -> str:
    head = 'title = "Shop"\nquestion = "Slower?"\nsite = "own"\nload.connections = 3\n'
    variant = f'stack = "cmd:{sys.executable} echo.py"\n'
    return f"{head}{more}\n[variants.old]\n{variant}[variants.new]\n{variant}"


def test_a_server_that_repeats_a_secret_with_its_errors(shop: Path) -> None:
    requests = '[[requests]]\npath = "/"\nstatus = 500\ncontains = "nothing"\n'
    for name, more in (("never-ready", ""), ("wrong", requests)):
        (shop / "shop.toml").write_text(experiment(HEADERS + more))
        done = webdyno("run", "shop.toml", "--yes", *FEW, "--verbose", "-o", name, folder=shop)
        assert done.returncode in {1, 3}, done.stdout + done.stderr
        check_hidden((SECRET,), *all_texts(shop / name, done))
    formats = f"--format={','.join(set(FORMATS) - {'pdf', 'parquet', 'autobench'})}"
    done = webdyno("report", "wrong", formats, "-o", "reports", folder=shop)
    assert done.returncode == 1, done.stderr
    check_hidden((SECRET,), *all_texts(shop / "wrong", done), *all_texts(shop / "reports", done))


@pytest.mark.long
def test_a_run_whose_responses_hold_the_secret(shop: Path) -> None:
    (shop / "shop.toml").write_text(experiment(HEADERS).replace("cmd:", "cmd:STATUS=200 "))
    done = webdyno(
        "run", "shop.toml", "--yes", *FEW, "--verbose", "--report", "-o", "r", folder=shop
    )
    assert done.returncode in {0, 5}, done.stdout + done.stderr
    check_hidden((SECRET,), *all_texts(shop / "r", done))


def test_passwords_of_a_file_of_rows_are_hidden_and_names_are_shown(shop: Path) -> None:
    rows = [json.dumps({"name": f"user-{n}", "pw": pw}) for n, pw in enumerate(PASSWORDS)]
    (shop / "users.jsonl").write_text("\n".join(rows))
    login = """
[values.user]
file = "users.jsonl"
[[login]]
path = "/login"
method = "POST"
json = { who = "{{user.name}}", p = "{{user.pw}}" }
status = 302
[[requests]]
path = "/"
"""
    (shop / "shop.toml").write_text(experiment(login).replace("cmd:", "cmd:STATUS=200 "))
    done = webdyno("run", "shop.toml", "--yes", *FEW, "--report", "-o", "r", folder=shop)
    assert done.returncode in {1, 3}, done.stdout + done.stderr
    texts = all_texts(shop / "r", done)
    check_hidden(PASSWORDS, *texts)
    assert any(b"user-0" in text for text in texts)


def test_a_gate_and_its_builds(shop: Path) -> None:
    git(shop, "init", "--initial-branch=main", ".")
    (shop / ".gitignore").write_text("scratch*\n.cache\nci\n")
    project = f"""
[app]
build = 'echo "$TOKEN"; printf "%s" ":$TOKEN" | base64'
start = "{sys.executable} echo.py"
ready = "/up"
environment = {{ TOKEN = "${{env:SHOP_PASSWORD}}", STATUS = "200" }}
[[requests]]
path = "/"
[load]
connections = 3
[load.headers]
Authorization = "Bearer ${{env:SHOP_PASSWORD}}"
"""
    (shop / "webdyno.toml").write_text(project)
    commit(shop)
    (shop / "echo.py").write_text(ECHO.replace("else STATUS", "else 500"))
    commit(shop)
    words = ("gate", "--base=main~1", "--head=main", "--path=/", *FEW, "--yes", "-o", "ci")
    done = webdyno(*words, "--report", folder=shop)
    assert done.returncode in {1, 3, 4}, done.stdout + done.stderr
    texts = all_texts(shop / "ci", done)
    check_hidden((SECRET,), *texts)
    builds = Path(environment(shop)["XDG_CACHE_HOME"]) / "webdyno/revisions"
    check_hidden((SECRET,), *(log.read_bytes() for log in builds.glob("*/build.log")))
    check_hidden((SECRET,), gate_comment_in(shop / "ci").body("webdyno", "").encode(), *texts)
    assert (shop / "ci/junit.xml").exists()
