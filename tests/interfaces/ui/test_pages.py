"""The local page: who is let in, and what it shows."""

import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import quote, unquote

import pytest
from httpx2 import Response
from starlette.testclient import TestClient

from report import comparisons, sweeps
from webdyno.config import Catalogue
from webdyno.core.errors import UserError
from webdyno.core.run import FORMAT
from webdyno.interfaces.ui.app import make_app, snapshot
from webdyno.interfaces.ui.guard import Addresses
from webdyno.interfaces.ui.runs import Runs, state_of
from webdyno.interfaces.ui.starting import Begun, Starter
from webdyno.measure.folder import RunFolder

TOKEN, PORT = "right", 8080
ORIGIN = f"http://127.0.0.1:{PORT}"
HERE = f"{ORIGIN}/{TOKEN}"
ADDRESSES = Addresses(TOKEN)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two runs of one experiment, one whose names are markup, and a folder that is no run."""
    for name in ("before", "after"):
        comparisons.decided().stored(tmp_path / name)
    sweeps.hostile_markup().stored(tmp_path / "study/odd")
    comparisons.hostile_words().stored(tmp_path / "study/turned")
    (tmp_path / "empty").mkdir()
    return tmp_path


@pytest.fixture
def stranger(root: Path) -> Iterator[TestClient]:
    """A client that doesn't know the token."""
    app = make_app(Runs(root), Catalogue.load(), Starter(root), TOKEN, PORT, str)
    with TestClient(app, base_url=ORIGIN) as client:
        yield client


@pytest.fixture
def client(stranger: TestClient) -> TestClient:
    """A client that has the address that was printed."""
    stranger.base_url = HERE
    return stranger


def report_of(client: TestClient, name: str) -> Response:
    """Open a run's report, whose address holds no token."""
    return client.get(f"{ORIGIN}{ADDRESSES.report(name)}")


def test_nobody_comes_in_without_the_token(stranger: TestClient) -> None:
    sealed = ADDRESSES.report("after").replace("after", "before")
    wrong = ("/wrong/", "/?token=right", "/righ/", "//right/", "/report/right/before", sealed)
    for path in ("/", "/new", "/report/before", "/static/page.js", *wrong):
        answer = stranger.get(path)
        assert answer.status_code == 403, path
        assert "before" not in answer.text


def test_the_token_is_in_no_cookie_and_in_no_report_s_address(client: TestClient) -> None:
    for path in ("/", "/new", "/live/before"):
        answer = client.get(path)
        assert "set-cookie" not in answer.headers
        assert answer.headers["referrer-policy"] == "strict-origin"
    assert TOKEN not in ADDRESSES.report("before")


@pytest.mark.parametrize("path", ["//evil.example/", f"//evil.example/{TOKEN}", "/\\evil.example"])
def test_nobody_is_sent_elsewhere(stranger: TestClient, path: str) -> None:
    answer = stranger.get(f"{ORIGIN}{path}?token={TOKEN}", follow_redirects=False)
    assert answer.status_code == 403
    inside = stranger.get(f"{HERE}{path}", follow_redirects=False)
    assert "evil.example" not in inside.headers.get("location", "").split("/", 3)[:3]


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
    turned = client.get("/verdict/study/turned").text + report_of(client, "study/turned").text
    assert "\u202e" not in turned


def test_a_run_s_verdict_report_and_files_are_given(client: TestClient, root: Path) -> None:
    reported = client.get("/verdict/before").json()
    assert reported["tone"] == "faster"
    assert reported["said"].startswith("▲ nginx is FASTER: 1.91× the throughput of apache-event (")
    report = report_of(client, "before")
    assert "<!DOCTYPE html>" in report.text
    assert "unsafe-inline" in report.headers["content-security-policy"]
    assert not (root / "before/report.html").exists()
    assert client.get("/export/csv/before").text.startswith("experiment,")
    assert client.get("/export/json/before").json()["points"]
    assert "faster" in client.get("/export/md/before").text.lower()
    assert client.get("/export/exe/before").status_code == 400


def test_two_runs_are_compared(client: TestClient) -> None:
    page = client.get("/compare?run=before&run=after")
    assert page.status_code == 200
    assert "throughput" in page.text.lower()
    assert client.get("/compare?run=before").status_code == 400


