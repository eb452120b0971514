"""Containers as services behind a user's own program: `services.cache = "image:NAME"`."""

import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
from pathlib import Path
from urllib.request import urlopen

import pytest

from e2e.commands import (
    PATIENCE_S,
    QUICK,
    left_behind,
    run_rounds,
    scratch,
    started_webdyno,
    webdyno,
)
from e2e.engines import (
    DOCKERFILE,
    address_of,
    docker,
    kept_by_docker,
    left_by_docker,
    slots_without_root,
    static_server,
    why_no_podman,
)
from e2e.own import make_repository
from ordinary_user import SYSTEM_PYTHON, needs_ordinary_user
from webdyno.core.records import SlotRecord
from webdyno.measure.folder import RunFolder

IMAGE = "webdyno-test/memcached:1"
ASK = """
import os, socket

def ask(words):
    host, port = os.environ["MEMCACHED_URL"].removeprefix("memcached://").split(":")
    assert (host, port) == (os.environ["CACHE_HOST"], os.environ["CACHE_PORT"])
    with socket.create_connection((host, int(port))) as it:
        it.sendall(words.encode() + b"\\r\\n")
        return it.recv(100)
"""
FILL = 'from cache import ask\nassert ask("add word 0 0 5\\r\\nhello") == b"STORED\\r\\n"\n'
SERVER = """
import http.server, os
from cache import ask

class Words(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        body = ask("get word").split(b"\\r\\n")[1]
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_): pass

http.server.ThreadingHTTPServer.request_queue_size = 128
http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Words).serve_forever()
"""
PASSES_ON = SERVER.replace(
    'ask("get word").split(b"\\r\\n")[1]',
    "urlopen(f\"http://{os.environ['DB_HOST']}:{os.environ['DB_PORT']}\").read()",
).replace("from cache import ask", "from urllib.request import urlopen")
APP = f"""
[app]
start = "{sys.executable} server.py"
prepare = "{sys.executable} fill.py"
services.cache = "image:{IMAGE}"
"""


@pytest.fixture(scope="module")
def memcached(daemon: str) -> str:
    """Make an image of this machine's memcached with its libraries; give the daemon's address."""
    address = address_of(daemon)
    program = shutil.which("memcached")
    if program is None:
        pytest.skip("there is no memcached here (scripts/test_packages.py installs it)")
    said = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", dereference=True) as tar:
        for path in ("/etc/passwd", program, *re.findall(r"(/\S+) \(", said)):
            tar.add(path, arcname=path)
    starts = f"CMD {json.dumps([program, '-u', 'root'])}"
    docker(address, "import", "--change", starts, "-", IMAGE, given=made.getvalue())
    return address


@pytest.fixture
def home(tmp_path: Path, memcached: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository of a program that asks a container, with a change in the working tree."""
    monkeypatch.setenv("DOCKER_HOST", memcached)
    monkeypatch.setenv("WEBDYNO_CONTAINERS", "docker")
    files = {"cache.py": ASK, "fill.py": FILL, "server.py": SERVER, "webdyno.toml": APP}
    make_repository(tmp_path, files)
    (tmp_path / "server.py").write_text(SERVER + "# changed\n")
    return tmp_path


def test_a_program_finds_a_container_by_the_usual_variables(home: Path) -> None:
    with started_webdyno("up", "rev:.", folder=home) as process:
        assert process.stdout
        url = next(line.split()[-1] for line in process.stdout if "http://" in line)
        with urlopen(url) as response:  # noqa: S310 (our own server)
            assert response.read() == b"hello"
        assert len(kept_by_docker(os.environ["DOCKER_HOST"])) == 2  # with its network
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE_S)
    assert left_by_docker(os.environ["DOCKER_HOST"]) == []
    assert left_behind(home) == []


@pytest.mark.long
def test_each_start_of_two_revisions_has_a_container_of_its_own(home: Path) -> None:
    """What `prepare` adds isn't there before, or it would fail."""
    run_rounds(1, "compare", "rev:.", "rev:main", *QUICK, "--set=load.connections=4", folder=home)
    run = RunFolder.open(home / "run")
    slots = [it for it in run.records() if isinstance(it, SlotRecord)]
    assert slots
    assert all(it.load.requests.completed + it.load.requests.drained for it in slots)
    assert all(it.readings and set(it.readings.services) == {"web", "cache"} for it in slots)
    assert all(it.servers.cpu_s > 0 for it in slots)
    assert run.head.versions["main"]["cache"].startswith("web sha256:")
    assert left_by_docker(os.environ["DOCKER_HOST"]) == []


@pytest.mark.long
@needs_ordinary_user
def test_who_is_in_dockers_group_needs_no_root(home: Path) -> None:
    """The container's CPU time counts, though its control group is the daemon's."""
    mine = scratch(home) / "mine"
    mine.mkdir()
    for name, text in {"cache.py": ASK, "fill.py": FILL, "server.py": SERVER}.items():
        (mine / name).write_text(text)
    words = [*[f"cmd:{SYSTEM_PYTHON} server.py"] * 2, f"--service=cache=image:{IMAGE}"]
    words += [f"--prepare={SYSTEM_PYTHON} fill.py", "--set=load.connections=4", *QUICK]
    slots = slots_without_root(home, mine, *words)
    used = dict.fromkeys(("web", "cache"), 0.0)
    for slot in slots:
        assert slot.readings
        for role, use in slot.readings.services.items():
            used[role] += use.cpu_user_s + use.cpu_sys_s
    assert all(seconds > 0 for seconds in used.values())
    whole = sum(slot.servers.cpu_s for slot in slots)
    assert whole == pytest.approx(sum(used.values()), rel=0.5)
    assert left_by_docker(os.environ["DOCKER_HOST"]) == []


@pytest.mark.long
@pytest.mark.parametrize("engine", ["docker", "podman"])
def test_a_revision_builds_the_container_behind_it(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """It is asked where its image says that it listens, and leads out of no revision."""
    if engine == "docker":
        monkeypatch.setenv("DOCKER_HOST", address_of(request.getfixturevalue("daemon")))
    elif why := why_no_podman():
        pytest.skip(why)
    monkeypatch.setenv("WEBDYNO_CONTAINERS", engine)
    (tmp_path / "behind").mkdir()
    shutil.copy2(
        static_server(request.getfixturevalue("tmp_path_factory").mktemp("program")),
        tmp_path / "behind/server",
    )
    app = f'[app]\nstart = "{sys.executable} server.py"\nservices.db = "image:./behind"\n'
    files = {
        "webdyno.toml": app,
        "server.py": PASSES_ON,
        "behind/Dockerfile": DOCKERFILE.format(port=81, more=""),
    }
    make_repository(tmp_path, files)
    with started_webdyno("up", "rev:.", folder=tmp_path) as process:
        assert process.stdout
        url = next(line.split()[-1] for line in process.stdout if "http://" in line)
        with urlopen(url) as response:  # noqa: S310 (our own server)
            assert response.read() == b"hello"
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE_S)
    assert left_behind(tmp_path) == []
    (tmp_path / "webdyno.toml").write_text(app.replace("./behind", "../elsewhere"))
    refused = webdyno("up", "rev:.", folder=tmp_path)
    assert "../elsewhere leads out of the revision" in refused.stderr
