"""From a log to a load that `run` and `duel` take."""

import io
import re
import tomllib
from pathlib import Path

import pytest

from in_process import webdyno
from traffic.made import BEGIN_S, line, read, zipf_draws
from webdyno.config import Catalogue, CommandLine, read_experiment
from webdyno.core.errors import UserError
from webdyno.core.experiment import Experiment
from webdyno.interfaces.cli.experiment_flags import ExperimentFlags, SetupFlags, TrafficFlags
from webdyno.traffic import Manner, traffic_of
from webdyno.traffic.workload import Workload

BARE = {
    "title": "t",
    "question": "q?",
    "site": "static",
    "variants": {"a": {"stack": "nginx", "paths": ["/x"]}, "b": {"stack": "nginx"}},
}


def experiment_with(file: Path, *set_: str) -> Experiment:
    flags = ExperimentFlags(setup=SetupFlags(traffic=TrafficFlags(traffic=[str(file)]), set_=set_))
    return read_experiment(CommandLine(BARE, {}), flags.overrides(), Catalogue.load())


def zipf_log(requests: int = 20_000) -> str:
    return "".join(
        line(f"/{path}.html", client=f"10.0.{at % 200}.1", time_s=BEGIN_S + at / 10, size=path)
        for at, path in enumerate(zipf_draws(1, requests, 100, 1.1).tolist())
    )


def test_a_log_becomes_an_experiment_s_load(tmp_path: Path) -> None:
    log, out = tmp_path / "access.log", tmp_path / "traffic.toml"
    log.write_text(zipf_log())
    assert webdyno("traffic", log, "-o", out, "--speed", 5) == 0
    experiment = experiment_with(out, "load.connections=7")
    assert experiment.load.loop == "open"
    assert experiment.load.rate_per_s == pytest.approx(50, rel=0.001)
    assert experiment.load.zipf == pytest.approx(1.1, abs=0.03)
    assert experiment.load.connections == 7
    assert [it.path for it in experiment.requests[:2]] == ["/0.html", "/1.html"]
    workload = Workload.model_validate(experiment.workload)
    assert workload.requests == 20_000
    agree = {it.what: it.agrees for it in workload.fidelity}
    assert agree["request mix, share alike"]
    assert agree["bytes per response, mean"]
    assert agree["other paths until one comes again, median"]
    assert agree["burstiness in windows of 1 s (1: independent)"] is False  # a steady beat
    assert agree["s between arrivals, p50"] is None  # whole seconds


def test_what_is_set_next_to_counts_before_what_the_file_says(tmp_path: Path) -> None:
    out = tmp_path / "t.toml"
    log = read(tmp_path / "a.log", zipf_log(2_000))
    out.write_text(traffic_of(log, Manner()).text)
    assert experiment_with(out, "load.rate_per_s=1234").load.rate_per_s == 1234


def test_a_closed_loop_has_as_many_connections_as_visitors_think(tmp_path: Path) -> None:
    # One visitor with a request every 10 s, and another one: two think at any time.
    text = "".join(
        line("/", client=client, time_s=BEGIN_S + 10 * at)
        for at in range(100)
        for client in ("10.0.0.1", "10.0.0.2")
    )
    log = read(tmp_path / "a.log", text)
    load = traffic_of(log, Manner("closed", 10)).load
    assert load == {"zipf": 0.0, "loop": "closed", "connections": 2, "think_s": 1.0}


def test_methods_weights_and_usual_statuses_are_kept(tmp_path: Path) -> None:
    text = (
        line("/a") * 70
        + line("/a", status=304) * 20
        + line("/gone", status=404) * 5
        + line("/a", method="HEAD") * 5
    )
    found = traffic_of(read(tmp_path / "a.log", text), Manner())
    assert [{**it, "weight": it.get("weight")} for it in found.requests] == [
        {"path": "/a", "weight": 90.0},
        {"path": "/gone", "weight": 5.0, "status": 404},
        {"path": "/a", "method": "HEAD", "weight": 5.0},
    ]
    assert found.workload.methods == {"GET": 0.95, "HEAD": 0.05}


