"""What a run says and has kept may be somebody else's: it is asked about before it is used."""

import os
from pathlib import Path

import pytest

from builders import run_head
from launch.answering import OF_A_CATALOGUE, TRUST, caller, make_run, own
from webdyno.cluster.agent import parcel_of, unpack_parcel
from webdyno.config import Catalogue, CommandLine, Draft
from webdyno.config.reading import TomlFile
from webdyno.core.errors import OperationError, UserError
from webdyno.core.experiment import Experiment, State
from webdyno.core.request import WrittenRequest
from webdyno.core.run import CATALOGUE_FOLDER
from webdyno.core.session import Values
from webdyno.interfaces.python.api import resume
from webdyno.launch import caller as callers
from webdyno.launch.arrangement import checked_with_own
from webdyno.launch.dispatch import begun_in
from webdyno.launch.foreign import agree_to_use, know_run
from webdyno.measure.folder import RunFolder
from webdyno.measure.repeat import keep_for_repeating, kept_catalogue


def experiment_of(**changes: object) -> Experiment:
    head = run_head({"a": "nginx", "b": "apache-event"})
    return head.experiment.model_copy(update=changes)


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
