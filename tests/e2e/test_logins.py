"""Pages behind a login, and flows, in real runs against a server with forms and tokens."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote
from urllib.request import urlopen

import pytest

from e2e.commands import FEW, QUICK, run_rounds, webdyno
from webdyno.config import Catalogue
from webdyno.core.experiment import Experiment
from webdyno.core.records import PreflightRecord, Record, SlotRecord
from webdyno.core.request import FORM_TYPE
from webdyno.load.interface import LoadOrder
from webdyno.load.loadgen import Loadgen
from webdyno.measure.folder import RunFolder
from webdyno.measure.planned import planned_requests, planned_users
from webdyno.servers.service_graph import free_port

SHOP = Path(__file__).with_name("shop.py")
PASSWORD = "pw+s3cr3t&"  # noqa: S105
VARIANTS = """
[variants.old]
stack = "cmd:{python} shop.py $PORT"
environment = {{ PASSWORD = "${{env:SHOP_PASSWORD}}" }}
[variants.new]
stack = "cmd:{python} shop.py $PORT"
environment = {{ PASSWORD = "${{env:SHOP_PASSWORD}}", NEW = "1"{more} }}
"""
HEAD = """
title = "Shop"
question = "Is the new shop slower?"
site = "own"
load.connections = 3
"""
FORM = """
[values.user]
file = "users.csv"
[[login]]
path = "/login"
capture.csrf = { css = "form input[name=csrf]" }
[[login]]
path = "/login"
method = "POST"
form = { name = "{{user.name}}", password = "${env:SHOP_PASSWORD}{{user.name}}", csrf = "{{csrf}}" }
status = 302
"""
BEARER = """
[values.user]
file = "users.csv"
[[login]]
path = "/token"
method = "POST"
headers = { Accept-Encoding = "gzip" }
json = { name = "{{user.name}}", password = "${env:SHOP_PASSWORD}{{user.name}}" }
capture.token = { json = "$.data.token" }
[load.headers]
Authorization = "Bearer {{token}}"
"""
GREETING = "Your orders</h1> {{ user.name }}"
PAGES = """
[[requests]]
path = "/account"
contains = "Your orders</h1> {{ user.name }}"
weight = 2
[[requests]]
flow = "buy"
path = "/items"
capture.item = { json = "$.items[0].id" }
[[requests]]
flow = "buy"
path = "/cart"
method = "POST"
json = { item = "{{item}}" }
status = 201
"""


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SHOP_PASSWORD", PASSWORD)
    (tmp_path / "shop.py").write_text(SHOP.read_text())
    (tmp_path / "users.csv").write_text("name,age\nann,1\nbob,2\ncat,3\n")
    return tmp_path


def write(shop: Path, text: str, more: str = "") -> None:
    """Write an experiment on two shops; `more` is in the environment of the new one."""
    variants = VARIANTS.format(python=sys.executable, more=more)
    (shop / "shop.toml").write_text(f"{HEAD}{text}{variants}")


def run(shop: Path, text: str, *words: str, more: str = "") -> subprocess.CompletedProcess[str]:
    write(shop, text, more)
    return webdyno("run", "shop.toml", "--yes", *QUICK, *words, "-o", "r", folder=shop)


def first_round(shop: Path, text: str, *words: str) -> list[Record]:
    """Run it until it has a round, whose slots a number of requests ends."""
    write(shop, text)
    run_rounds(1, "run", "shop.toml", "--yes", *FEW[1:], *words, folder=shop)
    return RunFolder.open(shop / "run").records()


def test_a_login_by_form_and_a_flow_are_measured(shop: Path) -> None:
    records = first_round(shop, FORM + PAGES)
    slots = [it for it in records if isinstance(it, SlotRecord) and it.phase == "measure"]
    assert sum(it.load.all_of_it.failures.total for it in slots) == 0
    assert {code for it in slots for code in it.load.by_status} == {"200", "201"}
    reported = {it.endpoint: it.completed for slot in slots for it in slot.load.endpoints}
    assert set(reported) == {"/account", "buy: /items", "buy: POST /cart", "buy"}
    preflight = next(it for it in records if isinstance(it, PreflightRecord))
    account, items, cart = preflight.responses["old"]
    assert account.body_start == "<h1>Your orders</h1> ann"
    assert (items.status, cart.status) == (200, 201)
    for path in (path for path in (shop / "run").rglob("*") if path.is_file()):
        content = path.read_bytes()
        assert PASSWORD.encode() not in content, path
        assert b"s3ss10n-" not in content, path


def test_a_user_that_is_not_let_in_makes_it_invalid_as_the_first_one_does(shop: Path) -> None:
    """Only the first user's password is right; nothing is tried twice."""
    (shop / "users.csv").write_text("name,age\nann,1\nbob,2\n&,3\n")
    wrong = FORM.replace("}{{user.name}}", "}ann")
    done = run(shop, wrong + PAGES)
    assert done.returncode == 1, done.stdout + done.stderr
    said = " ".join(done.stdout.split())
    assert re.search(
        r"INVALID: (old|new|old and new) didn't let a user in: login step 2, POST /login, of "
        "user [23]: status 200 instead of 302; it answered 200, beginning with: <p>Wrong name",
        said,
    ), said
    assert "begun again" not in done.stderr