def test_of_very_many_paths_some_stand_for_the_tail(tmp_path: Path) -> None:
    text = "".join(line(f"/{number}") for number in range(6_000)) + line("/0") * 6_000
    found = traffic_of(read(tmp_path / "a.log", text), Manner())
    assert len(found.requests) == 5_000
    assert sum(it["weight"] for it in found.requests) == pytest.approx(100, rel=1e-3)
    assert found.requests[0]["weight"] == pytest.approx(50, abs=0.1)


def test_nothing_of_visitors_is_in_the_file(tmp_path: Path) -> None:
    text = line("/u/joe@example.org/?q=secret", client="192.0.2.77").replace("Mozilla", "Spy/9")
    written = traffic_of(read(tmp_path / "a.log", text), Manner()).text
    for personal in ("joe", "secret", "192.0.2.77", "Spy"):
        assert personal not in written
    assert tomllib.loads(written)["workload"]["hidden"] == {
        "queries": 1,
        "parts of paths that look personal": 1,
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('title = "t"\n[[requests]]\npath = "/"', r"t\.toml:1: title is no part"),
        ("[load]\n", r"t\.toml: there is no \[\[requests\]\]"),
        ("requests = [1]\n", r"t\.toml:1: requests.0 should be a table"),
        ('load = 1\n[[requests]]\npath = "/"', r"t\.toml:1: load should be a table"),
    ],
)
def test_other_toml_files_are_no_traffic(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "t.toml").write_text(text)
    with pytest.raises(UserError, match=message):
        experiment_with(tmp_path / "t.toml")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--speed", "0"], "--speed 0"),
        (["--from", "monday"], "--from monday: is no time"),
        (["--from", "2026-01-02", "--to", "2026-01-01"], "the end should be after"),
        (["--methods", "GET,connect"], "--methods"),
    ],
)
def test_wrong_flags_are_reported(tmp_path: Path, flags: list[str], message: str) -> None:
    (tmp_path / "a.log").write_text(line())
    with pytest.raises(UserError, match=message):
        webdyno("traffic", tmp_path / "a.log", "-o", tmp_path / "t.toml", *flags)


def test_a_file_that_is_there_is_kept(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(line())
    (tmp_path / "t.toml").write_text("mine")
    with pytest.raises(UserError, match="is there already"):
        webdyno("traffic", tmp_path / "a.log", "-o", tmp_path / "t.toml")


def test_the_table_says_what_was_excluded_and_hidden(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.log").write_text(line("/a?b=c") * 3 + "\x1b[31mbad\n")
    assert webdyno("traffic", tmp_path / "a.log", "-o", tmp_path / "t.toml") == 0
    out, err = capfd.readouterr()
    assert "3 queries" in out
    assert "1 lines that are no request" in out
    assert "a.log:4: is in none of the formats" in err
    assert "\x1b" not in out + err


def test_notes_on_the_log_and_several_files_reach_the_terminal(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in ("a.log", "b.log"):
        (tmp_path / name).write_text(line() * 15)
    logs = (tmp_path / "a.log", tmp_path / "b.log")
    assert webdyno("traffic", *logs, "-o", tmp_path / "t.toml", "--speed", 2) == 0
    out, err = capfd.readouterr()
    assert "requests     30 in" in out
    assert "note: all 30 requests come from one address" in err


def test_a_load_of_few_requests_names_the_speed_of_more(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    log, load = tmp_path / "a.log", tmp_path / "t.toml"
    log.write_text("".join(line(time_s=BEGIN_S + 10 * each) for each in range(31)))
    assert webdyno("traffic", log, "-o", load) == 0
    (proposed,) = re.findall(r"--speed (\d+) asks for 100", capfd.readouterr().err)
    assert webdyno("traffic", log, "-o", load, "--force", "--speed", proposed) == 0
    assert "--speed" not in capfd.readouterr().err
    assert 95 < tomllib.loads(load.read_text())["load"]["rate_per_s"] < 105


def test_standard_input_is_a_log_and_an_unknown_flag_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(line().encode())))
    assert webdyno("traffic", "-", "-o", tmp_path / "t.toml") == 0
    with pytest.raises(UserError, match="traffic has no flag --ouptut"):
        webdyno("traffic", "-", "--ouptut", tmp_path / "t.toml")
