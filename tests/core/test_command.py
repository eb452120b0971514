"""Commands that are printed can be pasted."""

import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import SimulatedVariant, simulated_run
from webdyno.core.registry import as_called, called_as, command

HEAD = simulated_run({"a": SimulatedVariant(), "b": SimulatedVariant()}, rounds=1).head


@given(st.lists(st.text(alphabet=st.characters(exclude_characters="\0")), max_size=4))
def test_a_shell_reads_the_words_back(words: list[str]) -> None:
    assert shlex.split(command(*words)) == [called_as(), *words]


def test_a_folder_with_spaces_and_quotes_stays_one_word() -> None:
    assert shlex.split(command("resume", Path("runs/Jo's nginx, v2")))[1:] == [
        "resume",
        "runs/Jo's nginx, v2",
    ]


def test_the_name_is_the_one_that_the_user_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEBDYNO_CALLED_AS", "./dyno")
    assert command("report", "x") == "./dyno report x"
    monkeypatch.delenv("WEBDYNO_CALLED_AS")
    monkeypatch.setattr("sys.argv", ["/opt/w/.venv/bin/webdyno"])
    monkeypatch.setenv("PATH", "/nowhere")
    assert command("report", "x") == "/opt/w/.venv/bin/webdyno report x"


def test_commands_in_texts_are_given_as_they_can_be_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEBDYNO_CALLED_AS", "./dyno")
    reported = as_called(
        "Ask with `webdyno up` and curl; webdyno load URL -c 64: webdyno measures."
    )
    assert reported == "Ask with `./dyno up` and curl; ./dyno load URL -c 64: webdyno measures."
    assert as_called("/var/webdyno run/webdyno.log") == "/var/webdyno run/webdyno.log"


def test_on_the_path_the_plain_name_will_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "webdyno"
    program.write_text("")
    program.chmod(0o755)
    monkeypatch.delenv("WEBDYNO_CALLED_AS", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sys.argv", [str(program)])
    assert called_as() == "webdyno"


def test_a_sweep_is_repeated_at_all_of_its_levels() -> None:
    assert HEAD.repeat_command(Path("r")).endswith(" run r/experiment.toml --catalog r/catalog")
    factors = {"load.connections": [1, 2]}
    swept = HEAD.model_copy(
        update={"experiment": HEAD.experiment.model_copy(update={"factors": factors})}
    )
    assert swept.repeat_command(Path("r")).endswith("--catalog r/catalog --full")