def recorded(shop: Path) -> Path:
    """What a browser saves of ann's login and order, whose number is one in JSON."""
    sent = f"csrf=t1%26%22%2B%2F%3D&name=ann&password={quote(PASSWORD)}"
    as_form = {"mimeType": FORM_TYPE, "text": sent}
    as_json = {"mimeType": "application/json", "text": '{"item": 77, "many": 2}'}
    page = '<form><input type="hidden" name="csrf" value="t1&amp;&quot;+/=">'
    steps: list[tuple[str, str, dict[str, str] | None, int, str]] = [
        ("GET", "/login", None, 200, page),
        ("POST", "/login", as_form, 302, ""),
        ("GET", "/items", None, 200, '{"items": [{"id": 77}]}'),
        ("POST", "/cart", as_json, 201, "thanks"),
    ]
    entries = [
        {
            "request": {
                "method": method,
                "url": f"http://shop.example{path}",
                "headers": [{"name": "Content-Type", "value": data["mimeType"]}] if data else [],
                **({"postData": data} if data else {}),
            },
            "response": {"status": status, "content": {"mimeType": "text/html", "text": text}},
        }
        for method, path, data, status, text in steps
    ]
    (shop / "shop.har").write_text(json.dumps({"log": {"entries": entries}}))
    return shop / "shop.har"


