"""Services of the catalogue behind a user's own program: real ones, with fresh data each time."""

import sys
from pathlib import Path
from urllib.request import urlopen

import pytest

from e2e.commands import QUICK, run_rounds, webdyno
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
    draft = Draft.of(CommandLine({"variants": {"a": variant}}, {}), [])
    draft, catalogue = resolve(draft, Catalogue.load(), tmp_path, lambda _: None, lambda _: None)
    stack, site = catalogue.stack(draft.data["variants"]["a"]["stack"]), catalogue.site("own")
    for number in range(2):
        kept = tmp_path / f"kept-{number}"
        with (
            open_stack(stack, {}, site, folder=kept, testbed=Testbed()) as running,
            urlopen(f"{running.url}/words.txt") as response,  # noqa: S310 (our own server)
        ):
            assert response.read() == b"1\n"


def test_data_that_cannot_be_filled_is_reported_before_anything_is_measured(tmp_path: Path) -> None:
    command = f"cmd:{sys.executable} -m http.server $PORT"
    words = ("compare", command, command, "--service=db=redis", "--prepare=echo sorry; exit 3")
    failed = webdyno(*words, "--output=run", folder=tmp_path)
    assert failed.returncode == 3
    assert f"isn't started: prepare failed with exit code 3 (in {tmp_path} as " in failed.stderr
    assert "\n    sorry" in failed.stderr
    assert not (tmp_path / "run").exists()
