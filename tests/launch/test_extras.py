"""Extras are offered where they are asked for, as packages of the distribution are."""

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from contextlib import nullcontext
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from webdyno.core.errors import OperationError
from webdyno.launch import extras
from webdyno.launch.caller import Caller
from webdyno.launch.extras import provide_extra

HOME = Path(__file__).parents[2]
UV = HOME / ".dyno/uv/bin/uv"
OF_CHECKOUT = extras.UV_OF_CHECKOUT
WRITTEN = ["scipy>=1.16", 'optuna>=4.5; extra == "tune"', 'duckdb>=2.0; extra == "parquet"']


class Machine:
    """What is installed on it, and what was run there."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, installs: bool = True) -> None:
        self.ran: list[Sequence[str]] = []
        self.questions: list[str] = []
        self.installed = False
        self.installs = installs
        monkeypatch.setattr(extras, "requires", lambda _: WRITTEN)
        monkeypatch.setattr(extras, "distribution", self.distribution)
        monkeypatch.setattr(extras, "run_program", self.run)
        monkeypatch.setattr(extras, "find_spec", lambda _: None)

    def distribution(self, name: str) -> None:
        if name == "optuna" and not self.installed:
            raise PackageNotFoundError(name)

    def run(self, words: Sequence[str], *, within_s: float | None) -> CompletedProcess[str]:
        assert within_s is None
        self.ran.append(words)
        self.installed = self.installs
        return CompletedProcess(words, 0 if self.installs else 1, "", "no network")

    def asked_by(self, answer: bool | None, *, yes: bool = False) -> Caller:
        def asks(question: str, *, usual: bool) -> bool:
            assert usual
            self.questions.append(question)
            return bool(answer)

        asking = None if answer is None else asks
        return Caller(self.questions.append, lambda _: nullcontext(), asks=asking, yes=yes)  # type: ignore[arg-type, return-value]


@pytest.fixture(autouse=True)
def uv(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "UV_OF_CHECKOUT", Path("nowhere"))
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")


def test_what_is_there_is_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch)
    machine.installed = True
    provide_extra("tune", "tuning", machine.asked_by(True))
    assert (machine.ran, machine.questions) == ([], [])


def test_a_yes_installs_what_is_lacking(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch)
    provide_extra("tune", "tuning", machine.asked_by(True))
    assert machine.questions == ["tuning takes optuna: install by uv?"]
    ((program, *_, last),) = machine.ran
    assert (program, last) == ("/usr/bin/uv", "optuna>=4.5")


def test_next_to_an_environment_no_uv_is_taken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Of one in /tmp anybody could have put it there."""
    (planted := tmp_path / ".dyno/uv/bin/uv").parent.mkdir(parents=True)
    planted.touch(mode=0o755)
    monkeypatch.setattr("sys.prefix", str(tmp_path / "environment"))
    monkeypatch.setattr(extras, "UV_OF_CHECKOUT", OF_CHECKOUT)
    machine = Machine(monkeypatch)
    provide_extra("tune", "tuning", machine.asked_by(True))
    ((program, *_),) = machine.ran
    assert Path(program) != planted


@pytest.mark.skipif(not UV.exists(), reason="./dyno made no environment here")
def test_uv_takes_no_settings_from_the_current_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Where packages come from may stand in `uv.toml`, there or in a folder above, as in /tmp."""
    machine = Machine(monkeypatch)
    provide_extra("tune", "tuning", machine.asked_by(True))
    ((_, *words),) = machine.ran
    folder = tmp_path / "project"
    folder.mkdir()
    (tmp_path / "uv.toml").write_text("no-index = true\nfind-links = ['/of-others']\n")
    environment = {"PATH": os.environ["PATH"], "UV_OFFLINE": "1", "UV_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [UV, *words, "--reinstall", "--dry-run"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "the network was disabled" in done.stderr
    assert "of-others" not in done.stderr


def test_who_agreed_beforehand_sees_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch)
    provide_extra("tune", "tuning", machine.asked_by(None, yes=True))
    assert len(machine.ran) == 1
    assert "--yes agreed to that" in machine.questions[0]


@pytest.mark.parametrize("answer", [False, None])
def test_a_no_names_the_command(monkeypatch: pytest.MonkeyPatch, answer: bool | None) -> None:
    machine = Machine(monkeypatch)
    with pytest.raises(OperationError, match=r"nothing was installed. Add --yes .*\n.*uv pip inst"):
        provide_extra("tune", "tuning", machine.asked_by(answer))
    assert machine.ran == []


def test_without_an_installer_the_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(OperationError, match=r"tuning takes 'optuna>=4.5': .*\n.* 'optuna>=4.5'$"):
        provide_extra("tune", "tuning", machine.asked_by(True))


@pytest.mark.parametrize("part", ["src", "docs", "README.md", "skills"])
def test_nobody_is_asked_to_install_webdyno_by_its_name(part: str) -> None:
    """In a registry it may be anybody's."""
    files = [HOME / part, *(HOME / part).rglob("*.py"), *(HOME / part).rglob("*.md")]
    texts = [file.read_text(encoding="utf-8") for file in files if file.is_file()]
    assert not [text for text in texts if re.search(r"webdyno\[|install (--\S+ )*webdyno\b", text)]


def test_what_fails_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, installs=False)
    with pytest.raises(OperationError, match=r"optuna could not be installed:\n +no network"):
        provide_extra("tune", "tuning", machine.asked_by(True))