def test_a_recording_becomes_a_flow_that_another_user_goes_through(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = webdyno("traffic", str(recorded(shop)), "--flow", "-o", "flow.toml", folder=shop)
    assert done.returncode == 0, done.stderr
    made = shop / "flow.toml"
    assert made.stat().st_mode & 0o777 == 0o600
    text = made.read_text()
    assert "ann" not in text
    assert PASSWORD not in text
    monkeypatch.setenv("RECORDED_NAME", "bob")
    monkeypatch.setenv("RECORDED_PASSWORD", f"{PASSWORD}bob")
    records = first_round(shop, text, "--set=load.connections=1")
    slots = [it for it in records if isinstance(it, SlotRecord) and it.phase == "measure"]
    assert sum(it.load.all_of_it.failures.total for it in slots) == 0
    assert {code for it in slots for code in it.load.by_status} == {"200", "201"}


def test_too_few_rows_are_refused_before_anything_starts(shop: Path) -> None:
    done = run(shop, FORM + PAGES, "-c", "4")
    assert done.returncode == 2, done.stdout + done.stderr
    assert "users.csv has 3 rows for 4 users" in done.stderr
    assert not (shop / "r").exists()


@pytest.mark.long
def test_a_token_in_json_and_other_loads(shop: Path) -> None:
    rate = ("--set=load.loop=open", "--set=load.rate_per_s=200")
    done = run(shop, BEARER + PAGES, *rate)
    assert "were answered" not in done.stdout, done.stdout
    records = RunFolder.open(shop / "r").records()
    slots = [it for it in records if isinstance(it, SlotRecord) and it.phase == "measure"]
    assert slots
    assert sum(it.load.all_of_it.failures.total for it in slots) == 0
    # Flows of two requests are due as often as single ones of twice their weight.
    offered = {it.load.offered_rps for it in slots}
    assert [round(it) for it in offered if it] == [267]


@pytest.mark.long
@pytest.mark.parametrize(
    ("text", "more", "says"),
    [
        (
            FORM.replace("SHOP_PASSWORD}{{", "SHOP_PASSWORD}x{{") + PAGES,
            "",
            (
                r"INVALID: old and new didn't let a user in: login step 2, POST /login: status 200 "
                r"instead of 302; it answered 200, beginning with: <p>Wrong name or password</p>"
            ),
        ),
        (
            FORM.replace("form input[name=csrf]", "#other input") + PAGES,
            "",
            (
                r"login step 1, /login: there is no {{csrf}} \(css #other input\) in it; it "
                "answered 200, beginning with: <form>"
            ),
        ),
        (
            FORM.replace("{{csrf}}", "old") + PAGES,
            "",
            (
                "login step 2, POST /login: status 403 instead of 302; it answered 403, beginning "
                "with: CSRF token missing"
            ),
        ),
        (
            FORM.replace("status = 302", "") + PAGES,
            "",
            "login step 2, POST /login: status 302 instead of 2xx",
        ),
        (FORM + PAGES.replace(GREETING, "Hello"), "", "without 'Hello'"),
        (
            FORM + PAGES.replace(GREETING, "for {{user.name}}"),
            "",
            'it doesn\'t contain "for {{user.name}}"',
        ),
        (
            FORM + PAGES.replace("$.items[0].id", "$.nope"),
            "",
            r"there is no {{item}} \(json \$.nope\) in it",
        ),
        (FORM + PAGES, ', EXPIRES = "1"', "answered 401 to /items"),
    ],
)
def test_what_fails_is_named_before_the_load(shop: Path, text: str, more: str, says: str) -> None:
    done = run(shop, text, more=more)
    assert done.returncode == 1, done.stdout + done.stderr
    said = " ".join(re.sub(r"[^\S\n]+", " ", done.stdout).split())
    assert re.search(says, said), said
    assert not [it for it in RunFolder.open(shop / "r").records() if isinstance(it, SlotRecord)]


@pytest.mark.parametrize(
    ("text", "users", "says"),
    [
        (FORM + PAGES, "name\nann\nbob\n", "2 rows for 3 users"),
        (FORM + PAGES, "nmae\nann\n", r"no column for {{user.name}}; it has nmae"),
        (FORM + PAGES, "name\nann,b\n", r"users.csv:2: has 2 values"),
        (FORM.replace("{{csrf}}", "{{crsf}}") + PAGES, "name\na\n", "nothing gives {{crsf}}"),
        (FORM + PAGES, "name\n", "users.csv: has no rows"),
    ],
)
def test_what_is_wrong_is_refused_with_its_place(
    shop: Path, text: str, users: str, says: str
) -> None:
    (shop / "users.csv").write_text(users)
    done = run(shop, text)
    assert done.returncode in {1, 2, 3}, done.stdout + done.stderr
    assert re.search(says, " ".join((done.stdout + done.stderr).split())), done.stderr
    assert "Traceback" not in done.stderr


@contextmanager
def serving(**environment: str) -> Iterator[str]:
    port = free_port()
    command = [sys.executable, str(SHOP), str(port)]
    with subprocess.Popen(command, env={"PASSWORD": PASSWORD, **environment}) as server:
        try:
            for _ in range(200):
                try:
                    urlopen(f"http://127.0.0.1:{port}/login").close()
                    break
                except OSError:
                    continue
            yield f"http://127.0.0.1:{port}"
        finally:
            server.kill()


def order_of_users(url: str, names: Sequence[str], load: Mapping[str, object]) -> LoadOrder:
    """Give two requests for each user, who logs in by the form before."""
    form = {"name": "{{user.name}}", "password": PASSWORD + "{{user.name}}", "csrf": "{{csrf}}"}
    experiment = Experiment.model_validate(
        {
            "title": "t",
            "question": "q?",
            "site": "own",
            "load": {"connections": len(names), **load},
            "values": {"user": {"rows": [{"name": it} for it in names]}},
            "login": [
                {"path": "/login", "capture": {"csrf": {"css": "input"}}},
                {"path": "/login", "method": "POST", "form": form, "status": 302},
            ],
            "requests": [{"path": "/account", "contains": "Your orders</h1> {{user.name}}"}],
            "variants": {"a": {"stack": "cmd:a"}, "b": {"stack": "cmd:b"}},
        }
    )
    site, requests, its_load = Catalogue.load().site("own"), experiment.requests, experiment.load
    users = planned_users(experiment, requests, its_load, {})
    assert users is not None
    return LoadOrder(
        "x",
        url,
        planned_requests(requests, its_load, site, {}),
        its_load,
        60.0,
        count=2 * len(names),
        users=replace(users, key="one start"),
    )


def test_a_thousand_users_log_in_once_with_a_row_each() -> None:
    names = [f"u{n}" for n in range(1000)]
    with serving() as url, Loadgen([0]) as engine:
        order = order_of_users(url, names, {})
        engine.log_in(order)
        for _ in range(2):
            result = engine.slot(order)
            assert result.requests.completed == result.requests.sent == 2000
            assert result.failures.total == 0
        with urlopen(f"{url}/logins") as response:  # noqa: S310
            logins = json.load(response)
    assert logins == dict.fromkeys(names, 1)


@pytest.mark.long
def test_a_login_may_take_longer_than_requests_may() -> None:
    with serving(SLOW="0.9") as url, Loadgen([0]) as engine:
        order = order_of_users(url, ["a", "b"], {"timeout_s": 0.6})
        engine.log_in(order)
        assert engine.slot(order).failures.total == 0
