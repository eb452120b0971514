"""No files and variables of yours are sent without a yes."""

from dataclasses import replace
from pathlib import Path

import pytest

from builders import SimulatedVariant, simulated_run
from e2e.commands import webdyno_here
from launch.answering import OF_A_CATALOGUE, STATEFUL, caller, own
from webdyno.config import Catalogue, CommandLine, Draft
from webdyno.config.reading import TomlFile
from webdyno.core.errors import Exit, UserError
from webdyno.core.experiment import Experiment
from webdyno.core.request import WrittenRequest
from webdyno.core.session import Values
from webdyno.interfaces.cli import run_command_line
from webdyno.launch.arrangement import checked_with_own
from webdyno.launch.caller import _AGREED
from webdyno.launch.sending import agree_to_sending, project_around
from webdyno.measure.folder import RunFolder
from webdyno.measure.repeat import keep_for_repeating, kept_catalogue


@pytest.mark.usefixtures("answers")
@pytest.mark.parametrize("command", ["resume", "explain"])
def test_what_a_run_has_sent_of_yours_is_asked_for(tmp_path: Path, command: str) -> None:
    """Who made the folder named it, and the servers that it goes to."""
    run = simulated_run({"nginx": SimulatedVariant(), "apache-event": SimulatedVariant()}, rounds=1)
    (tmp_path / "rows.csv").write_text("name\nann\n")
    rows = f"{tmp_path}{'/.' * 100}/rows.csv"
    experiment = run.head.experiment.model_copy(
        update={
            "values": {"k": Values(file=rows)},
            "login": [WrittenRequest(path="/", headers={"X": "${env:HOME} ${env:USER}"})],
        }
    )
    head = run.head.model_copy(update={"experiment": experiment})
    RunFolder.create(tmp_path / "theirs", head).close()
    done = webdyno_here(command, "theirs", folder=tmp_path)
    assert done.returncode == Exit.USER_ERROR
    for reported in ("/./rows.csv is a", "${env:HOME} is a", "${env:USER} is a", "add --yes"):
        assert reported in done.stderr


@pytest.mark.usefixtures("answers")
def test_what_is_sent_is_agreed_to_for_each_stack(tmp_path: Path) -> None:
    """Rows that your own server gets are no other one's; a run of yours goes on unasked."""
    (tmp_path / "rows.csv").write_text("name\nann\n")
    file = tmp_path / "experiment.toml"
    catalogue = own(tmp_path / "mine")
    sending = '[values.k]\nfile = "rows.csv"\neach = "turn"\n'

    def asked(system: str) -> Experiment:
        file.write_text(STATEFUL.replace("nginx", system) + sending)
        return Draft.of(TomlFile(file), []).check(catalogue)

    with pytest.raises(UserError, match=r"servers will be sent:\n  file = .*rows\.csv is a file"):
        agree_to_sending(asked("nginx"), catalogue, caller())
    asked("nginx")
    checked_with_own(Draft.of(TomlFile(file), []), catalogue, tmp_path, caller())
    _AGREED.clear()  # as in another process
    agree_to_sending(asked("nginx"), catalogue, caller())
    with pytest.raises(UserError, match=r"rows\.csv is a file of yours\nto mine"):
        agree_to_sending(asked("mine"), catalogue, caller())
    agree_to_sending(asked("mine"), catalogue, caller(yes=True))
    agree_to_sending(asked("mine"), catalogue, caller())
    with pytest.raises(UserError, match="to mine"):
        agree_to_sending(asked("mine"), own(tmp_path / "mine", checking="another"), caller())


@pytest.mark.usefixtures("answers")
def test_a_run_of_yours_goes_on_with_what_you_have_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", "a-token-of-mine")
    system = {"stack": "cmd:./server", "environment": {"KEY": "${env:TOKEN}"}}
    load = {"paths": ["/"], "headers": {"X": "${env:TOKEN}"}}
    variants = {"a": system, "b": {"stack": "cmd:./other"}}
    written = {"title": "t", "question": "q?", "variants": variants, "load": load}
    draft = Draft.of(CommandLine(written, {}), [])
    experiment, joined = checked_with_own(draft, Catalogue.load(), tmp_path, caller())
    (run := tmp_path / "run").mkdir()
    keep_for_repeating(run, experiment, joined)
    _AGREED.clear()  # as in another process
    agree_to_sending(experiment, kept_catalogue(run), caller())
    other = experiment.replace(load=experiment.load.replace(headers={"X": "${env:HOME}"}))
    with pytest.raises(UserError, match="HOME"):
        agree_to_sending(other, kept_catalogue(run), caller())


@pytest.mark.usefixtures("answers")
def test_an_experiment_of_a_copied_run_builds_and_sends_nothing_unasked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As docs/reference/run-folder.md has it; whoever began the run wrote its file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "copy/catalog/stacks").mkdir(parents=True)
    (tmp_path / "copy/rows").write_text("x")
    for system, more, said in (
        ("rev:HEAD", "", "built before you are asked"),
        ("nginx", 'login = [{path = "/", method = "POST", body_file = "rows"}]', "a file of yours"),
        ("nginx", 'load.headers.X = "${env:HOME}"', "is a variable of your environment"),
    ):
        written = OF_A_CATALOGUE.format(system=system).replace("cmd:touch ran", system)
        written = f"{more}{written}".replace('site = "own"', 'site = "static"')
        (tmp_path / "copy/experiment.toml").write_text(written)
        words = ["run", "copy/experiment.toml", "--catalog", "copy/catalog", "--full", "-o", "out"]
        assert run_command_line(words) == Exit.USER_ERROR
        assert said in capsys.readouterr().err
    draft = Draft.of(TomlFile(tmp_path / "copy/experiment.toml"), [])
    place = tmp_path / "copy"
    with pytest.raises(UserError, match=r"servers will be sent:\n  \$\{env:HOME\} is a variable"):
        checked_with_own(draft, Catalogue.load(), place, caller())
    assert checked_with_own(draft, Catalogue.load(), place, caller(yes=True))


@pytest.mark.parametrize(
    "sends",
    ['[[requests]]\npath = "/"\nbody_file = "id_rsa"', '[load.headers]\nCookie = "${env:COOKIE}"'],
)
def test_who_may_run_nothing_has_nothing_of_a_project_sent(tmp_path: Path, sends: str) -> None:
    """As an agent's tools, in a repository whose author chose the names."""
    (tmp_path / "webdyno.toml").write_text(f'[app]\nstart = "./s --f ${{env:X}}"\n{sends}\n')
    assert project_around(tmp_path, caller())
    with pytest.raises(UserError, match=r"which whoever started these tools has not allowed"):
        project_around(tmp_path, replace(caller(), allows_commands=False))
