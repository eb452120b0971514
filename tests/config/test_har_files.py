"""HAR files: what a page and a log of requests become."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from webdyno.config.requests import weighted_entries
from webdyno.config.traffic import read_har, read_workload_file
from webdyno.core.errors import UserError
from webdyno.core.request import WrittenRequest
from webdyno.traffic import Manner, traffic_of
from webdyno.traffic.log import LogSelection
from webdyno.traffic.privacy import Privacy
from webdyno.traffic.read import read_logs


def har(*requests: Mapping[str, object], status: int = 200) -> str:
    entries = [{"request": it, "response": {"status": status}, "time": 1.5} for it in requests]
    return json.dumps({"log": {"version": "1.2", "entries": entries}})


PAGE = {
    "method": "GET",
    "url": "https://shop.example/?q=1",
    "headers": [
        {"name": ":authority", "value": "shop.example"},
        {"name": "Host", "value": "shop.example"},
        {"name": "If-None-Match", "value": '"x"'},
        {"name": "Accept", "value": "*/*"},
    ],
}


def test_each_of_very_many_requests_is_compared_with_few() -> None:
    """Else this takes an hour."""
    entries = [{"path": f"/{number}", "headers": {}} for number in range(200_000)]
    assert weighted_entries(entries) == entries
    (weighted, *_) = weighted_entries([*entries, {"headers": {}, "path": "/0"}])
    assert weighted["weight"] == 2.0


def test_a_har_file_gives_the_page_s_own_requests_with_how_often_they_came(tmp_path: Path) -> None:
    other = {"method": "GET", "url": "https://tracker.example/x", "headers": []}
    posted = {
        "method": "POST",
        "url": "https://shop.example/cart",
        "headers": [{"name": "Content-Type", "value": "application/json"}],
        "postData": {"mimeType": "application/json", "text": '{"id": 7}'},
    }
    (tmp_path / "a.har").write_text(har(PAGE, other, posted, PAGE))
    entries, reported = read_har(tmp_path / "a.har")
    assert entries == [
        {
            "path": "/?q=1",
            "method": "GET",
            "headers": {"Accept": "*/*"},
            "status": 200,
            "weight": 2.0,
        },
        {
            "path": "/cart",
            "method": "POST",
            "headers": {"Content-Type": "application/json"},
            "status": 200,
            "body": '{"id": 7}',
            "weight": 1.0,
        },
    ]
    assert reported
    assert "1 request excluded: 1 to others than shop.example" in reported
    for entry in entries:
        WrittenRequest.model_validate(entry)


def entry(url: str, status: int = 200, method: str = "GET", **more: object) -> dict[str, object]:
    response = {"status": status, "bodySize": -1}
    for name in ("content", "_fetchedViaServiceWorker"):
        if name in more:
            response[name] = more.pop(name)  # type: ignore[assignment]
    return {
        "startedDateTime": "2026-11-22T10:15:03.131Z",
        "request": {"method": method, "url": url, "headers": more.pop("headers", [])},
        "response": response,
        **more,
    }


SHOP = "https://shop.example"
WAITED: dict[str, Any] = {"timings": {"wait": 30.0}, "connection": "443"}
RECORDED = [
    entry("https://ads.example/x", 0),
    entry(f"{SHOP}/", **WAITED),
    entry(f"{SHOP}/api?page=1", 304, **WAITED),
    entry(f"{SHOP}/a.css", _fromCache="disk", timings={"wait": 0.05}),
    entry(f"{SHOP}/b.css", _fetchType="Memory Cache", timings={"wait": 0.05}),
    entry(f"{SHOP}/c.js", _fetchedViaServiceWorker=True, _fromCache=None, connection=None),
    entry("data:image/svg+xml;base64,PHN2Zy8+"),
    entry("blob:https://shop.example/0b5c-worker"),
    entry("https://cdn.example/lib.js"),
    entry(f"{SHOP}/api", 204, "OPTIONS", _resourceType="preflight"),
    entry(
        f"{SHOP}/api",
        204,
        "OPTIONS",
        headers=[{"name": "Access-Control-Request-Method", "value": "PUT"}],
    ),
    entry(f"{SHOP}/gone", 0),
    entry("wss://shop.example/ws", 101),
    entry(f"{SHOP}/events", content={"mimeType": "text/event-stream;charset=utf-8"}),
    entry(f"{SHOP}/more-events", _resourceType="eventsource"),
]
POSTED = entry(f"{SHOP}/cart", 201, "POST", **WAITED)
POSTED["request"] = {
    "method": "POST",
    "url": f"{SHOP}/cart",
    "headers": [{"name": "content-type", "value": "application/json"}],
    "postData": {"mimeType": "application/json", "text": '{"id": 7}'},
}
WHY = (
    "13 requests excluded: 2 without a response (blocked, or given up); 3 answered from the "
    "browser's cache or a service worker; 2 for data:, blob: and the like, which need no "
    "server; 1 to others than shop.example; 2 as preflight (OPTIONS), which a browser makes by "
    "itself; 1 over WebSockets; 2 for streams (server-sent events), which have no end"
)


def test_what_a_load_could_not_ask_for_is_excluded_and_reported_by_why(tmp_path: Path) -> None:
    (tmp_path / "a.har").write_text(json.dumps({"log": {"entries": [*RECORDED, POSTED]}}))
    entries, reported = read_har(tmp_path / "a.har")
    assert [(it["method"], it["path"], it.get("status")) for it in entries] == [
        ("GET", "/", 200),
        ("GET", "/api?page=1", None),
        ("POST", "/cart", 201),
    ]
    assert reported == f"--traffic {tmp_path / 'a.har'}: {WHY}"


def test_traffic_leaves_out_the_same_and_keeps_bodies_if_asked(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.har").write_text(json.dumps({"log": {"entries": [*RECORDED, POSTED]}}))
    wanted = LogSelection(methods=("GET", "POST"))
    dropped = read_logs([tmp_path / "a.har"], wanted, Privacy("keep", "hash"))
    assert dropped.excluded == {"with a body, which --bodies keep writes down": 1}
    log = read_logs([tmp_path / "a.har"], wanted, Privacy("keep", "hash", keeps_bodies=True))
    assert log.notes == [
        f"{tmp_path / 'a.har'}: {WHY}",
        "1 request with a body, which the load's file holds: look it over",
    ]
    assert log.took_s.tolist() == [0, 0, 0]
    made = traffic_of(log, Manner())
    (tmp_path / "kept.toml").write_text(made.text)
    assert read_workload_file(tmp_path / "kept.toml")["requests"] == made.requests
    assert {key: it for it in made.requests for key in [it["path"]]} == {
        "/": {"path": "/"},
        "/api?page=1": {"path": "/api?page=1"},
        "/cart": {
            "path": "/cart",
            "method": "POST",
            "status": 201,
            "headers": {"Content-Type": "application/json"},
            "body": '{"id": 7}',
        },
    }


def test_a_har_file_of_which_nothing_is_left_says_what_was_in_it(tmp_path: Path) -> None:
    (tmp_path / "a.har").write_text(json.dumps({"log": {"entries": RECORDED[3:4]}}))
    with pytest.raises(
        UserError, match=r"no request in it that a server answered \(1 answered from"
    ):
        read_har(tmp_path / "a.har")


def test_an_answer_that_was_not_modified_is_asked_for_in_full(tmp_path: Path) -> None:
    (tmp_path / "a.har").write_text(har(PAGE, status=304))
    ((entry,), _) = read_har(tmp_path / "a.har")
    assert "status" not in entry


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"log": {"entries": []}}', '{"log": 1}'])
def test_what_is_no_har_file_is_refused_with_its_name(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.har").write_text(text)
    with pytest.raises(UserError, match=r"--traffic .*a\.har: "):
        read_har(tmp_path / "a.har")


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("text/plain;x=${env:HOME}", "a"),
        ("application/json", '{"pin": 1, "a": "\\u0024{env:HOME}"}'),
    ],
)
def test_who_recorded_names_no_variable_of_yours(tmp_path: Path, kind: str, text: str) -> None:
    posted = {
        "method": "POST",
        "url": "https://shop.example/",
        "headers": [{"name": "Content-Type", "value": kind}],
        "postData": {"mimeType": kind, "text": text},
    }
    entry = {
        "startedDateTime": "2026-11-22T08:26:40Z",
        "request": posted,
        "response": {"status": 200},
    }
    (tmp_path / "a.har").write_text(json.dumps({"log": {"entries": [entry]}}))
    privacy = Privacy("keep", "hash", keeps_bodies=True)
    log = read_logs([tmp_path / "a.har"], LogSelection(methods=("POST",)), privacy)
    with pytest.raises(UserError, match=r"a\.har: \$\{env:HOME\} would be filled in by yours"):
        traffic_of(log, Manner())