@pytest.mark.parametrize(
    "name", ["%2e%2e", "%2e%2e%2f%2e%2e", "empty", "nothing", "%2e%2e/%2e%2e/etc"]
)
def test_nothing_outside_and_no_folder_without_a_run_is_shown(
    client: TestClient, name: str
) -> None:
    for kind in ("verdict", "live", "export/csv"):
        assert client.get(f"/{kind}/{name}").status_code in {400, 404}
    assert report_of(client, unquote(name)).status_code in {400, 403, 404}


@pytest.mark.parametrize(
    ("stack", "path", "said"),
    [
        ("cmd:rm -rf /", "", "the catalog has no such stack"),
        ("--output=/etc", "", "the catalog has no such stack"),
        ("nginx", "x", "should begin with /"),
        ("nginx", "/a\0b", "no control characters"),
        ("conf:/etc/nginx/nginx.conf", "", "lies outside of"),
        ("conf:nginx:../nginx.conf", "", "lies outside of"),
        ("conf:linked/nginx.conf", "", "lies outside of"),
        ("conf:linked/nginx.conf#80", "", "lies outside of"),
        ("conf:file.conf#80", "", "lies outside of"),
    ],
)
def test_what_no_page_may_begin_is_refused(
    client: TestClient,
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    stack: str,
    path: str,
    said: str,
) -> None:
    monkeypatch.chdir(root)
    (root / "linked").symlink_to("/etc")
    (root / "file.conf").symlink_to("/etc/hosts")
    asked = {"stack": stack, "baseline": "nginx", "path": path}
    answer = client.post("/begin", headers={"origin": ORIGIN}, data=asked)
    assert answer.status_code == 400
    assert said in answer.text


def test_a_run_that_goes_on_is_shown_live_and_without_a_verdict(
    client: TestClient, root: Path
) -> None:
    with RunFolder.open(comparisons.inconclusive().stored(root / "going")) as folder:
        folder.hold()
        assert state_of(folder.path) == "running"
        page = client.get("/live/going")
        assert f'data-events="/{TOKEN}/events/going"' in page.text
        assert "in progress" in client.get("/").text
        (point,) = snapshot(folder)["points"]
        assert point["expected"] >= point["rounds"]
        assert point["metric"] == "Throughput, req/s"
        assert point["left"]
        (curve,) = point["curves"]
        assert curve["low"] < curve["high"]
        assert len(curve["rounds"]) == point["rounds"]
        assert "verdict" not in str(point)
    assert state_of(folder.path) == "ended"
    with client.stream("GET", "/events/going") as events:
        reported = "".join(events.iter_text())
    assert reported.startswith("data: {")
    assert '"running": false' in reported
    ended = client.get("/live/going", follow_redirects=False)
    assert ended.headers["location"] == ADDRESSES.report("going")


