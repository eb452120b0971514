"""A user's own systems as variants: real commands and running servers."""

import json
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.commands import (
    FEW,
    QUICK,
    left_behind,
    run_rounds,
    slots,
    started_webdyno,
    statuses,
    wait_for,
    webdyno,
    webdyno_here,
)
from e2e.own import CMD, SERVER, check_refusal, commit
from webdyno.core.records import PreflightRecord
from webdyno.measure.folder import RunFolder
from webdyno.servers import service_graph
from webdyno.servers.service_graph import free_port


def test_a_second_port_that_is_fixed_is_named_as_the_cause(home: Path) -> None:
    """Both variants run at the same time, so only the first of them gets it."""
    port = free_port()
    more = f'import socket; s = socket.create_server(("127.0.0.1", {port}))\n'
    fails = f"print('listen on 127.0.0.1:{port}: address already in use', flush=True); raise"
    (home / "server.py").write_text(f"try:\n    {more}except OSError:\n    {fails}\n{SERVER}")
    done = webdyno("compare", CMD, CMD, *FEW, "--output=run", folder=home)
    assert done.returncode == 3
    assert f"it wants port {port} as well as $PORT" in done.stderr
    assert "started again with another port" not in done.stderr
    assert left_behind(home) == []


def test_another_listener_of_it_is_named(home: Path) -> None:
    port = free_port()
    more = f'import socket; s = socket.create_server(("127.0.0.1", {port}))\n'
    (home / "server.py").write_text(f"{more}{SERVER}")
    with started_webdyno("up", CMD, folder=home) as process:
        assert process.stdout
        reported = [process.stdout.readline() for _ in range(2)]
        process.send_signal(signal.SIGINT)
        process.communicate()
    assert f"it listens on 127.0.0.1:{port} as well, which isn't measured" in "".join(reported)


@pytest.mark.long
def test_two_commands_are_measured_like_stacks_killed_and_go_on_as_they_were(home: Path) -> None:
    (home / "inner").mkdir()
    (home / "two.toml").write_text(
        'title = "t"\nquestion = "q?"\n[load]\nconnections = 4\n'
        f"[variants.plain]\nstack = {json.dumps(CMD)}\n"
        f"[variants.inner]\nstack = {json.dumps(CMD.replace('server.py', '../server.py'))}\n"
        'dir = "inner"\nready = "/ready"\nready_within = "30s"\nenvironment.SAYS = "hello"\n'
    )
    with started_webdyno("run", "two.toml", *QUICK, "--output=run", folder=home) as process:
        wait_for(home / "run/slots.jsonl", 6)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert left_behind(home) == []
    found = slots(RunFolder.open(home / "run"))
    assert {it.variant for it in found} == {"plain", "inner"}
    assert all(it.load.requests.completed for it in found)
    assert all(it.servers.cpu_s > 0 for it in found)
    shutil.move(home / "two.toml", home / "gone.toml")
    resumed = webdyno("resume", "run", "--report", folder=home)
    assert re.search(r"\d restarts each", resumed.stdout), resumed.stderr
    kept = re.search(r"--catalog \S+", (home / "run/report.html").read_text())
    assert kept
    assert left_behind(home) == []


@pytest.mark.parametrize(
    ("stack", "says"),
    [
        (
            "cmd:sleep 100",
            (
                r"has not answered .* within 5 s; where it takes longer, give --ready-within 15s "
                r"\(run in .* as \w+\)"
            ),
        ),
        ("cmd:echo oops; exit 3", r"ended by itself with exit code 3 \(run in .*\n +oops"),
        (f"cmd:{sys.executable} server.py 18123", r"listens on 127\.0\.0\.1:18123 and not on"),
        (f"cmd:STATUS=500 {sys.executable} server.py $PORT", "answers http.* with status 500"),
        ("cmd:nothing-like-that", "exit code 127.*\n.*nothing-like-that"),
        (f"{CMD} &", "went into the background"),
    ],
)
def test_a_command_that_does_not_work_is_reported_before_anything_is_measured(
    home: Path, stack: str, says: str
) -> None:
    done = webdyno("compare", stack, CMD, "--ready-within=5s", "--output=run", folder=home)
    check_refusal(home, done, says)
    assert left_behind(home) == []


