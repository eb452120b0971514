"""A catalog is code, and so is a run of somebody's: each command asks once before it uses one.

Nothing of it is built, run or sent before, nor without a yes; commands that only read don't ask.
"""

import os
import shutil
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from launch.answering import OF_A_CATALOGUE, STOPPED, TRUST, Terminal, caller, make_run, own
from webdyno.config import Catalogue
from webdyno.config.catalogue import BUILT_IN
from webdyno.core.errors import Exit, UserError
from webdyno.core.files import state_folder
from webdyno.interfaces.cli import run_command_line
from webdyno.interfaces.python.api import run_experiment
from webdyno.launch import caller as callers
from webdyno.launch.foreign import agree_to_use

RUNS = {"checking": "checking; touch ran"}


def make_catalog(folder: Path) -> Catalogue:
    """Make one whose every command leaves a trace, with an experiment that names others."""
    experiment = folder / "experiments/evil.toml"
    experiment.parent.mkdir(parents=True)
    experiment.write_text(OF_A_CATALOGUE.format(system="cmd:touch ran"))
    return own(folder, **RUNS)


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


@pytest.mark.parametrize("words", COMMANDS)
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


@pytest.mark.parametrize("words", COMMANDS)
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
def test_agents_use_only_what_was_agreed_to_before(tmp_path: Path) -> None:
    agent = replace(caller(yes=True), allows_commands=False)
    catalogue = own(tmp_path / "mine")
    with pytest.raises(UserError, match="nobody has agreed to that in a terminal"):
        agree_to_use(catalogue, agent)
    agree_to_use(catalogue, caller(yes=True))
    agree_to_use(catalogue, agent)


def test_from_python_it_takes_a_yes_as_well(asked: list[str], tmp_path: Path) -> None:
    make_catalog(tmp_path / "cat")
    with pytest.raises(UserError, match=TRUST):
        run_experiment("evil", catalog=tmp_path / "cat")
    with pytest.raises(UserError, match=STOPPED):
        run_experiment("evil", catalog=tmp_path / "cat", yes=True, full=True)
    assert not asked


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


def test_what_others_wrote_among_the_agreements_is_none(
    asked: list[str], open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(open_folder / "state"))
    before = os.umask(0o002)
    try:
        agree_to_use(catalogue := own(open_folder / "own"), caller())
    finally:
        os.umask(before)
    callers._AGREED.clear()  # as in another process
    agree_to_use(catalogue, caller())
    assert len(asked) == 1
    file = state_folder() / callers.AGREED_FILE
    assert [stat.S_IMODE(path.stat().st_mode) for path in (file, file.parent)] == [0o600, 0o700]
    file.chmod(0o666)
    callers._AGREED.clear()
    agree_to_use(catalogue, caller())
    assert len(asked) == 2