def test_a_run_that_can_not_be_judged_invalidates_its_own_page_only(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise ZeroDivisionError("nobody foresaw this")

    monkeypatch.setattr("webdyno.interfaces.ui.runs.see", fails)
    answer = client.get("/verdict/before")
    assert (answer.status_code, answer.text) == (500, "nobody foresaw this\n")
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert client.get("/").status_code == 200
    report = report_of(client, "before")
    assert (report.status_code, report.text) == (500, "nobody foresaw this\n")


def test_what_lies_in_a_run_s_folder_is_no_report(client: TestClient, root: Path) -> None:
    """Who sends a run sends its report too; drawn from the slots it says what they say."""
    (root / "before/report.html").write_text("<script>alert(1)</script>")
    (root / "after/report.html").symlink_to("/etc/passwd")
    for name in ("before", "after"):
        report = report_of(client, name)
        assert "alert(1)" not in report.text
        assert "root:" not in report.text
        policy = report.headers["content-security-policy"]
        assert policy.startswith("sandbox allow-scripts;")
        assert "form-action 'none'" in policy
    assert (root / "after/report.html").is_symlink()


@pytest.mark.timeout(60)
def test_one_bad_folder_invalidates_no_list(client: TestClient, root: Path) -> None:
    good = (root / "before/run.json").read_text()
    bad = {
        "digits": good.replace(f'"format": {FORMAT}', f'"format": {"9" * 5000}'),
        "naive": good.replace('"started_at": "', '"started_at": "2026-01-01T00:00:00", "x": "'),
        "deep": "[" * 100_000,
    }
    for name, text in bad.items():
        (root / name).mkdir()
        (root / name / "run.json").write_text(text)
    for name in ("pipe", "device", "folder", "link"):
        (root / name).mkdir()
    os.mkfifo(root / "pipe/run.json")
    (root / "device/run.json").symlink_to("/dev/zero")
    (root / "folder/run.json").mkdir()
    (root / "link/run.json").symlink_to(root / "before/run.json")
    shutil.copytree(root / "before", root / os.fsdecode(b"\xff"))
    page = client.get("/")
    assert page.text.count('type="checkbox"') == 4
    for name in ("digits", "naive", "deep", "pipe", "device", "link", "udcff"):
        assert name in page.text.partition("be shown")[2], name


def test_odd_names_have_links_that_lead_to_them(client: TestClient, root: Path) -> None:
    name = "a #1?x=50%&y €"
    (root / "before").rename(root / name)
    page = client.get("/").text
    address = ADDRESSES.report(name)
    assert f'href="{address}"' in page
    assert client.get(f"{ORIGIN}{address}").status_code == 200
    for path in re.findall(r'(?:href|data-verdict)="(/right/(?:export|verdict)[^"]*)"', page):
        assert client.get(f"{ORIGIN}{path}").status_code == 200, path
    csv = client.get(f"/export/csv/{quote(name)}")
    assert quote("€") in csv.headers["content-disposition"]


@pytest.mark.parametrize("name", ["%00", "a%00b", "x" * 5000, "loop"])
def test_what_is_no_name_is_no_run(client: TestClient, root: Path, name: str) -> None:
    (root / "loop").symlink_to(root / "loop")
    for kind in ("verdict", "live", "export/csv"):
        assert client.get(f"/{kind}/{name}").status_code == 400
    assert report_of(client, unquote(name)).status_code == 400


def test_a_configuration_below_the_folder_may_be_begun(
    client: TestClient, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root)
    begun: list[tuple[str, Mapping[str, object], Sequence[object]]] = []

    def begin(
        _: Starter, call: str, arguments: Mapping[str, object], own: Sequence[object]
    ) -> Begun:
        begun.append((call, arguments, own))
        raise UserError("enough")

    monkeypatch.setattr(Starter, "begin", begin)
    asked = {"stack": "conf:nginx:new.conf#81", "baseline": "conf:old.conf"}
    client.post("/begin", headers={"origin": ORIGIN}, data=asked)
    systems = {"system": f"conf:nginx:{root}/new.conf#81", "baseline": f"conf:{root}/old.conf"}
    assert begun == [("compare", systems, [*systems.values()])]


def test_connections_rate_and_time_are_chosen(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[Mapping[str, object]] = []

    def begin(*asked: Mapping[str, object]) -> Begun:
        begun.append(asked[2])
        raise UserError("enough")

    monkeypatch.setattr(Starter, "begin", begin)
    asked = {"stack": "nginx", "baseline": "caddy", "connections": "8", "rate": "500", "time": "2m"}
    client.post("/begin", headers={"origin": ORIGIN}, data=asked)
    load = {"load.connections": 8, "load.loop": "open", "load.rate_per_s": 500}
    systems = {"system": "nginx", "baseline": "caddy"}
    assert begun == [{**systems, "settings": load, "time": "2m"}]
    for field, wrong in (("connections", "0"), ("connections", "many"), ("rate", "9" * 12)):
        answer = client.post("/begin", headers={"origin": ORIGIN}, data=asked | {field: wrong})
        assert answer.status_code == 400
        assert "should be a number from 1 to" in answer.text
    assert len(begun) == 1


def test_the_form_offers_what_is_installed(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "webdyno.interfaces.ui.app.is_installed", lambda stack: stack.name in {"caddy", "nginx"}
    )
    page = client.get("/new").text
    assert "<option selected>nginx</option>" in page
    assert "<option selected>caddy</option>" in page
    assert "<option disabled>apache-event</option>" in page