@pytest.mark.parametrize(
    ("stack", "says"),
    [
        ("cmd:", r"nothing stands behind cmd:, such as cmd:'./server --port \$PORT'"),
        ("url:http://127.0.0.1:1", "doesn't answer http://127.0.0.1:1/: start it first"),
        ("url:ftp://127.0.0.1:1", "begins with http:// or https://"),
        ("url:https://127.0.0.1:1", "can't be asked over http but over https, h2"),
        ("url:http://198.51.100.1", "add --target-is-mine, which --yes doesn't stand for"),
        ("url:http://0.0.0.0:8000", "nobody's address; give 127.0.0.1 for this machine"),
        ("url:http://no-such-name.test", "isn't known on this machine; give an address"),
        ("url:http://127.0.0.1:1/x", "ends with its port"),
        ("rev:main", "is in no Git repository"),
        ("conf:server.py", "looks like no known server's"),
        ("conf:nothing.conf", "nothing.conf can't be read: No such file"),
    ],
)
def test_what_names_no_system_is_reported_before_anything_starts(
    home: Path, stack: str, says: str
) -> None:
    check_refusal(home, webdyno_here("compare", stack, CMD, "--output=run", folder=home), says)


@pytest.mark.skipif(os.geteuid() != 0, reason="root alone can become somebody else")
@pytest.mark.parametrize("by_sudo", [False, True])
def test_a_command_runs_as_who_called_or_owns_the_folder(
    open_folder: Path, monkeypatch: pytest.MonkeyPatch, by_sudo: bool
) -> None:
    user = pwd.getpwnam("games" if by_sudo else "nobody")
    if by_sudo:
        monkeypatch.setenv("SUDO_UID", str(user.pw_uid))
    else:
        os.chown(open_folder, user.pw_uid, user.pw_gid)
    done = webdyno("compare", "cmd:id", "cmd:id -u; exit 3", folder=open_folder)
    assert f"as {user.pw_name}); what it said last:\n    {user.pw_uid}" in done.stderr


def test_two_answers_that_differ_are_refused(home: Path) -> None:
    other = CMD.replace("cmd:", "cmd:SAYS=something-else ")
    done = webdyno("compare", other, CMD, *FEW, folder=home)
    assert done.returncode == 1
    reported = " ".join(done.stdout.split())
    assert "different bodies: 100 and 280 bytes" in reported
    assert "- hellohello" in reported
    assert "+ something-else" in reported
    assert "or say by --ignore what may differ" in reported
    same = (other, CMD, "--ignore=(hello|something-else)+", *FEW)
    run_rounds(1, "compare", *same, folder=home)
    assert slots(RunFolder.open(home / "run"))
    wrong = webdyno("compare", other, CMD, "--ignore=$.a[", folder=home)
    assert wrong.returncode == 2
    assert "--ignore $.a[: '$.a[' is no path in JSON" in wrong.stderr


@pytest.fixture
def running() -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A server that somebody started."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # Nothing of it names the test's folder, so that it isn't taken for one that was left behind.
    with subprocess.Popen([sys.executable, "-c", SERVER, str(port)], cwd="/") as process:
        yield process, port
        process.kill()


@pytest.mark.long
def test_what_runs_already_is_watched_and_left_alone(
    home: Path, running: tuple[subprocess.Popen[bytes], int]
) -> None:
    process, port = running
    time.sleep(0.5)
    url = f"url:http://127.0.0.1:{port}"
    run_rounds(1, "compare", url, CMD, *FEW, folder=home)
    assert process.poll() is None
    watched = [
        it for it in slots(RunFolder.open(home / "run")) if it.variant == f"127.0.0.1:{port}"
    ]
    assert watched
    assert all(it.servers.cpu_s > 0 and it.servers.means == "procfs" for it in watched)
    services = [it.readings.services["web"] for it in watched if it.readings]
    assert all(it.processes == 1 and (it.pss_bytes or 0) > 1_000_000 for it in services)
    records = RunFolder.open(home / "run").records()
    preflight = next(it for it in records if isinstance(it, PreflightRecord))
    assert preflight.ran_before == [f"127.0.0.1:{port}"]
    reported = webdyno("report", "run", "--verbose", folder=home).stdout
    assert "this is an observation" in " ".join(reported.split())
    assert "a fresh start of every variant but 127.0.0.1:" in " ".join(reported.split())


