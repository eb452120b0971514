"""An entry of somebody's: a small server of Python's standard library, honest or not."""

from pathlib import Path

SERVER = """\
import hashlib
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MESSAGE = {"message": "Hello, World!"}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        if self.path == "/plaintext":
            self.answer("text/plain", b"Hello, World!")
        else:
            self.answer("application/json", json.dumps(MESSAGE).encode())

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        said = {"bytes": len(body), "sha256": hashlib.sha256(body).hexdigest()}
        self.answer("application/json", json.dumps(said).encode())

    def answer(self, kind, body):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 128


Server((sys.argv[1], int(sys.argv[2])), Handler).serve_forever()
"""
SERVICE = """\
title = "Python's http.server"
protocol = "http"
files."server.py" = "server.py"
start = [
    "{{ needs.python }}", "{{ server.folder }}/server.py", "{{ server.host }}", "{{ server.port }}",
]

[needs.python]
command = ["python3"]
apt = "python3"

[version]
command = ["{{ needs.python }}", "--version"]
pattern = 'Python (\\S+)'

[facts]
workers = "1 process, a thread for each connection"
"""
STACK = """\
title = "Python's http.server"
language = "Python"
kind = "platform"
home = "https://github.com/python/cpython"
serves = ["plaintext", "json", "upload"]
front = "python"

[services.python]
service = "python-http"
"""


def entry(folder: Path, *, stack: str = STACK, server: str = SERVER) -> Path:
    """Write it."""
    service = folder / "services/python-http"
    service.mkdir(parents=True)
    (service / "service.toml").write_text(SERVICE)
    (service / "server.py").write_text(server)
    (folder / "stacks/python-http").mkdir(parents=True)
    (folder / "stacks/python-http/stack.toml").write_text(stack)
    return folder
