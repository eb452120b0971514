"""Examples behind a login, on PostgreSQL: `init`, a name and a password, and the question."""

import re
from collections import defaultdict
from pathlib import Path

import pytest

from e2e.commands import FEW, run_rounds, slots, statuses, webdyno
from e2e.test_examples import made
from webdyno.core.errors import Exit
from webdyno.core.metrics import responses
from webdyno.measure.folder import RunFolder

USERS = {"django": "reader", "sinatra": "reader", "express-jwt": "reader@example.org"}
LISTS = {"django": "/", "sinatra": "/", "express-jwt": "/api/books"}
"""Where books are listed, with the authors of fifty."""
BUILDS_WITHIN_S = 500
CREATES = {
    "django": """
[[requests]]
flow = "add"
path = "/books/new/"
capture.token.css = "input[name=csrfmiddlewaretoken]"

[[requests]]
flow = "add"
path = "/books/new/"
method = "POST"
form = { title = "New", author = "1", csrfmiddlewaretoken = "{{token}}" }
status = 302
""",
    "sinatra": """
[[requests]]
flow = "add"
path = "/books/new"
capture.token.css = "input[name=authenticity_token]"

[[requests]]
flow = "add"
path = "/books"
method = "POST"
form = { title = "New", author = "1", authenticity_token = "{{token}}" }
status = 303
""",
    "express-jwt": """
[[requests]]
path = "/api/books"
method = "POST"
json = { title = "New", author = 1 }
status = 201
""",
}
"""How one is added."""


@pytest.mark.measures
@pytest.mark.timeout(2 * BUILDS_WITHIN_S)
@pytest.mark.parametrize("name", USERS)
def test_a_list_behind_a_login_is_compared_and_gated(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGIN_NAME", USERS[name])
    monkeypatch.setenv("LOGIN_PASSWORD", "pages")
    app, path = made(name, tmp_path), LISTS[name]
    with (app / "webdyno.toml").open("a") as file:
        file.write(CREATES[name])
    run_rounds(1, "compare", "rev:slower", "rev:start", *FEW, folder=app)
    assert statuses(app) <= {"200", "201", "302", "303"}
    assert added(app)

    # What a request asks of the database is exact, so a run as short as can be reports it.
    asked = ("gate", "--base=start", "--head=slower", f"--path={path}", "--output=gate", *FEW)
    limit = "--fail-if=statements > +10%"
    done = webdyno(*asked, limit, folder=app, within_s=BUILDS_WITHIN_S)
    assert done.returncode == Exit.WORSE, done.stdout + done.stderr
    said = " ".join(done.stdout.split())
    assert re.search(rf"FAIL: {re.escape(path)} needs .* database statements per request", said), (
        said
    )
    assert re.search(r"author.* WHERE .*id.* = \$1.* 50\.0×", said), said


def added(app: Path) -> bool:
    """Whether each variant's slots wrote rows, one for each form that was sent."""
    rows: dict[str, int] = defaultdict(int)
    for slot in slots(RunFolder.open(app / "run")):
        assert slot.readings
        assert responses(slot)
        rows[slot.variant] += slot.readings.databases["db"].rows_written or 0
    return all(rows.values()) and len(rows) == 2
