"""What can be asked from Python: the experiments that come of it, and what is refused."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import webdyno
from builders import SimulatedRun, SimulatedVariant, simulated_run
from webdyno.config import Catalogue
from webdyno.core.errors import UserError
from webdyno.core.experiment import Experiment
from webdyno.interfaces.python import api
from webdyno.launch.measure import MeasuredRun
from webdyno.measure.folder import RunFolder


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Experiment]:
    """What would have been measured; a run of it is there at once."""
    found: list[Experiment] = []

    def measure(_: str, experiment: Experiment, *__: object) -> MeasuredRun:
        found.append(experiment)
        run = simulated_run({name: SimulatedVariant() for name in ("nginx", "apache-event")})
        head, path = run.head.replace(experiment=experiment), tmp_path / f"run-{len(found)}"
        SimulatedRun(head, run.records).stored(path)
        return MeasuredRun(RunFolder.open(path), "finished")

    monkeypatch.setattr(api, "measure_again", measure)
    return found


def test_importing_it_loads_nothing() -> None:
    program = "import sys, webdyno; print(*(it for it in sys.modules if it.startswith('webdyno')))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout.decode().split() == ["webdyno"]


def test_two_systems_are_an_experiment_with_its_settings(asked: list[Experiment]) -> None:
    result = webdyno.compare(
        "nginx",
        "apache-event",
        paths=["/100KB.txt"],
        time="2m",
        settings={"load.connections": 16},
        vary={"load.keepalive": ["always", "never"]},
    )
    (experiment,) = asked
    assert list(experiment.variants) == ["apache-event", "nginx"]
    assert experiment.load.paths == ["/100KB.txt"]
    assert experiment.load.connections == 16
    assert experiment.measure.budget_s == 120
    assert experiment.factors == {"load.keepalive": ["always", "never"]}
    assert len(result.points) == 2


def test_an_experiment_may_be_a_name_a_file_a_dictionary_or_one_that_was_read(
    asked: list[Experiment], tmp_path: Path
) -> None:
    known = Catalogue.load().experiment("static-hello")
    (tmp_path / "mine.toml").write_text(known.toml())
    data = {
        "title": "t",
        "question": "q?",
        "site": "static",
        "variants": {"a": {"stack": "nginx"}, "b": {"stack": "nginx"}},
    }
    for each in ("static-hello", tmp_path / "mine.toml", known, data):
        webdyno.run_experiment(each)
    named, filed, read, written = asked
    assert named == filed == read
    assert list(written.variants) == ["a", "b"]


def test_a_search_for_a_capacity_has_its_objectives(asked: list[Experiment]) -> None:
    webdyno.capacity("nginx", slo=["p99<20ms"])
    (experiment,) = asked
    assert experiment.capacity
    assert experiment.capacity.slo == ["p99<20ms"]


def test_one_text_is_one_wherever_several_can_be(asked: list[Experiment]) -> None:
    webdyno.capacity("nginx", slo="p99<20ms", paths="/100KB.txt")
    webdyno.compare("nginx", "apache-event", vary={"load.protocol": "h2c", "load.connections": 8})
    searched, varied = asked
    assert searched.capacity
    assert searched.capacity.slo == ["p99<20ms"]
    assert searched.load.paths == ["/100KB.txt"]
    assert varied.factors == {"load.protocol": ["h2c"], "load.connections": [8]}


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"settings": {"load.conections": 16}}, r"settings\['load.conections'\]: unknown key"),
    ({"settings": {"load.": 16}}, "no dotted key"),
    ({"site": "nowhere"}, "there is no site named 'nowhere'"),
    ({"time": "soon"}, "time='soon': "),
    ({"own": {"dir": "x"}}, "is for a system of your own"),
]


@pytest.mark.parametrize(("keywords", "reported"), REFUSED)
def test_what_cannot_be_is_refused_with_its_keyword(
    keywords: dict[str, Any], reported: str
) -> None:
    with pytest.raises(UserError, match=reported):
        webdyno.compare("nginx", "apache-event", **keywords)


def test_a_keyword_that_there_is_not_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="there is no keyword budgt"):
        webdyno.compare("nginx", "nginx", budgt=3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r'is a setting: settings=\{"load.connections": …\}'):
        webdyno.compare("nginx", "nginx", connections=16)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="did you mean time"):
        webdyno.compare("nginx", "nginx", times="1m")  # type: ignore[call-arg]


def test_what_is_reported_goes_where_it_is_wanted(capsys: pytest.CaptureFixture[str]) -> None:
    reported: list[str] = []
    api._caller({"notify": reported.append}).notify("a line")
    api._caller({"notify": None}).notify("another")
    assert (reported, capsys.readouterr().err) == (["a line"], "")
    api._caller({}).notify("on standard error")
    assert capsys.readouterr().err == "on standard error\n"


@pytest.mark.usefixtures("asked")
def test_ctrl_c_is_raised_once_it_is_reported_what_is_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run = simulated_run({"nginx": SimulatedVariant(), "apache-event": SimulatedVariant()}, rounds=1)
    run.stored(tmp_path / "half")
    half = MeasuredRun(RunFolder.open(tmp_path / "half"), "interrupted")
    monkeypatch.setattr(api, "measure_again", lambda *_: half)
    reported: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        webdyno.compare("nginx", "apache-event", notify=reported.append)
    assert reported[-1].startswith(f"interrupted; every finished slot is kept in {tmp_path}/half")


KEYS = """
import ctypes
from webdyno.interfaces.python.api import CallOptions, Options
libc = ctypes.CDLL(None)
ADD_KEY, KEYCTL, JOIN, SEARCH, SESSION = 248, 250, 1, 10, -3
libc.syscall(KEYCTL, JOIN, None)
libc.syscall(ADD_KEY, b"user", b"webdyno-test", b"secret", 6, SESSION)
def is_there():
    return libc.syscall(KEYCTL, SEARCH, SESSION, b"user", b"webdyno-test", 0) > 0
before = is_there()
CallOptions.of({}, Options)
print(before, is_there())
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, whose keys others would have")
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="has numbers of x86-64's system calls")
def test_programs_of_others_have_no_keys_of_root_s_session() -> None:
    done = subprocess.run(
        [sys.executable, "-c", KEYS], capture_output=True, text=True, check=True, timeout=60
    )
    if done.stdout.startswith("False"):
        pytest.skip("this sandbox has no keyrings")
    assert done.stdout == "True False\n"
