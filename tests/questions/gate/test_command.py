"""`webdyno gate`: what is tolerated, what needs no measurement, and what CI finds afterwards."""

import os
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from e2e.own import commit
from evidence.histories import history_of
from webdyno.core.errors import Exit, OperationError, UserError
from webdyno.core.experiment import Experiment
from webdyno.interfaces.cli import run_command_line
from webdyno.interfaces.cli.flags import RunFlags
from webdyno.interfaces.cli.progress import at_terminal
from webdyno.questions.gate.experiment import tolerances
from webdyno.questions.gate.settings import GateSettings
from webdyno.systems.changes import nothing_to_measure
from webdyno.systems.repository import Repository

CALLER = at_terminal(RunFlags())


@pytest.fixture
def wanted(monkeypatch: pytest.MonkeyPatch) -> list[Experiment]:
    """The experiments that would be measured: nothing is."""
    wanted: list[Experiment] = []

    def measured(_: str, experiment: Experiment, *__: object) -> None:
        wanted.append(experiment)
        raise OperationError("enough is known")

    monkeypatch.setattr("webdyno.launch.measure.measure_again", measured)
    return wanted


ASKED = ("gate", "--base=nginx", "--head=apache-event", "--site=static")
"""For what needs no revisions."""


def test_limits_that_are_given_stand_for_all() -> None:
    assert tolerances([], CALLER) == {}
    assert tolerances(["p99 > +20%", "throughput<-5%"], CALLER) == pytest.approx(
        {"throughput_rps": 0.05, "latency_p99_us": 0.2}
    )
    assert tolerances(["latency_p50_us > +10%"], CALLER) == {"latency_p50_us": 0.1}


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["five"], "--fail-if five: should look like METRIC > "),
        (["cpu > +0%"], "should be from 0.1% to 200%|that would be better"),
        (["cpu > +500%"], "should be from 0.1% to 200%"),
        (["speed > +5%"], "there is no metric 'speed'"),
        (["cpu > +5%", "server_cpu_us > +6%"], "was said twice"),
        (["throughput > +5%"], "that would be better, .* such as 'throughput < -5%'"),
        (["head.cpu > +5%"], "omit head"),
    ],
)
def test_what_is_no_tolerance_is_refused(texts: list[str], said: str) -> None:
    with pytest.raises(UserError, match=said):
        tolerances(texts, CALLER)


@given(st.lists(st.text(max_size=12), max_size=4))
def test_any_words_are_tolerances_or_a_mistake(texts: list[str]) -> None:
    with suppress(UserError):
        assert bool(tolerances(texts, CALLER)) is bool(texts)


def test_documentation_is_known_by_name() -> None:
    said = nothing_to_measure(["README.md", "docs/guide.rst", "LICENSE", "sub/NEWS.md"])
    assert said
    assert said.startswith("only documentation changed (README.md, docs/guide.rst, LICENSE and 1")
    assert nothing_to_measure(["README.md", "requirements.txt"]) is None
    assert nothing_to_measure(["docs/index.html"]) is None
    assert nothing_to_measure(["LICENSE-MIT", "COPYING.LESSER", "CHANGES.txt"])
    for code in (
        "CHANGES.rb",
        "AUTHORS.php",
        "CHANGES.PHP",
        "AUTHORS-CGI",
        "COPYING.so",
        "LICENSES/server.py",
    ):
        assert nothing_to_measure([code]) is None


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (["webdyno.toml"], "only webdyno.toml changed: nothing to measure"),
        (["tests/test_a.py", "web/a.spec.ts", "a_test.go"], "only tests changed (tests/test_a.py,"),
        ([".github/workflows/gate.yml"], "only CI's files changed (.github/workflows/gate.yml)"),
        (["README.md", "webdyno.toml"], "only documentation and webdyno.toml changed (README.md,"),
        (["tests/server.so"], None),
        (["latest.py"], None),
        (["attest/a.py"], None),
        (["a.github/x"], None),
        (["public/test/index.html"], None),
        (["tests/unit/UserTest.php", "tests/conftest.py"], "only tests changed"),
        (["src/spec/router.ts"], None),
        (["lib/test/pool.js"], None),
        (["app/test/test_slow.py"], None),
        (["tests/helpers.py"], None),
        (["e2e/crypto.go"], None),
        ([".github/server.py"], None),
        (["LICENSE-CGI"], None),
    ],
)
def test_what_no_request_can_notice_is_known_by_name(changed: list[str], said: str | None) -> None:
    found = nothing_to_measure(changed)
    assert found == said if said is None else found is not None and found.startswith(said)


