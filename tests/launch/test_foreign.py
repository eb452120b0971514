"""A catalog is code, and so is a run of somebody's: each command asks once before it uses one.

Nothing of it is built, run or sent before, nor without a yes; commands that only read don't ask.
"""

import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from builders import SimulatedVariant, run_head, simulated_run
from launch.answering import OF_A_CATALOGUE, Terminal, caller, own
from webdyno.cluster.agent import parcel_of, unpack_parcel
from webdyno.config import Catalogue, CommandLine, Draft
from webdyno.config.catalogue import BUILT_IN
from webdyno.config.reading import TomlFile
from webdyno.core.errors import Exit, OperationError, UserError
from webdyno.core.experiment import Experiment, State
from webdyno.core.request import WrittenRequest
from webdyno.core.run import CATALOGUE_FOLDER
from webdyno.core.session import Values
from webdyno.interfaces.cli import run_command_line
from webdyno.interfaces.python.api import resume, run_experiment
from webdyno.launch import caller as callers
from webdyno.launch.arrangement import checked_with_own
from webdyno.launch.dispatch import begun_in
from webdyno.launch.foreign import agree_to_use, know_run
from webdyno.measure.folder import RunFolder
from webdyno.measure.repeat import keep_for_repeating, kept_catalogue

STOPPED = "stopped before anything is run"
TRUST = "this isn't webdyno's own, and is code"


