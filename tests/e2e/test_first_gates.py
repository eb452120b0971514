"""From `init` to the gate's comment by framework, as docs/how-to/first-gate.md shows."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from e2e.commands import FEW, webdyno, webdyno_here
from e2e.stand_ins import PHP, POSTGRESQL, import_stand_ins, why_no_stand_ins
from e2e.test_examples import EXAMPLES, made
from report.approved import assert_same_text
from variants import further
from webdyno.core.errors import Exit

DOCS = EXAMPLES.parent / "docs"
PAGE = (DOCS / "how-to/first-gate.md").read_text(encoding="utf-8")
ROW = re.compile(r"^- [\w ]+ \(`(?P<name>[\w-]+)`\): (?P<found>.+)$", re.MULTILINE)
FOUND = {row["name"]: re.findall(r"`([^`]+)`", row["found"]) for row in ROW.finditer(PAGE)}
"""By example: what the page says that `init` finds."""
SHOWN = "fastapi-login"
"""Whose output the page has."""
READ = ("init", "--no-try", "--yes")
BY_READING = re.compile(r"^by .*?(?=\n\S*webdyno\.toml written)", re.MULTILINE | re.DOTALL)
MAKES_A_LOCK_FILE = {"nestjs", "express-jwt", "go-postgresql"}
"""When it is made, with its language's own tool."""
LISTS = {
    "fastapi-login": "/tickets",
    "django": "/",
    "express-jwt": "/api/books",
    "nestjs": "/api/items",
    "spring": "/api/items",
    "go-postgresql": "/api/items",
    "rails": "/items",
    "laravel": "/api/items",
    "compose": "/",
}
"""What asks for the other table's row of each entry by itself in `slower`."""
FOUND_BY_ASKING = {"go-postgresql"}
"""Whose prefix stands in another place than its routes."""
TOOLS = {"rails": "bundle", "laravel": "composer", "spring": "mvn", "go-postgresql": "go"}
IMAGES = (PHP, POSTGRESQL)
"""What the Compose file begins with."""
BY_STATEMENTS, BY_CPU = "statements > +10%", "cpu > +10%"
"""The second where no service of the catalog is behind it."""
USERS = {
    "fastapi-login": "ann@example.org",
    "django": "reader",
    "express-jwt": "reader@example.org",
}
WITHIN_S = 500


@pytest.mark.parametrize(
    "name", [further(name) if name in MAKES_A_LOCK_FILE else name for name in FOUND]
)
def test_init_finds_what_the_page_says(name: str, tmp_path: Path) -> None:
    app = tmp_path / "app"
    subprocess.run(["sh", EXAMPLES / f"{name}.sh", app], check=True, capture_output=True)
    done = webdyno_here(*READ, folder=app)
    assert done.returncode == Exit.OK, done.stderr
    written = (app / "webdyno.toml").read_text()
    assert [it for it in FOUND[name] if it not in written] == []
    assert name in FOUND_BY_ASKING or f'path = "{LISTS.get(name, "/")}"' in written
    if name == SHOWN:
        shown = BY_READING.search(done.stderr + done.stdout)
        assert shown, done.stderr
        recorded = f"webdyno {' '.join(READ)}\n{shown[0]}\n"
        assert_same_text(DOCS / f"outputs/init-{name}.txt", recorded)


@pytest.mark.measures
@pytest.mark.long
@pytest.mark.timeout(2 * WITHIN_S)
@pytest.mark.parametrize("name", LISTS)
def test_an_application_comes_from_its_repository_to_a_comment(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    if why := _why_not(name):
        pytest.skip(why)
    if name == "compose":
        have_images(request, monkeypatch)
    if name in USERS:
        monkeypatch.setenv("LOGIN_NAME", USERS[name])
        monkeypatch.setenv("LOGIN_PASSWORD", "pages")
    app = made(name, tmp_path)
    passed = webdyno("gate", "--base=start", "--head=documentation", folder=app)
    assert passed.returncode == Exit.OK, passed.stderr
    assert "only documentation changed (README.md)" in passed.stdout
    asked = ("gate", "--base=start", "--head=slower", f"--path={LISTS[name]}", "--output=gate")
    limit = BY_CPU if name == "compose" else BY_STATEMENTS
    failed = webdyno(*asked, f"--fail-if={limit}", *FEW, folder=app, within_s=WITHIN_S)
    assert failed.returncode == Exit.WORSE, failed.stdout + failed.stderr
    comment = (app / "gate/gate.md").read_text(encoding="utf-8")
    worse = "(?:more|the) CPU" if name == "compose" else "database statements"
    headline = rf"^### \S+ webdyno: {re.escape(LISTS[name])} needs .*{worse}"
    assert re.search(headline, comment, re.MULTILINE), comment


def _why_not(name: str) -> str | None:
    """Say what of an application can't be had here, for the report of the tests."""
    tool = TOOLS.get(name)
    if tool and shutil.which(tool) is None:
        return f"{tool} isn't installed here, and its registry may not be reached"
    return None


@pytest.fixture(scope="module")
def stand_ins(daemon: str) -> str:
    """The address of a daemon that has images by these names, or why there is none."""
    if why := why_no_stand_ins():
        return why
    if daemon.startswith("unix:"):
        import_stand_ins(daemon)
    return daemon


def have_images(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip a test where neither Docker has its images nor stand-ins can be made."""
    if _has_images():
        return
    address = request.getfixturevalue("stand_ins")
    if not address.startswith("unix:"):
        pytest.skip(f"Docker has no {' or '.join(IMAGES)}, and no stand-ins: {address}")
    monkeypatch.setenv("DOCKER_HOST", address)
    monkeypatch.setenv("WEBDYNO_CONTAINERS", "docker")


def _has_images() -> bool:
    if (docker := shutil.which("docker")) is None:
        return False
    asked = subprocess.run([docker, "image", "inspect", *IMAGES], check=False, capture_output=True)
    return asked.returncode == 0
