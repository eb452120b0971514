"""Nobody else's machine is loaded unless whoever types says so, each time."""

from pathlib import Path

import pytest

from builders import SimulatedVariant, simulated_run
from e2e.commands import webdyno_here
from interfaces.cli.elsewhere import kept_run, project, resolved
from webdyno.core.errors import Exit, UserError
from webdyno.core.service import Need
from webdyno.core.stack import Stack
from webdyno.interfaces.cli.flags import RunFlags
from webdyno.interfaces.cli.progress import at_terminal
from webdyno.launch import measure
from webdyno.launch.consent import refuse_other_machines
from webdyno.launch.dispatch import begin_folder

CALLER = at_terminal(RunFlags(yes=True))
AGREED = at_terminal(RunFlags(loads_other_machines=True))
SITE = (
    "server {\n listen 80;\n location / { proxy_pass http://198.51.100.1; }\n"
    " location /b { proxy_pass http://198.51.100.1:81; }\n}\n"
)
HERE = "server { listen 80; location / { proxy_pass http://127.0.0.1:81; } }"
EXPERIMENT = """
title = "Mine"
question = "Which?"
site = "own"
load.paths = ["/"]
variants.a.stack = "conf:nginx:other.conf"
variants.b.stack = "conf:nginx:here.conf"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    files = {"other.conf": SITE, "here.conf": HERE, "mine.toml": EXPERIMENT}
    return project(tmp_path, files, monkeypatch)


def stacks(folder: Path, *variants: str) -> list[Stack]:
    experiment, catalogue = resolved(folder, CALLER)
    return [catalogue.stack(experiment.variants[name].stack) for name in variants]


@pytest.mark.parametrize(
    "words",
    [
        ("compare", "conf:nginx:other.conf", "conf:nginx:here.conf"),
        ("compare", "conf:nginx:here.conf", "nginx", "conf:nginx:other.conf"),
        ("capacity", "conf:nginx:other.conf"),
        ("gate", "--base=conf:nginx:here.conf", "--head=conf:nginx:other.conf", "--path=/"),
        ("up", "conf:nginx:other.conf"),
        ("run", "mine.toml"),
    ],
)
def test_it_is_refused_with_every_place_whatever_begins_it(
    folder: Path, words: tuple[str, ...]
) -> None:
    done = webdyno_here(*words, "--yes", folder=folder)
    assert done.returncode == Exit.USER_ERROR
    assert f"  198.51.100.1 ({folder}/other.conf:3, {folder}/other.conf:4)\n" in done.stderr
    assert "add --loads-other-machines, which --yes doesn't stand for" in done.stderr


def test_whose_requests_stay_here_asks_nothing(folder: Path) -> None:
    refuse_other_machines(stacks(folder, "b"), CALLER, anywhere=True)
    refuse_other_machines(stacks(folder, "a", "b"), AGREED)


@pytest.mark.parametrize("words", [("resume", "run"), ("run", "run/experiment.toml")])
def test_a_run_that_began_with_the_flag_asks_for_it_again(
    folder: Path, words: tuple[str, ...]
) -> None:
    kept_run(folder, CALLER)
    kept = ("--catalog", "run/catalog") if words[0] == "run" else ()
    done = webdyno_here(*words, *kept, "--yes", folder=folder)
    assert done.returncode == Exit.USER_ERROR
    assert f"198.51.100.1 ({folder}/other.conf:3" in done.stderr


def test_it_is_asked_before_anything_else(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[Need]] = []
    monkeypatch.setattr(measure, "provide", lambda *it: asked.append(list(it[2])))
    experiment, catalogue = resolved(folder, CALLER)
    with pytest.raises(UserError, match="load them"):
        measure.measure_again("mine", experiment, catalogue, folder / "out", CALLER)
    assert not asked
    assert not (folder / "out").exists()


@pytest.mark.parametrize("key", ["variants.a.loads_other_machines", "loads_other_machines"])
def test_no_file_can_say_so(folder: Path, key: str) -> None:
    with (folder / "mine.toml").open("a") as file:
        file.write(f"{key} = true\n")
    with pytest.raises(UserError, match="loads_other_machines"):
        resolved(folder, CALLER)


def test_many_hosts_never_load_another_machine(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is this machine's own address here is another machine's to them."""
    monkeypatch.setattr("webdyno.systems.conf.passing.is_here", lambda _: True)
    refuse_other_machines(stacks(folder, "a"), CALLER)
    head = simulated_run({"a": SimulatedVariant(), "b": SimulatedVariant()}, rounds=1).head
    with pytest.raises(UserError, match="load them"):
        begin_folder(folder / "fleet/fleet.json", head, *resolved(folder, CALLER), CALLER)
    assert not (folder / "fleet").exists()
    flag = "--loads-other-machines"
    done = webdyno_here("run", "mine.toml", "--replicates=2", flag, "--yes", folder=folder)
    assert done.returncode == Exit.USER_ERROR
    assert f"{flag} is for a single run" in done.stderr
