"""`webdyno init` writes a file that runs at once: what it found is started and asked."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from e2e.commands import QUICK, left_behind, run_blocks, statuses, webdyno, webdyno_here
from webdyno.cli.exits import Exit
from webdyno.run.folder import RunFolder


def git(folder: Path, *words: str) -> None:
    named = ("-c", "user.name=n", "-c", "user.email=n@example.org")
    subprocess.run(["git", "-C", folder, *named, *words], check=True, capture_output=True)


def repository(folder: Path, files: dict[str, str]) -> None:
    """Make a repository of one commit."""
    git(folder, "init", "--quiet", "--initial-branch=main", ".")
    ignored = {".gitignore": "scratch*\n.cache\nci\nrun\n"}
    for name, text in {**ignored, **files}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message=start")


@pytest.mark.measures
def test_a_folder_of_pages_gets_an_answer_from_its_gate(tmp_path: Path) -> None:
    repository(tmp_path, {"public/index.html": "<h1>Hello</h1>\n", "public/style.css": ""})
    assert webdyno("init", folder=tmp_path).returncode == Exit.OK
    (tmp_path / "public/style.css").write_text("h1 { color: red }\n")
    asked = ("gate", "--base=HEAD", "--worse-than=rate=off", "--worse-than=p99=off", "--write=ci")
    done = webdyno(*asked, "--out=run", *QUICK, folder=tmp_path)
    told = done.stdout + done.stderr
    assert done.returncode in {Exit.OK, Exit.UNDECIDED}, told
    assert "listen queue" not in told
    (claim,) = json.loads((tmp_path / "ci/gate.json").read_text())["claims"]
    assert claim["worse"]
    assert left_behind(tmp_path) == []


NGINX = """
user nginx;
events {}
http { server { listen 80; root /var/www; } }
"""


def test_revisions_of_a_configuration_are_moved_and_measured(open_folder: Path) -> None:
    repository(open_folder, {"public/index.html": "hello", "nginx.conf": NGINX})
    made = webdyno("init", folder=open_folder)
    assert made.returncode == Exit.OK, made.stderr
    (open_folder / "nginx.conf").write_text(NGINX.replace("listen", "gzip on; listen"))
    told = run_blocks(1, "duel", "rev:.", "rev:HEAD", *QUICK, folder=open_folder)
    assert "rev:HEAD, as nginx runs it here:" in told
    assert "left out: user nginx" in told
    assert statuses(open_folder) == {"200"}
    run = RunFolder.open(open_folder / "run")
    assert run.head.versions["rev:."]["web"].endswith(" with changes")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's servers run as somebody else")
def test_revisions_that_a_server_may_not_read_are_told(
    open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = '[app]\nconf = "nginx.conf"\nroot = "none"\n'
    repository(open_folder, {"nginx.conf": NGINX, "webdyno.toml": app})
    closed = open_folder / ".cache"
    closed.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_CACHE_HOME", str(closed))
    done = webdyno_here("duel", "rev:HEAD", "rev:HEAD", folder=open_folder)
    assert done.returncode == Exit.MISTAKE
    assert f"as whom its server runs, may not enter {closed}" in done.stderr
    assert "none: there is no such folder" in done.stderr
