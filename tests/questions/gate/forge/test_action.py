"""The action's steps with a program in webdyno's place: what is passed on, and what turns red."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from questions.gate.forge.composite import Action

HOME = Path(__file__).parents[4]
BASE = "github.base_ref || github.event.repository.default_branch"
STAND_IN = """#!/bin/sh
echo "$0 $*" >>"$TOLD"
case $1 in gate) exit "$CODE" ;; report) exit "$COMMENTED" ;; esac
"""


def action(tmp_path: Path, code: int, commented: int = 0, **inputs: str) -> Action:
    program = tmp_path / "webdyno"
    program.write_text(STAND_IN)
    program.chmod(0o755)
    (tmp_path / "app").mkdir(exist_ok=True)
    environment = {
        "WEBDYNO": str(program),
        "TOLD": str(tmp_path / "told"),
        "CODE": str(code),
        "COMMENTED": str(commented),
    }
    given = {name.replace("_", "-"): value for name, value in inputs.items()}
    return Action(
        HOME / "action.yml", tmp_path / "app", tmp_path / "temp", given, {BASE: "main"}, environment
    )


@pytest.mark.parametrize(
    ("code", "answer", "red"),
    [
        (0, "pass", set()),
        (1, "invalid", {"worse", "inconclusive"}),
        (4, "fail", {"worse", "inconclusive"}),
        (5, "inconclusive", {"inconclusive"}),
    ],
)
@pytest.mark.parametrize("fail", ["worse", "inconclusive", "never"])
def test_what_turns_a_job_red_is_what_its_user_said(
    tmp_path: Path, code: int, answer: str, red: set[str], fail: str
) -> None:
    job = action(tmp_path, code, fail=fail)
    assert job.run("Install webdyno") == (code if fail in red else 0)
    assert job.outputs["steps.gate.outputs.answer"] == answer
    reported = (tmp_path / "told").read_text()
    assert "gate --base origin/main --time 10m -o" in reported
    assert "--comment webdyno" in reported


@pytest.mark.parametrize("code", [2, 3, 130])
def test_what_could_not_be_measured_is_red_whatever_is_wanted(tmp_path: Path, code: int) -> None:
    assert action(tmp_path, code, fail="never").run("Install webdyno") == code


def test_inputs_are_data_and_no_code(tmp_path: Path) -> None:
    limits = "cpu > +3%\n\nthroughput < -5%; touch hacked $(touch hacked)"
    job = action(tmp_path, 0, fail_if=limits, base="$(touch hacked)", time="1m`touch hacked`")
    assert job.run("Install webdyno") == 0
    assert not [*tmp_path.rglob("hacked")]
    assert (
        "--fail-if=cpu > +3% --fail-if=throughput < -5%; touch" in (tmp_path / "told").read_text()
    )


@pytest.mark.parametrize(("given", "passed_on"), [("true", True), ("false", False), ("1", False)])
def test_confirming_is_passed_on(tmp_path: Path, given: str, passed_on: bool) -> None:
    assert action(tmp_path, 0, confirm=given).run("Install webdyno") == 0
    assert ("--confirm" in (tmp_path / "told").read_text()) is passed_on


@pytest.mark.parametrize(("given", "passed_on"), [("200", "--rate=200 "), ("", "")])
def test_a_rate_is_passed_on(tmp_path: Path, given: str, passed_on: str) -> None:
    assert action(tmp_path, 0, rate=given).run("Install webdyno") == 0
    reported = (tmp_path / "told").read_text()
    assert f"gate --base origin/main {passed_on}--time 10m" in reported


def test_a_comment_that_cannot_be_posted_turns_nothing_red(tmp_path: Path) -> None:
    job = action(tmp_path, 0, commented=3)
    assert job.run("Install webdyno") == 0
    assert "::warning" in job.reported
    silent = action(tmp_path, 0, comment="", artifact="")
    names = [step.get("name") for step in silent.steps()]
    assert "Comment the pull request" not in names
    assert "Keep the report" not in names


def test_a_word_that_fail_does_not_know_is_named(tmp_path: Path) -> None:
    job = action(tmp_path, 0, fail="sometimes")
    assert job.run("Install webdyno") == 2
    assert "should be worse, inconclusive or never" in job.reported


def test_an_engine_that_another_job_built_is_found_by_what_it_is_made_of(tmp_path: Path) -> None:
    job = action(tmp_path, 0)
    assert job.run("Install webdyno") == 0
    asks = f"home={HOME}; {_function('engine_sources')} engine_sources"
    sources = subprocess.run(["sh", "-c", asks], capture_output=True, text=True, check=True).stdout
    key = job.outputs["steps.engine.outputs.key"]
    assert key.startswith("webdyno-engine-")
    assert key.endswith(f"-{sources.split()[0]}")
    names = [step.get("name") for step in action(tmp_path, 0, install="a.whl").steps()]
    assert "Find what the engine is made of" not in names


def _function(name: str) -> str:
    """A function of ./dyno."""
    found = re.search(
        rf"^{name}\(\) {{\n.*?^}}\n", (HOME / "dyno").read_text(), re.MULTILINE | re.DOTALL
    )
    assert found is not None
    return found[0]


GITLAB = yaml.safe_load((HOME / "ci/gitlab.yml").read_text(encoding="utf-8"))


def test_a_gitlab_job_says_that_it_has_no_wheel() -> None:
    installs = next(line for line in GITLAB["webdyno gate"]["script"] if "pip" in line)
    done = subprocess.run(
        ["sh", "-c", installs],
        env={"PATH": os.environ["PATH"], "WEBDYNO_INSTALL": "", "CI_PROJECT_DIR": "/nowhere"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "WEBDYNO_INSTALL: names no wheel" in done.stderr


def test_gitlab_is_red_where_github_is() -> None:
    job = GITLAB["webdyno gate"]
    assert job["allow_failure"] == {"exit_codes": [5]}
    assert "exit $code" in job["script"]


def test_a_job_of_gitlab_takes_nothing_that_another_branch_could_leave() -> None:
    """Keys of caches are every branch's to name, and without containers /tmp is one for all."""
    for job in (GITLAB["webdyno gate"], GITLAB["webdyno comment"]):
        assert job["cache"] == []
        assert job["script"][0] == "venv=$(mktemp -d)"
        assert "--no-cache-dir" in next(line for line in job["script"] if "/pip" in line)


