"""The Python API on real servers: the script of its page, and calls in a process of their own."""

import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest

from e2e.commands import INTERRUPTED, PATIENCE_S, environment, left_behind, wait_for
from webdyno import open_run
from webdyno.core.errors import Exit
from webdyno.host.children import input_of, words_of

PAGE = Path(__file__).parents[2] / "docs/reference/python.md"
SETTINGS = {
    "measure.slot_s": 0.1,
    "measure.warmup_s": 0,
    "measure.slots_per_variant": 2,
    "measure.patience": 1,
    "measure.budget_s": 1,
    "measure.decide_on": "server_cpu_us",
}
"""As short as the method allows, decided by what a busy machine interferes with least."""


def test_the_script_of_the_docs_compares_shows_and_draws(tmp_path: Path) -> None:
    found = re.search(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert found
    script = found[1]
    assert script.count("\n") <= 15
    quick = script.replace('time="1m"', f'settings={SETTINGS}, output="run"')
    assert quick != script
    done = run([sys.executable, "-c", quick], tmp_path)
    assert done.returncode == 0, done.stderr
    reported = done.stdout.splitlines()
    result = open_run(tmp_path / "run")
    assert reported[0] == result.headline
    assert reported[1].startswith(f"{result.ratio.estimate:.2f} times")
    assert any(line.startswith("throughput_rps ") for line in reported[2:])
    assert "round 6" in done.stderr
    assert (tmp_path / "ratios.svg").read_text().startswith("<svg xmlns=")
    assert left_behind(tmp_path) == []


@pytest.mark.long
def test_a_call_in_a_process_of_its_own_ends_as_commands_do(tmp_path: Path) -> None:
    asked = {"system": "nginx", "baseline": "apache-event", "settings": SETTINGS}
    done = call("compare", tmp_path, **asked, output=tmp_path / "run", report=True)
    assert done.returncode == Exit.OK, done.stderr
    assert done.stdout.strip() == open_run(tmp_path / "run").headline
    assert (tmp_path / "run/report.html").is_file()
    done = call("compare", tmp_path, system="nginx", baseline="ngins")
    assert done.returncode == Exit.USER_ERROR
    assert "did you mean nginx" in done.stderr
    done = call("resume", tmp_path, folder=tmp_path)
    assert done.returncode == Exit.USER_ERROR


@pytest.mark.timeout(120)
def test_ctrl_c_ends_a_call_with_what_there_is(tmp_path: Path) -> None:
    asked = {"experiment": "static-hello", "output": tmp_path / "run"}
    with (
        input_of(asked, allow_commands=True) as given,
        subprocess.Popen(
            words_of("run_experiment"),
            cwd=tmp_path,
            env=environment(tmp_path),
            stdin=given,
            stderr=subprocess.PIPE,
            text=True,
        ) as process,
    ):
        wait_for(tmp_path / "run/slots.jsonl", lines=2)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == INTERRUPTED
    assert "\ninterrupted; " in f"\n{said}"
    assert said.endswith("webdyno: interrupted\n")
    assert left_behind(tmp_path) == []


def test_a_call_is_given_its_arguments_by_standard_input(tmp_path: Path) -> None:
    settings = {"load.headers": {"Authorization": "Bearer t0ken"}}
    done = call("compare", tmp_path, system="nginx", baseline="ngins", settings=settings)
    assert done.returncode == Exit.USER_ERROR
    assert "did you mean nginx" in done.stderr


def call(name: str, place: Path, /, **asked: object) -> subprocess.CompletedProcess[str]:
    with input_of(asked, allow_commands=True) as given:
        return run(words_of(name), place, given)


def run(
    words: list[str], folder: Path, given: IO[bytes] | int = subprocess.DEVNULL
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words,
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
        stdin=given,
    )
