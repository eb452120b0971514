"""A user's own systems as arms: real commands, revisions and running servers."""

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
    environment,
    left_behind,
    run_blocks,
    slots,
    started_webdyno,
    statuses,
    wait_for,
    webdyno,
    webdyno_here,
)
from webdyno.model.records import CertificateRecord
from webdyno.run.folder import RunFolder
from webdyno.stack import certificates
from webdyno.stack.ports import free_port

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


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with a small server."""
    (tmp_path / "server.py").write_text(SERVER)
    return tmp_path


@pytest.fixture
def repository(home: Path) -> Path:
    """A repository with one commit, whose server is built."""
    (home / "webdyno.toml").write_text(
        '[app]\nbuild = "echo built >>../builds; cp server.py built.py"\n'
        f'start = "{sys.executable} built.py $PORT"\n'
    )
    (home / ".gitignore").write_text("built.py\n")
    git(home, "init", "-q", "-b", "main")
    commit(home)
    return home


def git(folder: Path, *words: str) -> str:
    name = ("-c", "user.name=a", "-c", "user.email=a@b")
    done = subprocess.run(
        ["git", "-C", folder, *name, *words], check=True, capture_output=True, text=True
    )
    return done.stdout


def commit(folder: Path) -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "x")


def test_two_commands_are_measured_like_stacks_killed_and_go_on_as_they_were(home: Path) -> None:
    (home / "inner").mkdir()
    (home / "two.toml").write_text(
        'title = "t"\nquestion = "q?"\n[load]\nconnections = 4\n'
        f"[arms.plain]\nstack = {json.dumps(CMD)}\n"
        f"[arms.inner]\nstack = {json.dumps(CMD.replace('server.py', '../server.py'))}\n"
        'dir = "inner"\nready = "/ready"\nready_within = "30s"\nenvironment.SAYS = "hello"\n'
    )
    with started_webdyno("run", "two.toml", *QUICK, "--out=run", folder=home) as process:
        wait_for(home / "run/slots.jsonl", 6)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert left_behind(home) == []
    found = slots(RunFolder.open(home / "run"))
    assert {it.arm for it in found} == {"plain", "inner"}
    assert all(it.load.requests.completed for it in found)
    assert all(it.servers.cpu_s > 0 for it in found)
    shutil.move(home / "two.toml", home / "gone.toml")
    resumed = webdyno("resume", "run", "--report", folder=home)
    assert "6 blocks" in resumed.stdout, resumed.stderr
    kept = re.search(r"--catalog \S+", (home / "run/report.html").read_text())
    assert kept
    assert left_behind(home) == []


@pytest.mark.parametrize(
    ("stack", "says"),
    [
        ("cmd:sleep 100", r"has not answered .* in time \(run in .* as \w+\)"),
        ("cmd:echo oops; exit 3", r"ended by itself with exit code 3 \(run in .*\n +oops"),
        (f"cmd:{sys.executable} server.py 18123", r"listens on 127\.0\.0\.1:18123 and not on"),
        (f"cmd:STATUS=500 {sys.executable} server.py $PORT", "answers http.* with status 500"),
        ("cmd:nothing-like-that", "exit code 127.*\n.*nothing-like-that"),
        (f"{CMD} &", "went into the background"),
    ],
)
def test_a_command_that_does_not_work_is_told_before_anything_is_measured(
    home: Path, stack: str, says: str
) -> None:
    done = webdyno("duel", stack, CMD, "--ready-within=5s", "--out=run", folder=home)
    check_refusal(home, done, says)
    assert left_behind(home) == []


@pytest.mark.parametrize(
    ("stack", "says"),
    [
        ("cmd:", "nothing stands behind cmd:"),
        ("url:http://127.0.0.1:1", "doesn't answer http://127.0.0.1:1/: start it first"),
        ("url:ftp://127.0.0.1:1", "begins with http:// or https://"),
        ("url:https://127.0.0.1:1", "can't be asked over http but over https, h2"),
        ("url:http://example.org", "example.org is not this machine"),
        ("url:http://127.0.0.1:1/x", "ends with its port"),
        ("rev:main", "is in no Git repository"),
        ("conf:server.py", "looks like no known server's"),
        ("conf:nothing.conf", "nothing.conf can't be read: no such file"),
    ],
)
def test_what_names_no_system_is_told_before_anything_starts(
    home: Path, stack: str, says: str
) -> None:
    check_refusal(home, webdyno_here("duel", stack, CMD, "--out=run", folder=home), says)


def check_refusal(home: Path, done: subprocess.CompletedProcess[str], says: str) -> None:
    assert done.returncode in {2, 3}, done.stdout
    assert re.search(says, done.stderr), done.stderr
    assert "Traceback" not in done.stderr
    assert not (home / "run").exists()


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
    done = webdyno("duel", "cmd:id", "cmd:id -u; exit 3", folder=open_folder)
    assert f"as {user.pw_name}); what it said last:\n    {user.pw_uid}" in done.stderr


def test_two_answers_that_differ_are_refused(home: Path) -> None:
    other = CMD.replace("cmd:", "cmd:SAYS=something-else ")
    done = webdyno("duel", other, CMD, *FEW, folder=home)
    assert done.returncode == 1
    told = " ".join(done.stdout.split())
    assert "different bodies: 100 and 280 bytes" in told
    assert "- hellohello" in told
    assert "+ something-else" in told
    assert "or say by --ignore what may differ" in told
    same = (other, CMD, "--ignore=(hello|something-else)+", *FEW)
    run_blocks(1, "duel", *same, folder=home)
    assert slots(RunFolder.open(home / "run"))
    wrong = webdyno("duel", other, CMD, "--ignore=$.a[", folder=home)
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


def test_what_runs_already_is_watched_and_left_alone(
    home: Path, running: tuple[subprocess.Popen[bytes], int]
) -> None:
    process, port = running
    time.sleep(0.5)
    url = f"url:http://127.0.0.1:{port}"
    run_blocks(1, "duel", url, CMD, *FEW, folder=home)
    assert process.poll() is None
    watched = [it for it in slots(RunFolder.open(home / "run")) if it.arm == url]
    assert watched
    assert all(it.servers.cpu_s > 0 and it.servers.means == "procfs" for it in watched)
    services = [it.readings.services["web"] for it in watched if it.readings]
    assert all(it.processes == 1 and (it.pss_bytes or 0) > 1_000_000 for it in services)
    records = RunFolder.open(home / "run").records()
    certificate = next(it for it in records if isinstance(it, CertificateRecord))
    assert certificate.ran_before == [url]
    told = webdyno("report", "run", folder=home).stdout
    assert "this is an observation" in " ".join(told.split())
    assert "a fresh start of every arm but url:" in " ".join(told.split())


def test_the_file_of_a_project_says_how_it_is_measured(repository: Path) -> None:
    with (repository / "webdyno.toml").open("a") as file:
        file.write('[load]\npaths = ["/a", "/b"]\nconnections = 3\n')
    inside = repository / "inside"
    inside.mkdir()
    run_blocks(1, "duel", "rev:.", "rev:main", *QUICK, folder=inside)
    load = RunFolder.open(inside / "run").head.experiment.load
    assert (load.paths, load.connections) == (["/a", "/b"], 3)
    (repository / "webdyno.toml").write_text('[app]\nstart = "x"\n[load]\nconections = 3\n')
    done = webdyno_here("duel", "rev:main", "rev:main", folder=inside)
    assert re.search(r"webdyno\.toml:4: unknown key load\.conections", done.stderr), done.stderr


def test_revisions_are_built_once_and_the_working_tree_is_one(repository: Path) -> None:
    (repository / "server.py").write_text(SERVER + "# changed\n")
    (repository / "new.txt").write_text("not in the index")
    inside = repository / "inside"
    inside.mkdir()
    before = git(repository, "status", "--porcelain")
    told = run_blocks(1, "duel", "rev:.", "rev:main", *FEW, folder=inside)
    assert told.count("building rev:") == 2
    assert (inside / "run/slots.jsonl").is_file()
    assert git(repository, "status", "--porcelain").replace("?? inside/\n", "") == before
    kept = json.loads((inside / "run/run.json").read_text())["versions"]
    head = git(repository, "rev-parse", "--short=10", "HEAD").strip()
    assert kept["rev:main"] == {"web": head}
    assert kept["rev:."]["web"].endswith(" with changes")
    shutil.rmtree(inside / "run")
    again = run_blocks(1, "duel", "rev:.", "rev:HEAD", *FEW, folder=inside)
    assert "building" not in again
    assert "rev:HEAD leaves out the changes of the working tree" in again
    shutil.rmtree(inside / "run")
    twice = run_blocks(1, "duel", "rev:HEAD", "rev:HEAD", *FEW, folder=inside)
    assert twice.count("rev:HEAD leaves out the changes") == 1


@pytest.mark.parametrize(
    ("app", "stack", "says"),
    [
        ("", "rev:mian", "has no revision 'mian'; did you mean main"),
        ("", "rev:HEAD~3", "has no revision 'HEAD~3'"),
        ('[app]\nstart = "true"\nbuild = "echo sorry; exit 4"', "rev:.", "exit code 4.*\n.*\n +so"),
        (
            "[app]",
            "rev:.",
            r"webdyno\.toml:1: \[app\] says how it starts by one of start, image and",
        ),
        ('[app]\nstart = "true"\nroot = "."', "rev:.", "root is for a configuration, conf"),
        ('[app]\nimage = "."\nknobs.a = {}', "rev:.", "knobs are for start and conf"),
        ('[app]\nstrat = "true"', "rev:.", r"webdyno\.toml:2: unknown key strat; did"),
        ('[app]\nstart = "true"\ndir = "none"', "rev:main", "has no folder none"),
        ('[app]\nstart = "true"\ndir = ".."', "rev:main", r"webdyno\.toml:3: dir is a folder in"),
        ("[load]\nconnections = 1", "rev:main", r"there is no \[app\]"),
        (None, "rev:main", "no webdyno.toml from .*`webdyno init` there"),
    ],
)
def test_a_revision_that_cannot_be_had_is_told(
    repository: Path, app: str | None, stack: str, says: str
) -> None:
    file = repository / "webdyno.toml"
    if app is None:
        file.unlink()
    elif app:
        file.write_text(app)
    done = webdyno_here("duel", stack, CMD, "--out=run", folder=repository)
    check_refusal(repository, done, says)


def test_a_secret_in_the_environment_stays_out_of_the_folder(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "s3cr3t-0f-mine"  # noqa: S105 (nobody's)
    tell = 'import os\nprint("with", os.environ["SAYS"], flush=True)\n'
    (repository / "server.py").write_text(tell + SERVER)
    app = f"""[app]
