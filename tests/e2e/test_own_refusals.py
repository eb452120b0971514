"""What keeps a user's own system from being measured is known soon, with what to do."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from e2e.commands import FEW, run_rounds, started_webdyno, statuses, webdyno
from e2e.own import CMD, SERVER, check_refusal, commit, git
from webdyno.measure.folder import RunFolder
from webdyno.servers.service_graph import free_port

ONLY_IPV6 = """
import http.server, socket, sys

class Server(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6

class Hello(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"hello")

    def log_message(self, *_): pass

Server(("::1", int(sys.argv[1])), Hello).serve_forever()
"""
CLOSING = """
import socket, sys
with socket.create_server(("127.0.0.1", int(sys.argv[1]))) as server:
    while True:
        connection, _ = server.accept()
        with connection:
            connection.recv(65536)
"""
UNASKED = """
import http.server, sys

class Items(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        right = self.path == "/items" and self.headers["Cookie"] == "a=b"
        self.send_response(200 if right else 502)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"hello")

    def log_message(self, *_): pass

http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Items).serve_forever()
"""


def command(home: Path, program: str, arguments: str = "$PORT") -> str:
    (home / "program.py").write_text(program)
    return f"cmd:{sys.executable} program.py {arguments}"


def test_who_listens_on_ipv6_alone_is_reported_to_listen_at_host(home: Path) -> None:
    done = webdyno("compare", command(home, ONLY_IPV6), CMD, "--output=run", folder=home)
    check_refusal(home, done, r"listens on \[::1\]:\d+ and not on 127.0.0.1:\d+: have it .* \$HOST")


def test_who_listens_on_another_port_is_reported_to_listen_on_port(home: Path) -> None:
    done = webdyno("compare", command(home, ONLY_IPV6, "18126"), CMD, "--output=run", folder=home)
    check_refusal(home, done, r"listens on \[::1\]:18126 and not on .* \$PORT")


def test_who_ends_connections_without_an_answer_is_reported_so(home: Path) -> None:
    done = webdyno("compare", command(home, CLOSING), CMD, "--output=run", folder=home)
    check_refusal(home, done, "ends connections without a response to http")


COOKIES = """
import http.server, sys

class Many(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        for number in range(301):
            self.send_header("Set-Cookie", f"a{number}=b")
        self.end_headers()

    def log_message(self, *_): pass

http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Many).serve_forever()
"""


def test_who_answers_with_many_headers_is_measured(home: Path) -> None:
    wanted = command(home, COOKIES)
    run_rounds(1, "compare", wanted, wanted, *FEW, folder=home)
    assert statuses(home) == {"200"}


def test_only_what_will_be_asked_has_to_be_answered(home: Path) -> None:
    wanted = command(home, UNASKED)
    cookie = ("--path=/items", "--set=load.headers.Cookie=a=b")
    run_rounds(1, "compare", wanted, wanted, *cookie, *FEW, folder=home)
    assert statuses(home) == {"200"}
    done = webdyno("compare", wanted, wanted, "--path=/other", "--output=other", folder=home)
    assert done.returncode == 3
    assert "/other with status 502" in done.stderr
    assert "--ready" in done.stderr


def test_a_running_system_may_listen_at_the_loopback_address_of_ipv6(home: Path) -> None:
    port = free_port()
    words = [sys.executable, "-c", ONLY_IPV6, str(port)]  # not of the test's folder
    with subprocess.Popen(words, cwd="/") as server:
        try:
            time.sleep(1)
            if server.poll() is not None:
                pytest.skip("no IPv6 here")
            here = f"url:http://[::1]:{port}"
            run_rounds(1, "compare", here, here, *FEW, folder=home)
            assert statuses(home) == {"200"}
            either = f"url:http://localhost:{port}"
            done = webdyno("compare", either, here, *FEW, "--output=second", folder=home)
            assert done.returncode == 0, done.stderr
        finally:
            server.terminate()
            server.wait()


def test_what_can_be_known_before_measuring_is_known_before_the_pilots(home: Path) -> None:
    missing = CMD.replace("cmd:", "cmd:STATUS=302 ")
    done = webdyno("compare", missing, CMD, "--time=5s", "--output=run", folder=home)
    assert done.returncode == 1, done.stderr
    assert "answered 302 to /" in " ".join(done.stdout.split())
    assert "few-rounds" not in done.stdout
    kinds = [it.kind for it in RunFolder.open(home / "run").records()]
    assert kinds == ["session", "preflight", "stop"]


@pytest.mark.long
def test_a_revision_may_answer_otherwise_unless_that_is_refused(repository: Path) -> None:
    (repository / "webdyno.toml").write_text(f'[app]\nstart = "{CMD[4:]}"\n')
    commit(repository)
    git(repository, "tag", "before")
    (repository / "server.py").write_text(SERVER.replace('"hello"', '"something else"'))
    commit(repository)
    both = ("compare", "rev:HEAD", "rev:before")
    run_rounds(1, *both, *FEW, folder=repository)
    done = webdyno(*both, "--same-bodies", "--output=strict", *FEW, folder=repository)
    assert done.returncode == 1
    assert "different bodies" in " ".join(done.stdout.split())


def shown_by_up(home: Path, *arguments: str, lines: int) -> list[str]:
    with started_webdyno("up", *arguments, folder=home) as process:
        assert process.stdout
        shown = [process.stdout.readline().rstrip() for _ in range(lines)]
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    return shown


def test_up_shows_what_a_system_answers_to_its_own_paths(home: Path) -> None:
    wanted = command(home, UNASKED)
    cookie = "--set=load.headers.Cookie=a=b"
    first, items, other = shown_by_up(home, wanted, "--path=/items", "--path=/x", cookie, lines=3)
    assert first.startswith(f"{wanted} is up at http://127.0.0.1:")
    assert items == "  /items: 200, 5 bytes"
    assert other == "  /x: 502, 5 bytes"


def test_up_speaks_what_the_load_is_to_speak(home: Path) -> None:
    wanted = CMD.replace("cmd:", "cmd:SAYS=${PROTOCOL} ")
    done = webdyno("up", wanted, "--set=load.protocol=https", folder=home)
    assert "speaks http on its port, and not https as load.protocol asks for" in done.stderr