def test_nothing_of_the_branch_runs_in_the_job_of_gitlab_that_has_the_token() -> None:
    gate, comment = GITLAB["webdyno gate"], GITLAB["webdyno comment"]
    assert comment["environment"] == {"name": "webdyno-comment", "action": "access"}
    assert "environment" not in gate
    assert "comment" not in " ".join(gate["script"])
    # No checkout and no commands of other jobs.
    assert comment["variables"] == {"GIT_STRATEGY": "empty"}
    # Nor a folder that an earlier job of another branch could have left.
    for each in (gate["artifacts"]["paths"][0], gate["script"][4], comment["script"][-1]):
        assert "webdyno-gate-$CI_PIPELINE_ID" in each
    assert comment["inherit"] == {"default": False}
    assert comment["needs"] == ["webdyno gate"]
    assert not {"before_script", "after_script", "services", "extends"} & comment.keys()
    begins = ("venv=$(mktemp -d)", "python3 -I ", '"$venv/bin/')
    assert all(line.startswith(begins) for line in comment["script"])


def test_what_a_branch_left_in_the_folder_is_not_run_by_the_job_that_has_the_token(
    tmp_path: Path,
) -> None:
    checkout, results = tmp_path / "checkout", tmp_path / "checkout/webdyno-gate-7"
    results.mkdir(parents=True)
    for name in ("venv", "pip", "webdyno", "json", "ensurepip", "sitecustomize", "os", "site"):
        for folder in (checkout, results):
            (folder / f"{name}.py").write_text("open('/dev/stdout', 'w').write('HACKED')")
    (checkout / "pip").write_text("#!/bin/sh\necho HACKED\n")
    (checkout / "pip").chmod(0o755)
    mine = f'"{Path(sys.executable).parent}/webdyno"'
    lines = GITLAB["webdyno comment"]["script"]
    steps = [line.replace('"$venv/bin/webdyno"', mine) for line in lines if "/pip" not in line]
    environment = {"PATH": os.environ["PATH"], "GITLAB_CI": "true", "CI_MERGE_REQUEST_IID": "1"}
    environment["CI_PIPELINE_ID"] = "7"
    done = subprocess.run(
        ["sh", "-c", "\n".join(steps)],
        cwd=checkout,
        env={**environment, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done.stdout + done.stderr
    assert "webdyno-gate-7/gate.json: isn't there" in done.stderr
    assert "HACKED" not in done.stdout + done.stderr
