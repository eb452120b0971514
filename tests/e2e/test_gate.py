"""A gate from a user's repository to its exit code: real revisions, real servers, real load."""

import json
import re
import signal
from pathlib import Path

import pytest

from e2e.commands import (
    QUICK,
    left_behind,
    run_rounds,
    started_webdyno,
    wait_for,
    webdyno,
    webdyno_here,
)
from e2e.own import commit, git
from webdyno.core.errors import Exit
from webdyno.core.records import SlotRecord
from webdyno.history import read_history
from webdyno.measure.folder import RunFolder

SERVER = '''
"""Two pages; /slow needs as much CPU time as COST says."""
import os
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

COST = {"/slow": 0.0, "/": 0.0}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        end = time.thread_time() + COST.get(self.path.rstrip("?"), 0.0)
        while time.thread_time() < end:
            pass
        self.send_response(200 if self.path.rstrip("?") in COST else 404)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.do_GET()

    def log_message(self, *words):
        pass


ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
'''
PROJECT = """
[app]
start = "python3 server.py"

[[requests]]
path = "/"

[[requests]]
path = "/slow"

[load]
connections = 4
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Three revisions: as it is, documentation only, one endpoint much slower."""
    git(tmp_path, "init", "--initial-branch=main", ".")
    (tmp_path / ".gitignore").write_text("scratch*\n.cache\nci\nrun\n")
    (tmp_path / "server.py").write_text(SERVER)
    (tmp_path / "webdyno.toml").write_text(PROJECT)
    _commit(tmp_path, "start")
    (tmp_path / "README.md").write_text("Two pages.\n")
    _commit(tmp_path, "documentation")
    (tmp_path / "server.py").write_text(SERVER.replace('"/slow": 0.0', '"/slow": 0.003'))
    _commit(tmp_path, "slower")
    return tmp_path


def _commit(folder: Path, tag: str) -> None:
    commit(folder)
    git(folder, "tag", tag)


@pytest.mark.measures
def test_the_endpoint_that_became_slower_is_named(repository: Path) -> None:
    # Its other endpoint would take as long again; several are distinguished in
    # questions/gate/test_decide.py.
    asked = ("gate", "--base=start", "--head=slower", "--path=/slow", "--output=run")
    history = "--history=ci/gates.jsonl"
    done = webdyno(*asked, *QUICK, history, "--fail-if=cpu > +20%", folder=repository)
    assert done.returncode == Exit.WORSE, done.stdout + done.stderr
    reported = " ".join(done.stdout.split())
    assert re.search(r"FAIL: /slow needs .* CPU per request", reported), reported
    answer = json.loads((repository / "run/gate.json").read_text())
    worse = {it["endpoint"] for it in answer["claims"] if it["answer"] == "worse"}
    assert worse == {"/slow"}
    (kept,) = read_history(repository / "ci/gates.jsonl")
    assert (kept.reference[:7], kept.head[:8]) == ("start (", "slower (")
    assert kept.ratios[0].ratio.low > 1.2
    assert left_behind(repository) == []


def test_a_gate_at_a_rate_says_what_a_request_costs(tmp_path: Path) -> None:
    asked = ("gate", "--base=nginx", "--head=nginx", "--site=static", "--rate=300", "--output=run")
    done = webdyno(*asked, *QUICK, folder=tmp_path)
    # A busy machine answers too few of them, or leaves it inconclusive.
    assert done.returncode in {Exit.OK, Exit.INVALID, Exit.WORSE, Exit.INCONCLUSIVE}, done.stderr
    answer = json.loads((tmp_path / "run/gate.json").read_text())
    assert answer["rate_rps"] == 300
    assert [claim["metric"] for claim in answer["claims"]] == ["server_cpu_us"]
    reported, junit = " ".join(done.stdout.split()), (tmp_path / "run/junit.xml").read_text()
    for medium in (reported, junit):
        assert "at 300 requests/s" in medium
        if answer["answer"] != "invalid":
            assert "cores per 1,000 requests/s" in medium
    assert left_behind(tmp_path) == []


def test_documentation_is_not_measured(repository: Path) -> None:
    done = webdyno_here("gate", "--base=start", "--head=documentation", folder=repository)
    assert done.returncode == Exit.OK, done.stderr
    assert "PASS: only documentation changed (README.md): nothing to measure" in done.stdout
    assert not (repository / "runs").exists()


@pytest.mark.long
def test_each_request_of_the_project_is_asked_by_itself(repository: Path) -> None:
    (repository / "webdyno.toml").write_text(
        '[app]\nstart = "python3 server.py"\n[load]\nconnections = 4\n'
        '[[requests]]\npath = "/"\nmethod = "POST"\njson = { a = 1 }\n'
        '[[requests]]\nname = "twice"\npath = "/slow"\nheaders.X-A = "b"\nstatus = 200\n'
        '[[requests]]\nname = "twice"\npath = "/slow?"\nweight = 3\n'
    )
    asked = ("gate", "--base=start", "--head=slower", *QUICK)
    run_rounds(2, *asked, folder=repository)
    run = RunFolder.open(repository / "run")
    assert run.head.experiment.factors == {"endpoint": ["POST /", "twice"]}
    slots = [it for it in run.records() if isinstance(it, SlotRecord)]
    assert {it.point for it in slots} == {0, 1}
    assert {code for it in slots for code in it.load.by_status} == {"200"}
    (repository / "webdyno.toml").write_text(
        '[app]\nstart = "true"\n[[requests]]\npath = "/"\nmetod = "POST"\n'
    )
    done = webdyno_here(*asked, folder=repository)
    assert done.returncode == Exit.USER_ERROR
    assert "webdyno.toml:5: unknown key" in done.stderr


def test_what_is_not_committed_is_reported_where_nothing_is_measured(repository: Path) -> None:
    (repository / "server.py").write_text("changed")
    done = webdyno_here("gate", "--base=slower", "--head=HEAD", folder=repository)
    assert "nothing changed" in done.stdout
    assert "--head HEAD excludes the changes of the working tree" in done.stderr


def test_an_endpoint_that_is_missing_is_reported_before_any_other_is_measured(
    repository: Path,
) -> None:
    asked = ("gate", "--base=start", "--head=slower", "--path=/slow", "--path=/nowhere", "--yes")
    with started_webdyno(*asked, "--output=run", "--time=60s", folder=repository) as process:
        wait_for(repository / "run/slots.jsonl", lines=5)  # a session, an end, and two pilots
        process.send_signal(signal.SIGINT)
        reported, _ = process.communicate(timeout=60)
    assert process.returncode == Exit.INTERRUPTED, reported
    missing = reported.index("/nowhere: variant baseline answered 404 to /nowhere")
    assert missing < reported.index("pilot: ")


@pytest.mark.long
def test_a_server_that_answers_errors_gives_no_answer(repository: Path) -> None:
    asked = ("gate", "--base=start", "--head=slower", "--path=/nowhere", "--output=run", *QUICK)
    done = webdyno(*asked, folder=repository)
    assert done.returncode == Exit.INVALID, done.stdout + done.stderr
    assert "INVALID: /nowhere: " in done.stdout
    assert "404" in done.stdout
    assert left_behind(repository) == []