build = 'test "$SAYS" = {secret} && echo "with $SAYS"'
start = "{sys.executable} server.py $PORT"
environment.SAYS = "${{env:MINE}}"
"""
    (repository / "webdyno.toml").write_text(app)
    words = ("duel", "rev:.", CMD, "--env=SAYS=${env:MINE}", *FEW)
    lacking = webdyno("duel", "rev:.", "rev:.", "--out=run", folder=repository)
    check_refusal(repository, lacking, "the environment has no MINE; export MINE=… first")
    assert "building" not in lacking.stderr
    monkeypatch.setenv("MINE", secret)
    run_blocks(1, *words, folder=repository)
    files = [it for it in (repository / "run").rglob("*") if it.is_file()]
    assert not [it for it in files if secret in it.read_text(errors="replace")]
    logs = [it.read_text() for it in files if it.name == "web.log"]
    assert logs
    assert set(logs) == {"with …hidden…\n"}
    builds = Path(environment(repository)["XDG_CACHE_HOME"]) / "webdyno/revisions"
    assert [it.read_text() for it in builds.glob("*/build.log")] == ["with …hidden…\n"]


def test_submodules_come_from_their_clones_and_what_is_ignored_from_the_build(
    repository: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    library = tmp_path_factory.mktemp("library")
    git(library, "init", "-q", "-b", "main")
    (library / "hello.py").write_text("BODY = b'hello' * 20\n")
    commit(library)
    git(
        repository,
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "add",
        "-q",
        str(library),
        "lib",
    )
    (repository / ".gitignore").write_text(".env\n")
    (repository / ".env").write_text("SAYS=hello\n")
    app = f'[app]\nstart = "test -f .env && {sys.executable} server.py $PORT"\n'
    build = "test -f .env && grep -q hello lib/hello.py"
    (repository / "webdyno.toml").write_text(f"{app}build = '{build}'\n")
    commit(repository)
    lacking = webdyno("duel", "rev:main", CMD, folder=repository)
    assert lacking.returncode == 3
    assert "revisions lack what Git ignores" in lacking.stderr
    assert 'cp "$REPOSITORY/.env" .' in lacking.stderr
    (repository / "webdyno.toml").write_text(
        f"""{app}build = 'cp "$REPOSITORY/.env" . && {build}'"""
    )
    commit(repository)
    run_blocks(1, "duel", "rev:main", CMD, *FEW, folder=repository)
    git(repository, "update-index", "--cacheinfo", f"160000,{'1' * 40},lib")
    git(repository, "commit", "-q", "-m", "a commit that nobody has")
    done = webdyno("duel", "rev:HEAD", CMD, folder=repository)
    assert done.returncode == 3
    assert "submodule lib has no commit 1111111111 here" in done.stderr
    git(repository, "submodule", "deinit", "-q", "--force", "lib")
    without = webdyno("duel", "rev:HEAD~1", CMD, folder=repository)
    assert "rev:HEAD~1 is built without its submodule lib" in without.stderr


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


def test_a_command_may_listen_on_a_unix_socket(home: Path) -> None:
    (home / "unix.py").write_text(UNIX)
    by_socket = f"cmd:{sys.executable} unix.py $SOCKET"
    run_blocks(1, "duel", by_socket, CMD, *FEW, folder=home)
    assert statuses(home) == {"200"}
    elsewhere = CMD.replace("$PORT", "18124 $SOCKET")
    done = webdyno("duel", elsewhere, CMD, "--ready-within=1s", folder=home)
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


def test_commands_and_revisions_are_asked_over_tls(repository: Path) -> None:
    (repository / "tls.py").write_text(TLS)
    start = f"{sys.executable} tls.py $PORT $CERT $KEY"
    (repository / "webdyno.toml").write_text(f'[app]\nstart = "{start}"\n')
    commit(repository)
    secure = (*FEW, "--set=load.protocol=https")
    run_blocks(1, "duel", f"cmd:{start}", "rev:main", *secure, folder=repository)
    assert statuses(repository) == {"200"}
    done = webdyno("duel", CMD, f"cmd:{start}", "--ready-within=1s", *secure, folder=repository)
    assert done.returncode == 3
    assert "speaks http on its port, and not https as load.protocol asks for" in done.stderr
    done = webdyno(
        "duel", CMD, CMD, "--ready-within=1s", "--set=load.protocol=h2c", folder=repository
    )
    assert re.search("speaks http on its port, and not h2c", done.stderr)


def test_what_runs_already_is_asked_over_tls(home: Path, open_folder: Path) -> None:
    made = certificates.certificate("127.0.0.1", "ec")
    file = open_folder / "mine.pem"
    file.write_text(made.certificate + made.key)
    port = free_port(socket.socket, [])
    words = [sys.executable, "-c", TLS, str(port), str(file), str(file)]
    with subprocess.Popen(words) as process:
        try:
            time.sleep(0.5)
            url = f"url:https://127.0.0.1:{port}"
            run_blocks(1, "duel", url, url, *FEW, "--set=load.protocol=https", folder=home)
        finally:
            process.kill()
    assert statuses(home) == {"200"}


def test_a_system_of_ones_own_can_be_looked_at(home: Path) -> None:
    with started_webdyno("up", CMD, folder=home) as process:
        assert process.stdout
        line = process.stdout.readline()
        with urllib.request.urlopen(line.split()[-1]) as answer:  # noqa: S310 (it is ours)
            assert answer.read() == b"hello" * 20
        process.send_signal(signal.SIGINT)
        process.wait()
    assert left_behind(home) == []