@pytest.fixture
def asked(answers: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[list[str]]:
    """Where somebody answers yes, each question; nothing is installed, started or measured."""
    questions: list[str] = []

    def answer(question: str = "") -> str:
        questions.append(question)
        return "y"

    def stop(*_: object, **__: object) -> None:
        raise UserError(STOPPED)

    answers.chdir(tmp_path)
    answers.setattr("sys.stdin", Terminal("y"))
    answers.setattr("builtins.input", answer)
    for place in ("launch.measure.provide", "launch.consent.provide"):
        answers.setattr(f"webdyno.{place}", lambda *_: None)
    for place in ("launch.measure._measure_in", "servers.starting.open_stack"):
        answers.setattr(f"webdyno.{place}", stop)
    answers.setattr("webdyno.interfaces.ui.app.make_app", stop)
    yield questions
    assert not (tmp_path / "ran").exists()


RUNS = {"checking": "checking; touch ran"}


def make_catalog(folder: Path) -> Catalogue:
    """Make one whose every command leaves a trace, with an experiment that names others."""
    experiment = folder / "experiments/evil.toml"
    experiment.parent.mkdir(parents=True)
    experiment.write_text(OF_A_CATALOGUE.format(system="cmd:touch ran"))
    return own(folder, **RUNS)


def make_run(folder: Path, catalogue: Catalogue) -> None:
    """Make a run of stacks of a catalog, as somebody may have left it."""
    variants = {name: SimulatedVariant(stack=name) for name in ("mine", "nginx")}
    run = simulated_run(variants, rounds=1)
    RunFolder.create(folder, run.head).close()
    keep_for_repeating(folder, run.head.experiment, catalogue)


WITH_A_CATALOG = [
    "up mine",
    "compare mine nginx --time 5s",
    "run evil --full",
    "gate --base mine --head nginx --time 5s",
    "capacity mine --time 60s",
    "doctor --install mine",
    "ui",
]
OF_A_RUN = [
    "resume theirs",
    "explain theirs",
    "run theirs/experiment.toml --catalog theirs/catalog --full",
]
COMMANDS = [*(f"{words} --catalog cat" for words in WITH_A_CATALOG), *OF_A_RUN]


@pytest.mark.parametrize(
    "words", [*(f"{words} --catalog cat" for words in WITH_A_CATALOG), *OF_A_RUN]
)
def test_each_command_asks_once(
    words: str, asked: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    catalogue = make_catalog(tmp_path / "cat")
    make_run(tmp_path / "theirs", catalogue)
    run_command_line(words.split())
    reported = capsys.readouterr().err
    assert len(asked) == 1, reported
    assert reported.count(TRUST) == 1
    assert "echo checking; touch ran" in reported
    assert STOPPED in reported or words.startswith("doctor")
    callers._AGREED.clear()  # as in another process
    shutil.rmtree(tmp_path / "runs", ignore_errors=True)
    run_command_line(words.split())
    assert len(asked) == 1


@pytest.mark.parametrize(
    "words", [*(f"{words} --catalog cat" for words in WITH_A_CATALOG), *OF_A_RUN]
)
@pytest.mark.parametrize("answer", ["n", None])
def test_nothing_is_used_without_a_yes(
    words: str,
    answer: str | None,
    asked: list[str],
    answers: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if words.startswith("ui") and answer is None:
        pytest.skip("pages show it, and begin nothing of it")
    catalogue = make_catalog(tmp_path / "cat")
    make_run(tmp_path / "theirs", catalogue)
    answers.setattr("sys.stdin", Terminal(answer))
    answers.setattr("builtins.input", lambda *_: "n")
    assert run_command_line(words.split()) == Exit.USER_ERROR
    reported = capsys.readouterr().err
    assert TRUST in reported
    assert "since you didn't agree" in reported if answer else "add --yes to agree" in reported
    assert STOPPED not in reported
    assert not asked
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize("words", ["list", "list sites", "list mine"])
def test_who_only_reads_is_not_asked(words: str, asked: list[str], tmp_path: Path) -> None:
    make_catalog(tmp_path / "cat")
    assert run_command_line([*words.split(), "--catalog", "cat"]) in {None, Exit.OK}
    assert not asked


@pytest.mark.usefixtures("answers")
@pytest.mark.parametrize("system", ["rev:HEAD", "conf:nginx.conf", "image:evil.yaml#web"])
def test_nothing_of_an_experiment_is_built_before(
    system: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    make_catalog(tmp_path / "cat")
    text = OF_A_CATALOGUE.format(system=system)
    (tmp_path / "cat/experiments/evil.toml").write_text(text)
    (tmp_path / "copy/catalog").mkdir(parents=True)
    (tmp_path / "copy/experiment.toml").write_text(text)

    def build(*_: object, **__: object) -> None:
        raise AssertionError("something was built")

    monkeypatch.setattr("webdyno.systems.variants.resolve", build)
    for words in (["evil", "--catalog", "cat"], ["copy/experiment.toml"]):
        assert run_command_line(["run", *words]) == Exit.USER_ERROR


@pytest.mark.usefixtures("answers")
def test_the_question_is_short_and_shows_both_ends_of_what_is_long(tmp_path: Path) -> None:
    catalogue = own(tmp_path / "mine", checking=f"harmless # {'x' * 500}\\nrm -rf everything")
    with pytest.raises(UserError, match=r"echo harmless # x+ … \d+ letters … x+ ⏎ rm -rf every"):
        agree_to_use(catalogue, caller())
    many = ", ".join(f'["echo", "{number}"]' for number in range(20))
    file = tmp_path / "mine/services/mine/service.toml"
    file.write_text(f"before_start = [{many}]\n{file.read_text()}")
    with pytest.raises(UserError, match=r"--foreground\n(.|\n)*and 18 more\nadd --yes"):
        agree_to_use(Catalogue.load([tmp_path / "mine"]), caller())


@pytest.mark.usefixtures("answers")
def test_a_yes_is_for_the_content_wherever_it_lies(tmp_path: Path) -> None:
    agree_to_use(own(tmp_path / "mine"), caller(yes=True))
    agree_to_use(own(tmp_path / "mine"), caller())
    agree_to_use(own(tmp_path / "elsewhere"), caller())
    for kind in ("services", "stacks", "sites", "experiments"):
        file = tmp_path / f"mine/{kind}/mine/new"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("new")
        with pytest.raises(UserError, match=TRUST):
            agree_to_use(Catalogue.load([tmp_path / "mine"]), caller())
        file.unlink()
    agree_to_use(Catalogue.load([tmp_path / "mine"]), caller())


def test_a_yes_is_for_the_user_who_gave_it(answers: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As where sudo leaves root the user's home."""
    answers.delenv("SUDO_UID", raising=False)
    answers.setattr(os, "geteuid", lambda: 12345)
    answers.setattr("webdyno.core.whose.trusted_users", lambda: {0, os.getuid(), 12345})
    catalogue = own(tmp_path / "mine")
    agree_to_use(catalogue, caller(yes=True))
    agree_to_use(catalogue, caller())
    answers.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(UserError, match="can run commands as"):
        agree_to_use(catalogue, caller())
    answers.setenv("SUDO_UID", "12345")
    with pytest.raises(UserError, match="can run commands as"):
        agree_to_use(catalogue, caller())


@pytest.mark.usefixtures("answers")
def test_copies_of_webdynos_own_need_no_yes_unless_they_were_changed(tmp_path: Path) -> None:
    """A run's folder keeps such copies."""
    for part in ("services/php-fpm", "services/php", "services/nginx", "stacks/nginx-phpfpm"):
        shutil.copytree(BUILT_IN / part, tmp_path / part)
    agree_to_use(Catalogue.load([tmp_path]), caller())
    (tmp_path / "services/php/php.ini.j2").write_text("auto_prepend_file = /tmp/x")
    with pytest.raises(UserError, match=TRUST):
        agree_to_use(Catalogue.load([tmp_path]), caller())


def experiment_of(**changes: object) -> Experiment:
    head = run_head({"a": "nginx", "b": "apache-event"})
    return head.experiment.model_copy(update=changes)


@pytest.mark.usefixtures("answers")
def test_nothing_is_left_out_of_the_sum(tmp_path: Path) -> None:
    """Such as folders that are links, or that can be entered but not listed."""
    catalogue = own(tmp_path)
    (program := tmp_path / "services/mine/program").mkdir()
    for name in ("one", "other"):
        (program / name).mkdir()
        (program / name / "same").write_text(name)
    (link := program / "link").symlink_to("one")
    agree_to_use(catalogue, caller(yes=True))
    agree_to_use(catalogue, caller())
    link.unlink()
    link.symlink_to("other")
    with pytest.raises(UserError, match=TRUST):
        agree_to_use(catalogue, caller())
    (tmp_path / "services").rename(elsewhere := tmp_path.parent / f"{tmp_path.name}-elsewhere")
    (tmp_path / "services").symlink_to(elsewhere)
    with pytest.raises(UserError, match="services leads out of"):
        agree_to_use(Catalogue.load([tmp_path]), caller(yes=True))
    (tmp_path / "services").unlink()
    elsewhere.rename(tmp_path / "services")
    if os.geteuid() != 0:
        program.parent.chmod(0o300)
        with pytest.raises(UserError, match="can't be listed"):
            agree_to_use(Catalogue.load([tmp_path]), caller())
        program.parent.chmod(0o700)


@pytest.mark.usefixtures("answers")
def test_what_a_run_says_is_asked_about(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its commands, for the folder that they run in, and what of yours it sends."""
    monkeypatch.chdir(tmp_path)
    said = experiment_of(
        state=State(before_round=["./reset.sh"], after_round=["true"]),
        values={"k": Values(file=f"{tmp_path}/rows.csv")},
        login=[WrittenRequest(path="/", headers={"X": "${env:HOME}"})],
    )
    with pytest.raises(UserError) as refusal:
        agree_to_use(Catalogue.load(), caller(), said, tmp_path)
    for text in (
        "state.before_round: ./reset.sh",
        "state.after_round: true",
        "rows.csv, which is a file of yours",
        "sends ${env:HOME}, which is a variable",
    ):
        assert text in str(refusal.value)
    agree_to_use(Catalogue.load(), caller(yes=True), said, tmp_path)
    part = experiment_of(state=State(after_round=["true"]))
    agree_to_use(Catalogue.load(), caller(), part, tmp_path)  # as `explain` asks of one variant
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    with pytest.raises(UserError, match=r"reset\.sh"):
        agree_to_use(Catalogue.load(), caller(), said, tmp_path)
    agree_to_use(Catalogue.load(), caller(), experiment_of(), tmp_path)


@pytest.mark.usefixtures("answers")
def test_what_you_named_and_began_is_not_asked_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", "a-token-of-mine")
    system = {"stack": "cmd:./server", "environment": {"KEY": "${env:TOKEN}"}}
    written = {
        "title": "t",
        "question": "q?",
        "variants": {"a": system, "b": {"stack": "cmd:./other"}},
        "load": {"paths": ["/"], "headers": {"X": "${env:TOKEN}"}},
        "state": {"before_round": ["true"]},
    }
    draft = Draft.of(CommandLine(written, {}), [])
    experiment, joined = checked_with_own(draft, Catalogue.load(), tmp_path, caller())
    (run := tmp_path / "run").mkdir()
    keep_for_repeating(run, experiment, joined)
    with pytest.raises(UserError, match=r"\./server"):
        agree_to_use(kept_catalogue(run), caller(), experiment, run)
    know_run(run, experiment, joined, caller())
    callers._AGREED.clear()  # as in another process
    agree_to_use(kept_catalogue(run), caller(), experiment, run)
    file = run / "catalog/stacks"
    (file / "more").write_text("changed")
    with pytest.raises(UserError, match=TRUST):
        agree_to_use(kept_catalogue(run), caller(), experiment, run)
    with pytest.raises(OperationError, match="others have changed what is kept"):
        know_run(run, experiment, joined, caller())


@pytest.mark.usefixtures("answers")
def test_agents_use_only_what_was_agreed_to_before(tmp_path: Path) -> None:
    agent = replace(caller(yes=True), allows_commands=False)
    catalogue = own(tmp_path / "mine")
    with pytest.raises(UserError, match="nobody has agreed to that in a terminal"):
        agree_to_use(catalogue, agent)
    agree_to_use(catalogue, caller(yes=True))
    agree_to_use(catalogue, agent)


@pytest.mark.usefixtures("asked")
@pytest.mark.parametrize("state", [State(), State(before_round=["touch ran"])])
def test_agents_begin_nothing_of_a_run_that_runs_commands(tmp_path: Path, state: State) -> None:
    """Whether or not somebody agreed to it."""
    written = {"title": "t", "question": "q?", "load": {"paths": ["/"]}}
    variants = {name: {"stack": f"cmd:touch {name}"} for name in ("a", "ran")}
    draft = Draft.of(CommandLine({**written, "variants": variants}, {}), [])
    experiment, joined = checked_with_own(draft, Catalogue.load(), tmp_path, caller())
    head = run_head({"a": "nginx", "b": "nginx"})
    experiment = experiment.model_copy(update={"state": state})
    RunFolder.create(tmp_path / "run", head.model_copy(update={"experiment": experiment})).close()
    keep_for_repeating(tmp_path / "run", experiment, joined)
    know_run(tmp_path / "run", experiment, joined, caller())
    with pytest.raises(UserError, match=r"--allow-commands"):
        resume(tmp_path / "run", allow_commands=False, yes=True)


def test_from_python_it_takes_a_yes_as_well(asked: list[str], tmp_path: Path) -> None:
    make_catalog(tmp_path / "cat")
    with pytest.raises(UserError, match=TRUST):
        run_experiment("evil", catalog=tmp_path / "cat")
    with pytest.raises(UserError, match=STOPPED):
        run_experiment("evil", catalog=tmp_path / "cat", yes=True, full=True)
    assert not asked


@pytest.mark.usefixtures("answers")
def test_a_fleet_s_run_is_asked_about_before_hosts_get_it(tmp_path: Path) -> None:
    make_run(tmp_path / "theirs", own(tmp_path / "cat"))
    (tmp_path / "theirs/fleet.json").write_text('{"name": "t", "replicates": 2}')
    with pytest.raises(UserError, match=TRUST):
        begun_in(tmp_path / "theirs", caller())
    assert begun_in(tmp_path / "theirs", caller(yes=True)).runs == 2


@pytest.mark.usefixtures("answers")
def test_hosts_get_what_was_agreed_to(open_folder: Path, tmp_path: Path) -> None:
    """Whoever may write there changes it meanwhile."""
    make_run(fleet := open_folder / "theirs", own(tmp_path / "cat"))
    (fleet / "fleet.json").write_text('{"name": "t", "replicates": 2}')
    fleet.chmod(0o777)
    dispatched = begun_in(fleet, caller(yes=True))
    service = "catalog/services/mine/service.toml"
    before, asked = (fleet / service).read_text(), (fleet / "experiment.toml").read_text()
    (fleet / service).write_text(before.replace("checking", "something else"))
    (fleet / "experiment.toml").write_text(f'state.before_round = ["evil"]\n{asked}')
    unpack_parcel(parcel_of(fleet, None, dispatched.whole), tmp_path / "host")
    assert (tmp_path / "host" / service).read_text() == before
    assert "evil" not in (tmp_path / "host/experiment.toml").read_text()


@pytest.mark.timeout(60)
@pytest.mark.usefixtures("answers")
def test_a_pipe_in_the_catalog_of_a_run_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    make_run(tmp_path / "theirs", own(tmp_path / "cat"))
    os.mkfifo(tmp_path / "theirs" / CATALOGUE_FOLDER / "stacks/mine/pipe")
    with pytest.raises(UserError, match="pipe is no file and no folder"):
        resume(tmp_path / "theirs")


@pytest.mark.usefixtures("answers")
def test_a_file_that_you_name_yourself_needs_no_yes(tmp_path: Path) -> None:
    (file := tmp_path / "mine.toml").write_text(OF_A_CATALOGUE.format(system="cmd:touch ran"))
    draft = Draft.of(TomlFile(file), [])
    experiment, joined = checked_with_own(draft, Catalogue.load(), tmp_path, caller())
    agree_to_use(joined, caller(), experiment, tmp_path)


def no_home() -> Path:
    raise RuntimeError("Could not determine home directory.")


def test_where_nothing_can_be_kept_it_goes_on(
    answers: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As in a home that is read-only, or where there is none."""
    answers.setenv("XDG_STATE_HOME", "/proc/nowhere")
    agree_to_use(one := own(tmp_path / "one"), caller(yes=True))
    answers.setenv("XDG_STATE_HOME", "")
    answers.setattr(Path, "home", no_home)
    agree_to_use(other := own(tmp_path / "other", checking="other"), caller(yes=True))
    reported = capsys.readouterr().err
    assert reported.count("what you agreed to can't be kept, and will be asked again") == 2
    for catalogue in (one, other):
        agree_to_use(catalogue, caller())
