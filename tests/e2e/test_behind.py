"""Services of the catalogue behind a user's own program: real ones, with fresh data each time."""

import os
import sys
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import psutil
import pytest

from e2e.commands import (
    PATIENCE_S,
    QUICK,
    left_behind,
    left_now,
    run_rounds,
    scratch,
    started_webdyno,
    webdyno,
)
from e2e.own import make_repository
from webdyno.config import Catalogue, CommandLine, Draft
from webdyno.core.records import SlotRecord
from webdyno.host.this_machine import Testbed
from webdyno.measure.folder import RunFolder
from webdyno.servers.starting import open_stack
from webdyno.systems.variants import resolve

REDIS = """
import os, socket

def ask(*words):
    with socket.create_connection((os.environ["STORE_HOST"], int(os.environ["STORE_PORT"]))) as it:
        it.sendall(f"AUTH {os.environ['STORE_PASSWORD']}\\r\\n".encode())
        it.recv(100)
        it.sendall((" ".join(words) + "\\r\\n").encode())
        return it.recv(100).decode().strip()
"""
FILL = "from store import ask\nfor name in 'abc':\n    ask('SET', name, '1')\n"
SERVER = """
import http.server, os
from store import ask

class Counter(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        ask("SET", f"{self.client_address[1]}", "1")
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"hello")

    def log_message(self, *_): pass

print("begins with", ask("DBSIZE"), flush=True)
http.server.ThreadingHTTPServer.request_queue_size = 128
http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Counter).serve_forever()
"""
APP = f"""
[app]
start = "{sys.executable} server.py"
prepare = "{sys.executable} fill.py"
services.store = "redis"
"""
ASK = """
ask() {
    mariadb --no-defaults -h "$DB_HOST" -P "$DB_PORT" -u "$DB_USER" -p"$DB_PASSWORD" "$DB_NAME" "$@"
}
"""
FILL_DATABASE = 'ask -e "CREATE TABLE words (word TEXT); INSERT INTO words VALUES (1)"'
SERVE_DATABASE = """
mkdir -p public
ask -N -e "SELECT word FROM words" >public/words.txt
cd public && exec python3 -m http.server --bind 127.0.0.1 "$PORT"
"""
NATS = """
import json, os, socket

def ask(subject, body=""):
    host, port = os.environ["NATS_URL"].removeprefix("nats://").split(":")
    with socket.create_connection((host, int(port))) as it, it.makefile("rb") as said:
        it.sendall(b'CONNECT {"verbose": false}\\r\\nSUB mine 1\\r\\n')
        it.sendall(f"PUB {subject} mine {len(body)}\\r\\n{body}\\r\\n".encode())
        while not said.readline().startswith(b"MSG"):
            pass
        return json.loads(said.readline())
"""
FILL_STREAM = """
from bus import ask
assert ask("$JS.API.STREAM.CREATE.words", '{"name": "words", "subjects": ["word"]}')["config"]
assert ask("word", "hello")["seq"] == 1
"""
SERVE_STREAM = """
mkdir -p public
python3 -c 'from bus import ask; print(ask("$JS.API.STREAM.INFO.words")["state"]["messages"])' \\
    >public/words.txt
cd public && exec python3 -m http.server --bind 127.0.0.1 "$PORT"
"""
SERVE_GREETING = """
import http.server, os, socket

with socket.create_connection((os.environ["QUEUE_HOST"], int(os.environ["QUEUE_PORT"]))) as it:
    it.sendall(b"AMQP\\0\\0\\x09\\1")
    assert b"PLAIN" in it.recv(4096)
assert os.environ["AMQP_URL"].startswith("amqp://site:" + os.environ["QUEUE_PASSWORD"])
handler, port = http.server.SimpleHTTPRequestHandler, int(os.environ["PORT"])
http.server.test(handler, port=port, bind="127.0.0.1")
"""
MONGOD = """#!/usr/bin/python3
import argparse, http.server, os

known = argparse.ArgumentParser()
for name in ("dbpath", "bind_ip", "port", "wiredTigerCacheSizeGB", "setParameter"):
    known.add_argument(f"--{name}", required=True)
for name in ("nounixsocket", "quiet"):
    known.add_argument(f"--{name}", action="store_true")
given = known.parse_args()
os.chdir(given.dbpath)
open("words.txt", "a").write("hello")
http.server.test(http.server.SimpleHTTPRequestHandler, port=int(given.port), bind=given.bind_ip)
"""


