"""Command lines as people type them, who know other tools or nothing yet: read, or refused well."""

import os
import re
import shlex
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn

import pytest

from e2e.commands import webdyno_here
from webdyno.config import Catalogue, Override
from webdyno.core.errors import UserError
from webdyno.interfaces.cli.flags import LAST, run_folder
from webdyno.launch.arrangement import AskedSystems
from webdyno.questions.gate.experiment import AskedGate

URLS = "url:http://127.0.0.1:8080 url:http://127.0.0.1:8081"
LINES = {
    # systems as people write them
    "compare http://127.0.0.1:8080 http://127.0.0.1:8081": URLS,
    "compare http://127.0.0.1:8080/ http://127.0.0.1:8081/": URLS,
    "compare http://127.0.0.1:8080/items http://127.0.0.1:8081/items": "--path /items",
    "compare http://127.0.0.1:8080/a http://127.0.0.1:8081/b": "write it as --path",
    "compare 127.0.0.1:8080 127.0.0.1:8081": URLS,
    "compare localhost:8080 nginx": "url:http://localhost:8080 nginx",
    "compare new=http://127.0.0.1:8080 old=http://127.0.0.1:8081": "new=url:http://127.0.0.1:8080",
    "compare --url http://127.0.0.1:8080 --url http://127.0.0.1:8081": URLS,
    "compare ./server nginx": "cmd:./server nginx",
    "compare './server --port $PORT' nginx": "cmd:./server --port $PORT nginx",
    "compare 'python3 -m http.server $PORT' nginx": "cmd:python3 -m http.server $PORT nginx",
    "compare main HEAD": "rev:main rev:HEAD",
    "compare . main": "rev:. rev:main",
    "compare HEAD~1 HEAD": "rev:HEAD~1 rev:HEAD",
    "compare app.conf old.conf": "conf:app.conf conf:old.conf",
    "compare myapp:2.0 myapp:1.9": "image:myapp:2.0 image:myapp:1.9",
    "compare nginx,caddy": "nginx caddy",
    "compare nginx, caddy": "nginx caddy",
    "compare nginx vs caddy": "nginx caddy",
    "compare nginx versus apache-event": "nginx apache-event",
    "compare nginx": "compare takes two systems or more; for one: ",
    "compare": "compare takes two systems or more",
    "compare ngnix caddy": "did you mean nginx",
    "capacity http://127.0.0.1:8080": "url:http://127.0.0.1:8080",
    "capacity main": "rev:main",
    # what is requested
    "compare nginx caddy --header 'Accept: text/html'": "load.headers.Accept=text/html",
    "compare nginx caddy -H 'Accept: text/html'": "load.headers.Accept=text/html",
    "compare nginx caddy -H nonsense": "should look like 'Accept: text/html'",
    "compare nginx caddy --method POST --data x=1 --path /a": "'method': 'POST'",
    "compare nginx caddy -X POST -d x=1": "'body': 'x=1'",
    "capacity nginx --data x=1": "'method': 'POST'",
    "gate --base main --data x=1 --path /a": "'path': '/a'",
    "gate --base main --header 'Accept: text/html'": "load.headers.Accept=text/html",
    # habits of other tools
    "compare nginx caddy --duration 30s": "measure.budget_s=30",
    "compare nginx caddy -d 30s": "measure.budget_s=30",
    "compare nginx caddy -d 30": "write --time 30s or --data 30",
    "compare nginx caddy --concurrency 8": "load.connections=8",
    "compare nginx caddy --vus 8": "load.connections=8",
    "compare nginx caddy -c8": "load.connections=8",
    "compare nginx caddy -c 1k": "load.connections=1000",
    "compare nginx caddy -c abc": "-c takes a whole number, not 'abc'",
    "compare nginx caddy --rate 2k": "load.rate_per_s=2000",
    "compare nginx caddy --json": "report last --format json",
    "compare nginx caddy -n 1000": "measures until the answer is sure",
    "compare nginx caddy --conections 8": "did you mean --connections?",
    "compare nginx caddy --precision 1": "write 1%",
    "compare nginx caddy --time 1": "or 1m",
    "compare nginx caddy --xyzzy": "compare has no flag --xyzzy; ",
    "load 127.0.0.1:8080": " http://127.0.0.1:8080",
    "load http://127.0.0.1:8080 -n 1000 -c 10": "--connections=10 --count=1000",
    "load http://127.0.0.1:8080 -z 10s": "--time=10s",
    "load http://127.0.0.1:8080 -d 10s -t 2": "--time=10s --threads=2",
    "load http://127.0.0.1:8080 -X POST -H 'A: b' -d x=1": "--method=POST --header=A: b --data=x=1",
    "load http://127.0.0.1:8080 --rate 2k": "--rate=2000",
    "load http://127.0.0.1:8080 -q 1.5k": "--rate=1500",
    "load --url http://127.0.0.1:8080 --json": "--json http://127.0.0.1:8080",
    "load https://127.0.0.1:8443 -k": "--tls-verify=off",
    "load http://127.0.0.1:8080 -c abc": "-c takes a whole number, not 'abc'",
    # runs
    "explain": "there is no last run",
    "report": "there is no last run",
    "report last": "there is no last run",
    "resume": "there is no last run",
    "gate main": "did you mean --base main?",
    "ui /nonexistent": "/nonexistent: there is no such folder",
    # help
    "help": "webdyno COMMAND --help",
    "help compare": "Usage: webdyno compare",
    "version": "0.",
    "compar nginx caddy": "did you mean compare?",
}


