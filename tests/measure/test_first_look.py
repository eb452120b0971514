"""Loads from logs: what is answered otherwise than the log says is found before measuring."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

import webdyno.measure.first_look
from ordinary_user import NOBODY
from webdyno.config import Catalogue, CommandLine, read_experiment
from webdyno.core.errors import UserError
from webdyno.core.experiment import Experiment, State
from webdyno.interfaces.cli.flags import RunFlags
from webdyno.interfaces.cli.progress import at_terminal
from webdyno.launch.consent import without_unlike
from webdyno.measure.first_look import UNLIKE, Unlike, login_takes_s, unlike_requests, without

CATALOGUE = Catalogue.load()
REQUESTS: list[dict[str, Any]] = [
    {"path": "/hello.txt"},
    *({"path": f"/hello.txt?{number}"} for number in range(30)),
    {"path": "/gone.html"},
    {"path": "/gone.html", "status": 404, "method": "HEAD"},
]


def of_a_log(requests: Sequence[Mapping[str, object]], **load: object) -> Experiment:
    variants = {"one": {"stack": "nginx"}, "two": {"stack": "nginx"}}
    reported = {
        "title": "t",
        "question": "q?",
        "site": "static",
        "variants": variants,
        "requests": list(requests),
        "load": load,
        "workload": {"requests": 1_000, "excluded": {"of other methods": 3}},
    }
    return read_experiment(CommandLine(reported, {}), [], CATALOGUE)


def test_all_variants_are_asked_for_everything_once() -> None:
    (found,) = unlike_requests(of_a_log(REQUESTS), CATALOGUE)
    assert found.number == 31
    assert found.why.startswith("variant one answered 404 to /gone.html, 200 was expected")
    assert found.share == pytest.approx(1 / 33)


def test_what_is_excluded_goes_with_its_weight_and_is_kept_on_record() -> None:
    weighted: list[dict[str, Any]] = [
        {"path": "/a", "weight": 3},
        {"path": "/b", "weight": 1},
        {"path": "/c"},
    ]
    left = without(of_a_log(weighted), [Unlike(1, "", 0.2)])
    assert [(it.path, it.weight) for it in left.requests] == [("/a", 3), ("/c", 1)]
    assert left.workload["excluded"] == {"of other methods": 3, UNLIKE: 200}


def test_by_zipf_s_law_the_others_keep_their_shares() -> None:
    paths: list[dict[str, Any]] = [{"path": "/a"}, {"path": "/b"}, {"path": "/c"}]
    left = without(of_a_log(paths, zipf=1.0), [Unlike(0, "", 6 / 11)])
    assert left.load.zipf is None
    assert left.requests[0].weight / left.requests[1].weight == pytest.approx(3 / 2)


@pytest.fixture
def half_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [Unlike(0, "it answered 404 to /a, 200 was expected", 0.5)]
    monkeypatch.setattr(webdyno.measure.first_look, "unlike_requests", lambda *_: found)


TWO: list[dict[str, Any]] = [{"path": "/a"}, {"path": "/b"}]


@pytest.mark.usefixtures("half_is_gone")
def test_with_yes_it_is_excluded_and_reported(capfd: pytest.CaptureFixture[str]) -> None:
    left = without_unlike(of_a_log(TWO), CATALOGUE, at_terminal(RunFlags(yes=True)))
    assert [it.path for it in left.requests] == ["/b"]
    reported = capfd.readouterr().err
    assert "1 of 2 requests, 50% of the load, can't be compared" in reported
    assert "it answered 404 to /a" in reported


@pytest.mark.usefixtures("half_is_gone")
def test_where_nobody_can_be_asked_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    with pytest.raises(UserError, match="add --yes to leave them out"):
        without_unlike(of_a_log(TWO), CATALOGUE, at_terminal(RunFlags(yes=False)))


def test_where_most_is_unlike_nothing_is_excluded(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [Unlike(0, "", 0.51)]
    monkeypatch.setattr(webdyno.measure.first_look, "unlike_requests", lambda *_: found)
    with pytest.raises(UserError, match="most of the load: nothing was measured"):
        without_unlike(of_a_log(TWO), CATALOGUE, at_terminal(RunFlags(yes=True)))


@pytest.mark.usefixtures("half_is_gone")
def test_what_is_of_no_log_is_measured_as_it_is() -> None:
    experiment = of_a_log(TWO).model_copy(update={"workload": {}})
    assert without_unlike(experiment, CATALOGUE, at_terminal(RunFlags(yes=False))) is experiment


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for a folder of another user's")
@pytest.mark.parametrize("is_there", [False, True])
def test_commands_run_as_they_will_in_the_run(
    open_folder: Path, monkeypatch: pytest.MonkeyPatch, *, is_there: bool
) -> None:
    """As the owner of its folder, where that is there already; nothing is started."""
    monkeypatch.delenv("SUDO_UID", raising=False)
    monkeypatch.setattr(webdyno.measure.first_look, "Agent", Mock(side_effect=ZeroDivisionError))
    (said := open_folder / "said").touch()
    said.chmod(0o666)
    experiment = of_a_log(REQUESTS[:1]).replace(state=State(before_round=[f"id -u >{said}"]))
    out = open_folder / "out"
    if is_there:
        out.mkdir()
        os.chown(out, NOBODY, NOBODY)
    for look in (unlike_requests, login_takes_s):
        with pytest.raises(ZeroDivisionError):
            look(experiment, CATALOGUE, out=out)
        assert said.read_text() == (f"{NOBODY}\n" if is_there else "0\n")


def test_nothing_is_left_of_the_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    unlike_requests(of_a_log(REQUESTS[:1]), CATALOGUE)
    assert not list(tmp_path.glob("webdyno-look-*"))
