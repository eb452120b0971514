"""`webdyno init` writes a file that runs at once: what it found is started and asked."""

import json
import os
import sys
import tomllib
from pathlib import Path

import pytest

from e2e.commands import FEW, QUICK, left_behind, run_rounds, statuses, webdyno, webdyno_here
from e2e.own import SERVER, make_repository
from variants import further
from webdyno.core.errors import Exit
from webdyno.measure.folder import RunFolder


def repository(folder: Path, files: dict[str, str]) -> None:
    """Make a repository of one commit, which leaves out what runs write."""
    make_repository(folder, {".gitignore": "scratch*\n.cache\nci\nrun\n", **files})


@pytest.mark.measures
def test_a_folder_of_pages_gets_an_answer_from_its_gate(tmp_path: Path) -> None:
    repository(tmp_path, {"public/index.html": "<h1>Hello</h1>\n", "public/style.css": ""})
    assert webdyno("init", folder=tmp_path).returncode == Exit.OK
    (tmp_path / "public/style.css").write_text("h1 { color: red }\n")
    asked = ("gate", "--base=HEAD", "--fail-if=cpu > +5%")
    done = webdyno(*asked, "--output=run", *QUICK, folder=tmp_path)
    reported = done.stdout + done.stderr
    assert done.returncode in {Exit.OK, Exit.INCONCLUSIVE}, reported
    assert "listen queue" not in reported
    (claim,) = json.loads((tmp_path / "run/gate.json").read_text())["claims"]
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
    reported = run_rounds(1, "compare", "rev:.", "rev:HEAD", *QUICK, folder=open_folder)
    assert "rev:HEAD, as nginx runs it here:" in reported
    assert "excluded: user nginx" in reported
    assert statuses(open_folder) == {"200"}
    run = RunFolder.open(open_folder / "run")
    assert run.head.versions["working tree"]["web"].endswith(" with changes")


GROUPED = """
import http.server, os

# router.get("/items"), router.get("/up"); app.use("/api", router)
class Shop(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/api/items" or self.path == "/up" else 404)
        self.send_header("Content-Length", "0")
        self.end_headers()

http.server.HTTPServer(("127.0.0.1", int(os.environ["PORT"])), Shop).serve_forever()
"""


def test_routes_of_a_group_are_asked_for_below_its_prefix(tmp_path: Path) -> None:
    repository(tmp_path, {"server.py": GROUPED})
    made = webdyno("init", f"--start={sys.executable} server.py", folder=tmp_path)
    assert made.returncode == Exit.OK, made.stderr
    written = tomllib.loads((tmp_path / "webdyno.toml").read_text())
    assert {it["path"] for it in written["requests"]} == {"/api/items", "/up"}


SERVES = f"exec {sys.executable} server.py"
TOOLS = {
    "pnpm": (
        {
            "package.json": '{"packageManager": "pnpm@10", "scripts": {"build": "turbo build", '
            '"start": "pnpm --filter web start"}, "devDependencies": {"turbo": "2"}}',
            "pnpm-workspace.yaml": "packages:\n  - apps/*\n",
            "apps/web/package.json": '{"name": "web", "scripts": {"start": "next start"}}',
        },
        {
            "pnpm": 'case "$*" in "install --prefer-frozen-lockfile") touch installed;;'
            ' "run build") mv installed built;;'
            f' "--filter web start") test -f built; {SERVES} $PORT;; *) exit 9;; esac'
        },
    ),
    "cargo": (
        {
            "Cargo.toml": '[package]\nname = "shop"\n',
            "Cargo.lock": "",
            "src/main.rs": 'TcpListener::bind(("127.0.0.1", env::var("PORT")))\n',
        },
        {
            "cargo": 'test "$*" = "build --release --locked --bin shop"; mkdir -p target/release; '
            f"printf '#!/bin/sh\\n{SERVES} $PORT\\n' >target/release/shop; "
            "chmod +x target/release/shop"
        },
    ),
    "maven": (
        {
            "mvnw": "#!/bin/sh\nmkdir -p target; cp server.py target/shop-1.0.jar\n",
            "pom.xml": "<groupId>org.springframework.boot</groupId>"
            "<artifactId>shop</artifactId><version>1.0</version>",
        },
        {"java": f'test "$1" = -jar; exec {sys.executable} "$2" "${{4#--server.port=}}"'},
    ),
}
"""What a folder holds, and stand-ins for the tools that aren't on every machine."""


@pytest.mark.parametrize("name", [*map(further, ("cargo", "pnpm", "maven"))])
def test_what_init_writes_for_a_tool_builds_and_starts(
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files, programs = TOOLS[name]
    stand_ins = tmp_path_factory.mktemp("bin")
    for program, script in programs.items():
        (stand_ins / program).write_text(f"#!/bin/sh\nset -e\n{script}\n")
        (stand_ins / program).chmod(0o755)
    monkeypatch.setenv("PATH", f"{stand_ins}:{os.environ['PATH']}")
    (tmp_path / "mvnw").touch(mode=0o755)
    repository(tmp_path, {**files, "server.py": SERVER})
    made = webdyno("init", folder=tmp_path)
    assert made.returncode == Exit.OK, made.stderr
    run_rounds(1, "compare", "rev:.", "rev:.", *FEW, folder=tmp_path)
    assert statuses(tmp_path) == {"200"}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's servers run as somebody else")
def test_revisions_that_a_server_may_not_read_are_reported(
    open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = '[app]\nconf = "nginx.conf"\nroot = "none"\n'
    repository(open_folder, {"nginx.conf": NGINX, "webdyno.toml": app})
    closed = open_folder / ".cache"
    closed.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_CACHE_HOME", str(closed))
    done = webdyno_here("compare", "rev:HEAD", "rev:HEAD", folder=open_folder)
    assert done.returncode == Exit.USER_ERROR
    assert f"as whom its server runs, may not enter {closed}" in done.stderr
    assert "none: there is no such folder" in done.stderr