class Read(Exception):  # noqa: N818 (it is no error)
    """What a command made of its words."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with two commits, a program and two configurations."""
    made = tmp_path_factory.mktemp("typed")
    (made / "server").write_text("#!/bin/sh\n")
    (made / "server").chmod(0o755)
    for name in ("app.conf", "old.conf"):
        (made / name).write_text("events {}\n")
    git = ["git", "-C", str(made), "-c", "user.name=a", "-c", "user.email=a@localhost"]
    subprocess.run([*git, "init", "-q", "-b", "main"], check=True)
    for word in ("first", "second"):
        subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", word], check=True)
    return made


def settings(overrides: Iterable[Override]) -> str:
    return " ".join(f"{'.'.join(map(str, each.key))}={each.value}" for each in overrides)


def arrange(systems: Sequence[str], asked: AskedSystems, known: Catalogue, *_: object) -> NoReturn:
    for system in systems:
        if ":" not in system:
            known.stack(system)
    paths = "".join(f" --path {path}" for path in asked.paths)
    raise Read(f"{' '.join(reversed(systems))}{paths} {settings(asked.overrides)}")


def ask_gate(asked: AskedGate, *_: object) -> NoReturn:
    raise Read(f"{asked.base} {settings(asked.overrides)}")


def run_engine(words: Sequence[str]) -> NoReturn:
    raise Read(" ".join(words))


@pytest.fixture(autouse=True)
def _nothing_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webdyno.launch.arrangement.arrange", arrange)
    monkeypatch.setattr("webdyno.launch.arrangement.race_of", lambda _: SimpleNamespace(data={}))
    monkeypatch.setattr("webdyno.questions.gate.experiment.asked_gate", ask_gate)
    monkeypatch.setattr("webdyno.interfaces.cli.load._run", run_engine)


@pytest.mark.parametrize("line", LINES)
def test_a_line_is_read_as_meant_or_refused_with_what_to_write(line: str, folder: Path) -> None:
    done = webdyno_here(*shlex.split(line), folder=folder)
    said = " ".join(f"{done.stdout} {done.stderr}".split())
    assert LINES[line] in said
    assert not re.search(r"did you mean --(question|burst|soak|ready|set)\?", said)


def test_last_is_the_run_that_began_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for seconds, name in enumerate(("later", "b", "a")):
        head = Path("runs", name, "run.json")
        head.parent.mkdir(parents=True)
        head.touch()
        os.utime(head, (1e9 - seconds, 1e9 - seconds))
    assert run_folder(LAST) == Path("runs/later")
    assert run_folder(Path("runs/a")) == Path("runs/a")
    Path("runs").rename("elsewhere")
    with pytest.raises(UserError, match="there is no last run"):
        run_folder(LAST)
