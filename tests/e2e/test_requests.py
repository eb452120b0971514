"""What is asked is the user's traffic: methods, bodies, weights, secrets, in real runs."""

import csv
import json
from pathlib import Path

import pytest

from e2e.commands import FEW, QUICK, left_behind, run_rounds, webdyno, webdyno_here
from webdyno.core.records import PreflightRecord, SlotRecord
from webdyno.measure.folder import RunFolder

ECHO = ("--catalog", str(Path(__file__).parent / "echo"), "--yes")
DUEL = ("compare", "echo", "echo", "--site=own", *ECHO, *QUICK, "--set=load.connections=1")
SECRET = "s3cr3t-Zq8vW1"  # noqa: S105
ORDERS = """
title = "Orders"
question = "Does a slower order show?"
site = "own"
load.connections = 1

[[requests]]
path = "/"
weight = 3
contains = "GET /"

[[requests]]
name = "order"
method = "POST"
path = "/headers?dry=1"
headers = { Authorization = "Bearer ${env:SHOP_TOKEN}", X-Kind = "a" }
body = "token=${env:SHOP_TOKEN}&n=1"
status = 201

[variants.before]
stack = "echo"

[variants.after]
stack = "echo"
"""


def test_requests_of_all_kinds_are_made_and_secrets_stay_out_of_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_TOKEN", SECRET)
    (tmp_path / "orders.toml").write_text(ORDERS)
    run_rounds(1, "run", "orders.toml", *ECHO, *FEW[1:], folder=tmp_path)
    records = RunFolder.open(tmp_path / "run").records()
    preflight = next(it for it in records if isinstance(it, PreflightRecord))
    page, order = preflight.responses["before"]
    assert (page.path, page.status, page.body_start) == ("/", 200, "GET /\n\n")
    assert (order.path, order.status) == ("order", 201)
    assert "Bearer …hidden…" in order.body_start
    slots = [it for it in records if isinstance(it, SlotRecord) and it.phase == "measure"]
    assert {failures for it in slots if (failures := it.load.failures.total)} == set()
    codes = {code for it in slots for code in it.load.by_status}
    assert codes == {"200", "201"}
    for path in (path for path in tmp_path.rglob("*") if path.is_file()):
        assert SECRET.encode() not in path.read_bytes(), path
    said = [path for path in (tmp_path / "run/rounds").rglob("*") if path.is_file()]
    assert any("…hidden…" in path.read_text(errors="replace") for path in said)
    assert left_behind(tmp_path) == []


def test_a_secret_that_is_not_there_is_reported_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SHOP_TOKEN", raising=False)
    (tmp_path / "orders.toml").write_text(ORDERS)
    done = webdyno_here("run", "orders.toml", *ECHO, *QUICK, "--output=r", folder=tmp_path)
    assert done.returncode == 2
    assert "the environment has no SHOP_TOKEN; export SHOP_TOKEN=… first" in done.stderr
    assert not (tmp_path / "r").exists()


def test_what_a_curl_command_asks_is_measured(tmp_path: Path) -> None:
    curl = "--traffic=curl -X POST x/a -d b=1"
    run_rounds(1, *DUEL, curl, folder=tmp_path)
    slots = [it for it in RunFolder.open(tmp_path / "run").records() if it.kind == "slot"]
    assert {code for it in slots for code in it.load.by_status} == {"201"}


def test_another_answer_than_the_expected_one_ends_the_run_before_the_load(tmp_path: Path) -> None:
    file = tmp_path / "all.jsonl"
    wrong = {"method": "POST", "path": "/", "status": 200}
    lacking = {"path": "/b", "contains": "Welcome"}
    for entry, reported in ((wrong, "201 to POST /, 200 was"), (lacking, "without 'Welcome'")):
        file.write_text(json.dumps(entry))
        done = webdyno(*DUEL, f"--traffic={file}", f"--output={reported[:3]}", folder=tmp_path)
        assert done.returncode == 1, done.stdout + done.stderr
        assert reported in " ".join(done.stdout.split()), done.stdout


@pytest.mark.measures
def test_the_request_that_costs_more_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_TOKEN", SECRET)
    (tmp_path / "orders.toml").write_text(ORDERS)
    slower = ("--set=variants.after.settings.order_us=1000", "--set=measure.min_rounds=8")
    limit = "--fail-if=after.cpu > +10%"
    done = webdyno(
        "run",
        "orders.toml",
        *ECHO,
        *QUICK,
        *slower,
        limit,
        "--output=r",
        "--report",
        folder=tmp_path,
    )
    assert done.returncode == 4, done.stdout + done.stderr
    assert "--fail-if 'after.cpu > +10%' is true" in done.stderr
    with (tmp_path / "r/summary.csv").open(encoding="utf-8") as file:
        ratios = {it["endpoint"]: it for it in csv.DictReader(file) if it["kind"] == "ratio"}
    assert ratios["order"]["verdict"] == "slower", done.stdout
    # The page costs the same, but what came before it leaves colder caches: 1.2 to 1.9 times.
    assert float(ratios["order"]["estimate"]) > 3 * float(ratios["/"]["estimate"])
    reported = " ".join(done.stdout.split())
    assert "median latency differs: " in reported
    assert "order ▼ " in reported
