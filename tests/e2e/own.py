"""A small server of one's own, and a repository of it."""

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

SERVER = """
import http.server, os, sys

class Hello(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        body = os.environ.get("SAYS", "hello").encode() * 20
        self.send_response(int(os.environ.get("STATUS", "200")))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_): pass

http.server.ThreadingHTTPServer.request_queue_size = 128
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Hello).serve_forever()
"""
CMD = f"cmd:{sys.executable} server.py $PORT"


def git(folder: Path, *words: str) -> str:
    name = ("-c", "user.name=a", "-c", "user.email=a@b")
    done = subprocess.run(
        ["git", "-C", folder, *name, *words], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def make_repository(folder: Path, files: Mapping[str, str] | None = None) -> None:
    """Make a repository of one commit: these files, and what is in its folder."""
    for name, text in (files or {}).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    git(folder, "init", "-q", "-b", "main")
    commit(folder)


def commit(folder: Path) -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "x")


def check_refusal(home: Path, done: subprocess.CompletedProcess[str], says: str) -> None:
    assert done.returncode in {2, 3}, done.stdout
    assert re.search(says, done.stderr), done.stderr
    assert "Traceback" not in done.stderr
    assert not (home / "run").exists()