@pytest.mark.long
def test_two_revisions_begin_with_the_same_data_in_every_round(tmp_path: Path) -> None:
    files = {"store.py": REDIS, "fill.py": FILL, "server.py": SERVER, "webdyno.toml": APP}
    make_repository(tmp_path, files)
    (tmp_path / "server.py").write_text(SERVER + "# changed\n")
    run_rounds(
        2, "compare", "rev:.", "rev:main", *QUICK, "--set=load.connections=4", folder=tmp_path
    )
    run = tmp_path / "run"
    logs = list(run.glob("rounds/*/*/web.log"))
    assert len(logs) >= 4
    assert {it.read_text() for it in logs} == {"begins with :3\n"}
    slots = [it for it in RunFolder.open(run).records() if isinstance(it, SlotRecord)]
    # The first responses may take longer than so short a slot.
    assert all(it.load.requests.completed + it.load.requests.drained for it in slots)
    assert all(it.readings and set(it.readings.services) == {"web", "store"} for it in slots)
    versions = RunFolder.open(run).head.versions
    assert versions["working tree"]["store"] == versions["main"]["store"]


def test_a_command_has_a_database_that_is_filled_for_it_at_each_start(tmp_path: Path) -> None:
    (tmp_path / "fill.sh").write_text(ASK + FILL_DATABASE)
    (tmp_path / "serve.sh").write_text(ASK + SERVE_DATABASE)
    services = {"db": "mariadb"}
    variant = {"stack": "cmd:sh serve.sh", "services": services, "prepare": "sh fill.sh"}
    assert texts_of_two_starts(variant, tmp_path) == [b"1\n", b"1\n"]


def texts_of_two_starts(variant: dict[str, Any], folder: Path) -> list[bytes]:
    """Start a variant twice; give what it says each time of what is behind it."""
    draft = Draft.of(CommandLine({"variants": {"a": variant}}, {}), [])
    draft, catalogue = resolve(draft, Catalogue.load(), folder, lambda _: None, lambda _: None)
    stack, site = catalogue.stack(draft.data["variants"]["a"]["stack"]), catalogue.site("own")
    texts = []
    for number in range(2):
        kept = folder / f"kept-{number}"
        with (
            open_stack(stack, {}, site, folder=kept, testbed=Testbed()) as running,
            urlopen(f"{running.url}/words.txt") as response,  # noqa: S310 (our own server)
        ):
            texts.append(response.read())
    return texts


def test_data_that_cannot_be_filled_is_reported_before_anything_is_measured(tmp_path: Path) -> None:
    command = f"cmd:{sys.executable} -m http.server $PORT"
    words = ("compare", command, command, "--service=db=redis", "--prepare=echo sorry; exit 3")
    failed = webdyno(*words, "--output=run", folder=tmp_path)
    assert failed.returncode == 3
    assert f"isn't started: prepare failed with exit code 3 (in {tmp_path} as " in failed.stderr
    assert "\n    sorry" in failed.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.long
def test_a_stream_of_nats_is_made_once_and_copied_for_each_start(tmp_path: Path) -> None:
    (tmp_path / "bus.py").write_text(NATS)
    (tmp_path / "fill.py").write_text(FILL_STREAM)
    (tmp_path / "serve.sh").write_text(SERVE_STREAM)
    variant = {"stack": "cmd:sh serve.sh", "services": {"bus": "nats"}, "setup": "python3 fill.py"}
    assert texts_of_two_starts(variant, tmp_path) == [b"1\n", b"1\n"]


def test_mongodb_is_the_mongod_that_is_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stand-in, which is strict about its arguments: no registry has the real one."""
    mongod = scratch(tmp_path) / "mongod"  # where the servers' user may enter
    mongod.write_text(MONGOD)
    mongod.chmod(0o755)
    monkeypatch.setenv("PATH", f"{mongod.parent}:{os.environ['PATH']}")
    serve = (
        'mkdir -p public; url=${MONGODB_URI#mongodb:}; [ "$url" = "//$DB_HOST:$DB_PORT/site" ]\n'
    )
    serve += "curl -s http:${url%/site}/words.txt >public/words.txt; cd public\n"
    (tmp_path / "serve.sh").write_text(f'{serve}exec python3 -m http.server -b 127.0.0.1 "$PORT"')
    variant = {"stack": "cmd:sh serve.sh", "services": {"db": "mongodb"}}
    assert texts_of_two_starts(variant, tmp_path) == [b"hello", b"hello"]


@pytest.mark.long
def test_nothing_of_rabbitmq_is_left_where_webdyno_is_killed(tmp_path: Path) -> None:
    """Erlang's nodes start a daemon, epmd, that outlives them: this one does without."""
    (tmp_path / "server.py").write_text(SERVE_GREETING)
    daemons = processes_called("epmd")
    words = ("up", f"cmd:{sys.executable} server.py", "--service=queue=rabbitmq")
    with started_webdyno(*words, folder=tmp_path) as process:
        assert process.stdout
        assert any("http://" in line for line in process.stdout)
        assert any("beam.smp" in line for line in left_now(tmp_path))
        process.kill()
        process.wait(PATIENCE_S)
    assert left_behind(tmp_path) == []
    assert processes_called("epmd") == daemons


def processes_called(name: str) -> set[int]:
    return {it.pid for it in psutil.process_iter(["name"]) if it.info["name"] == name}