UNIX = """
import http.server, os, socket, socketserver, sys

class Hello(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def address_string(self): return "unix"

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "100")
        self.end_headers()
        self.wfile.write(b"hello" * 20)

    def log_message(self, *_): pass

class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    request_queue_size = 128

Server(sys.argv[1], Hello).serve_forever()
"""


@pytest.mark.long
def test_a_command_may_listen_on_a_unix_socket(home: Path) -> None:
    (home / "unix.py").write_text(UNIX)
    by_socket = f"cmd:{sys.executable} unix.py $SOCKET"
    run_rounds(1, "compare", by_socket, CMD, *FEW, folder=home)
    assert statuses(home) == {"200"}
    elsewhere = CMD.replace("$PORT", "18124 $SOCKET")
    done = webdyno("compare", elsewhere, CMD, "--ready-within=1s", folder=home)
    assert "listens on 127.0.0.1:18124 and not on /" in done.stderr


TLS = SERVER.replace(
    "http.server.ThreadingHTTPServer.request_queue_size = 128\n",
    """
import ssl
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[2], sys.argv[3])

class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128

    def finish_request(self, connection, client):
        connection.settimeout(5)
        with context.wrap_socket(connection, server_side=True) as secured:
            self.RequestHandlerClass(secured, client, self)

http.server.ThreadingHTTPServer = Server
""",
)


@pytest.mark.long
def test_commands_and_revisions_are_asked_over_tls(repository: Path) -> None:
    (repository / "tls.py").write_text(TLS)
    start = f"{sys.executable} tls.py $PORT $CERT $KEY"
    (repository / "webdyno.toml").write_text(f'[app]\nstart = "{start}"\n')
    commit(repository)
    secure = (*FEW, "--set=load.protocol=https")
    run_rounds(1, "compare", f"cmd:{start}", "rev:main", *secure, folder=repository)
    assert statuses(repository) == {"200"}
    done = webdyno("compare", CMD, f"cmd:{start}", "--ready-within=1s", *secure, folder=repository)
    assert done.returncode == 3
    assert "speaks http on its port, and not https as load.protocol asks for" in done.stderr
    done = webdyno(
        "compare", CMD, CMD, "--ready-within=1s", "--set=load.protocol=h2c", folder=repository
    )
    assert re.search("speaks http on its port, and not h2c", done.stderr)


def test_what_runs_already_is_asked_over_tls(home: Path, open_folder: Path) -> None:
    made = service_graph.certificate("127.0.0.1", "ec")
    file = open_folder / "mine.pem"
    file.write_text(made.certificate + made.key)
    port = free_port(socket.socket, [])
    words = [sys.executable, "-c", TLS, str(port), str(file), str(file)]
    with subprocess.Popen(words) as process:
        try:
            time.sleep(0.5)
            url = f"url:https://127.0.0.1:{port}"
            run_rounds(1, "compare", url, url, *FEW, "--set=load.protocol=https", folder=home)
        finally:
            process.kill()
    assert statuses(home) == {"200"}


def test_a_system_of_ones_own_can_be_looked_at(home: Path) -> None:
    with started_webdyno("up", CMD, folder=home) as process:
        assert process.stdout
        line = process.stdout.readline()
        with urllib.request.urlopen(line.split()[-1]) as response:  # noqa: S310 (it is ours)
            assert response.read() == b"hello" * 20
        process.send_signal(signal.SIGINT)
        process.wait()
    assert left_behind(home) == []