def test_nothing_changed_needs_no_measurement(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(["gate", "--base", "main"]) == Exit.OK
    assert "PASS: nothing changed" in capsys.readouterr().out
    assert repository.exists()


def test_documentation_needs_no_measurement_and_ci_hears_of_it(
    repository: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (repository / "README.md").write_text("A better text.\n")
    (repository / "docs").mkdir()
    (repository / "docs/new.md").write_text("New.\n")
    summary = repository / ".git/summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    assert run_command_line(["gate", "--base", "main", "-o", ".git/ci"]) == Exit.OK
    said = "only documentation changed (README.md, docs/new.md): nothing to measure"
    printed = capsys.readouterr().out
    assert f"PASS: {said}" in " ".join(printed.split())
    assert f"::notice title=webdyno gate%3A pass::{said}" in printed
    assert said in summary.read_text().replace("\\", "")
    found = {it.name for it in (repository / ".git/ci").iterdir()}
    assert {"gate.md", "gate.json", "junit.xml", "bencher.json"} <= found


def test_what_is_left_for_ci_is_no_change(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["gate", "--base", "main", "-o", "results"]
    assert run_command_line(asked) == Exit.OK
    assert (repository / "results/junit.xml").is_file()
    assert run_command_line(asked) == Exit.OK
    assert capsys.readouterr().out.count("nothing changed") == 2


def test_a_link_to_a_changed_file_is_changed(repository: Path) -> None:
    (repository / "lib").mkdir()
    (repository / "lib/app.py").symlink_to("../impl.md")
    (repository / "main.py").symlink_to("lib/app.py")
    (repository / "impl.md").write_text("print()\n")
    commit(repository)
    (repository / "impl.md").write_text("sleep()\n")
    around = Repository.around(repository, "")
    found = around.changed_files(around.revision("HEAD", ""), around.revision(".", ""))
    assert found == ["impl.md", "lib/app.py", "main.py"]
    assert nothing_to_measure(found) is None
    assert nothing_to_measure(["engine.md/"]) is None, "a submodule"


def test_changed_files_hold_new_moved_and_deleted_ones(repository: Path) -> None:
    (repository / "app.py").rename(repository / "main.py")
    (repository / "sub").mkdir()
    (repository / "sub/é.py").write_text("")
    around = Repository.around(repository / "sub", "--base")
    found = around.changed_files(around.revision("main", ""), around.revision(".", ""))
    assert found == ["app.py", "main.py", "sub/é.py"]


@pytest.mark.parametrize("revision", ["nowhere", "--all", "main^{tree}", ""])
def test_a_revision_that_is_not_there_is_named(
    repository: Path, revision: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(["gate", f"--base={revision}"]) == Exit.USER_ERROR
    said = capsys.readouterr().err
    assert f"--base: {repository} has no revision {revision!r}" in said


def test_outside_of_a_repository_there_are_no_revisions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_command_line(["gate"]) == Exit.USER_ERROR
    assert "is in no Git repository" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        ('path = "/x"\nbody = "x"', 'GET has no body; give method = "POST"'),
        ('name = "x"', "path is missing"),
    ],
)
def test_requests_that_are_wrong_are_refused_by_their_line(
    repository: Path, request_: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (repository / "webdyno.toml").write_text(f'[app]\nstart = "x"\n\n[[requests]]\n{request_}\n')
    (repository / "app.py").write_text("")
    assert run_command_line(["gate", "--base", "main"]) == Exit.USER_ERROR
    printed = capsys.readouterr().err
    assert f"{repository}/webdyno.toml:4: " in printed
    assert said in printed


def test_a_file_of_requests_says_which_endpoints_there_are(
    repository: Path, wanted: list[Experiment], capsys: pytest.CaptureFixture[str]
) -> None:
    """In the place of those of webdyno.toml."""
    (repository / "webdyno.toml").write_text('[app]\nstart = "x"\n[[requests]]\npath = "/old"\n')
    (repository / "new.http").write_text("GET /one\n\n###\nGET /two\n")
    assert run_command_line([*ASKED, "--traffic=new.http"]) == Exit.FAILED
    assert run_command_line([*ASKED, "--traffic=curl http://localhost/three"]) == Exit.FAILED
    assert capsys.readouterr().err.count("enough is known") == 2
    assert [it.path for it in wanted[0].requests] == ["/one", "/two"]
    assert len(wanted[0].factors["endpoint"]) == 2
    assert [it.path for it in wanted[1].requests] == ["/three"]
    assert run_command_line([*ASKED, "--traffic=new.http", "--path=/"]) == Exit.USER_ERROR
    assert "leave it out" in capsys.readouterr().err


@pytest.mark.timeout(60)
def test_a_file_that_is_no_history_is_refused_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "old.json").write_text('{"format": 1}')
    os.mkfifo(tmp_path / "pipe")
    for name, said in (
        ("old.json", "old.json:1: is no gate that webdyno added"),
        ("pipe", "--history: pipe is not a regular file"),
        (".", "--history: . is not a regular file"),
    ):
        assert run_command_line([*ASKED, "--history", name]) == Exit.USER_ERROR
        assert said in capsys.readouterr().err
    assert run_command_line(["gate", "--bisect=a..b", "--history=new.jsonl"]) == Exit.USER_ERROR
    assert "omit it" in capsys.readouterr().err


def test_a_history_is_shown_and_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    gates = history_of({("/", "server_cpu_us"): [1.0, 1.01, 0.99, 1.0, 1.2, 1.21, 1.19]})
    lines = "".join(gate.model_dump_json() + "\n" for gate in gates)
    (tmp_path / "performance.jsonl").write_text(lines)
    assert run_command_line(["report", "performance.jsonl", "--format", "html"]) == Exit.OK
    said = capsys.readouterr()
    assert "1 CHANGE" in said.out
    assert "written: performance.html" in said.err
    assert "History" in (tmp_path / "performance.html").read_text()
    for more, fault in (
        (["performance.jsonl"], "give it alone"),
        (["--format", "pdf"], "--format pdf: a history is written as html"),
    ):
        assert run_command_line(["report", "performance.jsonl", *more]) == Exit.USER_ERROR
        assert fault in capsys.readouterr().err


def test_one_of_the_requests_can_be_asked_about_alone(
    repository: Path, wanted: list[Experiment], capsys: pytest.CaptureFixture[str]
) -> None:
    (repository / "new.http").write_text("GET /one\n\n###\nGET /two\n")
    assert run_command_line([*ASKED, "--traffic=new.http", "--endpoint=/two"]) == Exit.FAILED
    assert wanted[0].factors == {"endpoint": ["/two"]}
    assert run_command_line([*ASKED, "--traffic=new.http", "--endpoint=/too"]) == Exit.USER_ERROR
    assert "--endpoint /too: no request is called so; did you mean /two" in capsys.readouterr().err
    assert run_command_line([*ASKED, "--endpoint=/two"]) == Exit.USER_ERROR
    assert "--endpoint /two: no request is called so" in capsys.readouterr().err


@pytest.mark.usefixtures("repository")
def test_a_gate_that_confirms_has_half_of_the_time_for_each_measurement(
    wanted: list[Experiment],
) -> None:
    run_command_line([*ASKED, "--time=4m", "--confirm"])
    run_command_line([*ASKED, "--time=4m"])
    confirming, plain = wanted
    assert confirming.measure.budget_s == 120
    assert plain.measure.budget_s == 240
    gate = confirming.asks_as(GateSettings)
    assert gate.confirm
    assert gate.repeat.startswith("webdyno gate --base nginx --head apache-event")


def limits_in(experiment: Experiment) -> dict[str, float]:
    return {**experiment.asks_as(GateSettings).worse_than}


def test_limits_in_webdyno_toml_hold_unless_flags_name_others(
    repository: Path, wanted: list[Experiment]
) -> None:
    (repository / "webdyno.toml").write_text('[gate.worse_than]\nserver_cpu_us = "20%"\n')
    run_command_line([*ASKED])
    run_command_line([*ASKED, "--fail-if=p99 > +10%"])
    by_file, by_flag = map(limits_in, wanted)
    assert by_file == {"server_cpu_us": 0.2}
    assert by_flag == pytest.approx({"latency_p99_us": 0.1})


@pytest.mark.usefixtures("repository")
def test_at_a_rate_a_gate_is_about_cpu_per_request(wanted: list[Experiment]) -> None:
    run_command_line([*ASKED])
    run_command_line([*ASKED, "--rate=300"])
    run_command_line([*ASKED, "--rate=300", "--fail-if=p99 > +10%"])
    full_speed, at_rate, by_latency = wanted
    assert full_speed.load.offered_rps is None
    assert set(limits_in(full_speed)) == {"server_cpu_us", "throughput_rps", "latency_p99_us"}
    assert (at_rate.load.loop, at_rate.load.offered_rps) == ("open", 300)
    assert at_rate.measure.decide_on == "server_cpu_us"
    assert limits_in(at_rate) == {"server_cpu_us": 0.05}
    assert at_rate.asks_as(GateSettings).repeat.endswith("--rate 300")
    assert limits_in(by_latency) == {"latency_p99_us": 0.1}


def test_a_rate_in_the_file_makes_the_same_gate(repository: Path, wanted: list[Experiment]) -> None:
    (repository / "webdyno.toml").write_text(
        '[app]\nstart = "x"\n[load]\nloop = "open"\nrate_per_s = 300\n'
    )
    run_command_line([*ASKED])
    run_command_line([*ASKED, "--rate=700"])
    assert [limits_in(experiment) for experiment in wanted] == [{"server_cpu_us": 0.05}] * 2
    assert [experiment.load.offered_rps for experiment in wanted] == [300, 700]


@pytest.mark.usefixtures("repository", "wanted")
@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--rate=500,2000"], "--rate 500,2000: a gate takes one rate, without commas"),
        (["--rate=0"], "--rate 0"),
        (["--rate="], "--rate"),
        (["--rate=fast"], "--rate fast"),
        (["--rate=300", "--set=load.loop=closed"], "is about the same setting"),
        (["--rate=300", "--fail-if=throughput < -5%"], "no limit on throughput"),
        (["--rate=300", "--target-is-mine"], "--rate is about servers here"),
    ],
)
def test_what_is_no_rate_is_refused(
    flags: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line([*ASKED, *flags]) == Exit.USER_ERROR
    assert says in " ".join(capsys.readouterr().err.split())


@pytest.mark.usefixtures("wanted")
def test_a_history_holds_gates_of_one_rate(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (past,) = history_of({("/", "server_cpu_us"): [1.0]})
    file = repository / "gates.jsonl"
    file.write_text(past.replace(reference="nginx", rate_rps=500.0).model_dump_json() + "\n")
    asked = [*ASKED, f"--history={file}"]
    for flags, now in ((["--rate=300"], "at 300 requests/s"), ([], "at full speed")):
        assert run_command_line([*asked, *flags]) == Exit.USER_ERROR
        said = " ".join(capsys.readouterr().err.split())
        assert f"this gate is {now}, and the history at 500 requests/s" in said
    assert run_command_line([*asked, "--rate=500"]) == Exit.FAILED  # nothing is measured here
