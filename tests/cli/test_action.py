"""The script of action.yml: which exit code turns a job red."""

import os
import subprocess
from pathlib import Path
from textwrap import dedent

import pytest

HOME = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("gate", "inconclusive", "job", "answer"),
    [
        (0, "pass", 0, "pass"),
        (1, "pass", 1, "invalid"),
        (2, "pass", 2, None),
        (4, "pass", 4, "fail"),
        (5, "pass", 0, "inconclusive"),
        (5, "fail", 5, "inconclusive"),
    ],
)
def test_only_what_is_inconclusive_may_be_green(
    tmp_path: Path, gate: int, inconclusive: str, job: int, answer: str | None
) -> None:
    dyno, output = tmp_path / "dyno", tmp_path / "output"
    dyno.write_text(f"#!/bin/sh\nexit {gate}\n")
    dyno.chmod(0o755)
    output.touch()
    script = dedent((HOME / "action.yml").read_text().partition("run: |\n")[2])
    asked = {"BASE": "main", "FAIL_IF": "", "TIME": "1m", "INCONCLUSIVE": inconclusive}
    places = {"RESULTS": str(tmp_path), "DYNO": str(dyno), "GITHUB_OUTPUT": str(output)}
    done = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", script], env=os.environ | asked | places, check=False
    )
    assert done.returncode == job
    assert (f"answer={answer}\n" in output.read_text()) is (answer is not None)


def test_gitlab_allows_no_other_failure() -> None:
    assert "exit_codes: [5]" in (HOME / "ci/gitlab.yml").read_text()
