"""The local page: who is let in, and what it shows."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from report import runs
from webdyno.definitions import Catalogue
from webdyno.model.mistake import Mistake
from webdyno.run.folder import RunFolder
from webdyno.serve import Starter, make_app
from webdyno.serve.live import snapshot
from webdyno.serve.runs import Runs, state_of

TOKEN, PORT = "right", 8080
HERE = f"http://127.0.0.1:{PORT}"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two runs of one experiment, one whose names are markup, and a folder that is no run."""
    for name in ("before", "after"):
        runs.decided().stored(tmp_path / name)
    runs.hostile_markup().stored(tmp_path / "study/odd")
    runs.hostile_words().stored(tmp_path / "study/turned")
    (tmp_path / "empty").mkdir()
    return tmp_path


@pytest.fixture
def stranger(root: Path) -> Iterator[TestClient]:
    """A client that has not been let in."""
    app = make_app(Runs(root), Catalogue.load(), Starter(root), TOKEN, PORT)
    with TestClient(app, base_url=HERE) as client:
        yield client


@pytest.fixture
def client(stranger: TestClient) -> TestClient:
    """A client that has opened the address that was printed."""
    assert stranger.get(f"/?token={TOKEN}").status_code == 200
    return stranger


def test_nobody_comes_in_without_the_token(stranger: TestClient) -> None:
    for path in ("/", "/new", "/report/before", "/static/page.js", "/?token=wrong"):
        answer = stranger.get(path)
        assert answer.status_code == 403, path
        assert "before" not in answer.text


def test_the_token_leaves_the_address_for_a_cookie(stranger: TestClient) -> None:
    answer = stranger.get(f"/compare?token={TOKEN}&run=a", follow_redirects=False)
    assert answer.status_code == 303
    assert answer.headers["location"] == "/compare?run=a"
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie


def test_another_host_s_name_is_refused(client: TestClient) -> None:
    assert client.get("/", headers={"host": "evil.example"}).status_code == 400
    assert client.get("/", headers={"host": "127.0.0.1:1"}).status_code == 400


@pytest.mark.parametrize("origin", [None, "http://evil.example", "http://127.0.0.1:1", "null"])
def test_only_our_own_pages_may_change_something(client: TestClient, origin: str | None) -> None:
    headers = {"origin": origin} if origin else {}
    assert client.post("/stop", headers=headers).status_code == 403
    assert client.post("/begin", headers=headers, data={"stack": "nginx"}).status_code == 403


def test_all_runs_are_listed_and_names_are_no_markup(client: TestClient) -> None:
    page = client.get("/")
    assert page.text.count('type="checkbox"') == 4
    for name in ("before", "after", "study/odd", "study/turned"):
        assert f'value="{name}"' in page.text
    assert "<script>alert" not in page.text
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "unsafe-inline" not in page.headers["content-security-policy"]
    turned = client.get("/verdict/study/turned").text + client.get("/report/study/turned").text
    assert "\u202e" not in turned


def test_a_run_s_verdict_report_and_files_are_given(client: TestClient, root: Path) -> None:
    told = client.get("/verdict/before").json()
    assert told["verdicts"] == [{"sign": "▲", "word": "faster"}]
    assert "nginx" in told["headline"]
    report = client.get("/report/before")
    assert "<!DOCTYPE html>" in report.text
    assert "unsafe-inline" in report.headers["content-security-policy"]
    drawn_ns = (root / "before/report.html").stat().st_mtime_ns
    client.get("/report/before")
    assert (root / "before/report.html").stat().st_mtime_ns == drawn_ns
    assert client.get("/export/csv/before").text.startswith("experiment,")
    assert client.get("/export/json/before").json()["points"]
    assert "faster" in client.get("/export/md/before").text.lower()
    assert client.get("/export/exe/before").status_code == 400


def test_two_runs_are_compared(client: TestClient) -> None:
    page = client.get("/compare?run=before&run=after")
    assert page.status_code == 200
    assert "requests per second" in page.text.lower()
    assert client.get("/compare?run=before").status_code == 400


@pytest.mark.parametrize(
    "name", ["%2e%2e", "%2e%2e%2f%2e%2e", "empty", "nothing", "%2e%2e/%2e%2e/etc"]
)
def test_nothing_outside_and_no_folder_without_a_run_is_shown(
    client: TestClient, name: str
) -> None:
    for kind in ("report", "verdict", "live", "export/csv"):
        assert client.get(f"/{kind}/{name}").status_code in {400, 404}


@pytest.mark.parametrize(
    ("stack", "path", "said"),
    [
        ("cmd:rm -rf /", "", "the catalogue has no such stack"),
        ("--out=/etc", "", "the catalogue has no such stack"),
        ("nginx", "x", "should begin with /"),
    ],
)
def test_what_no_page_may_begin_is_refused(
    client: TestClient, stack: str, path: str, said: str
) -> None:
    asked = {"stack": stack, "baseline": "nginx", "path": path}
    answer = client.post("/begin", headers={"origin": HERE}, data=asked)
    assert answer.status_code == 400
    assert said in answer.text


def test_a_run_that_goes_on_is_shown_live_and_without_a_verdict(
    client: TestClient, root: Path
) -> None:
    with RunFolder.open(runs.undecided().stored(root / "going")) as folder:
        folder.hold()
        assert state_of(folder.path) == "running"
        page = client.get("/live/going")
        assert 'data-events="/events/going"' in page.text
        assert "going on" in client.get("/").text
        (point,) = snapshot(folder)["points"]
        assert point["expected"] >= point["blocks"]
        assert point["interval"]["low"] < point["interval"]["high"]
        assert "verdict" not in str(point)
    assert state_of(folder.path) == "ended"
    with client.stream("GET", "/events/going") as events:
        told = "".join(events.iter_text())
    assert told.startswith("data: {")
    assert '"running": false' in told
    assert client.get("/live/going", follow_redirects=False).headers["location"] == "/report/going"


def test_one_run_at_a_time(tmp_path: Path) -> None:
    starter = Starter(tmp_path / "new")
    begun = starter.begin(["load", "--help"])
    if starter.is_busy:
        with pytest.raises(Mistake, match="a run goes on already"):
            starter.begin(["load", "--help"])
    begun.process.wait()
    assert not starter.is_busy
    assert begun.said
    starter.end()
