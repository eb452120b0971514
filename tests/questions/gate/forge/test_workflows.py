"""Workflows of this repository: what a job runs, with programs in the place of ours."""

from pathlib import Path
from typing import Any

import pytest
import yaml

import hosted
from questions.gate.forge.composite import Job

HOME = Path(__file__).parents[4]
HOSTED = HOME / ".github/workflows/hosted-gates.yml"
STAND_IN = """#!/bin/sh
echo "$0 $*" >>"$TOLD"
while [ $# -gt 0 ]; do
    [ "$1" != --page ] || echo "the page" >"$2"
    shift
done
"""
PARTS = 5


def workflow(path: Path) -> dict[Any, Any]:
    read: dict[Any, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return read


def job(tmp_path: Path, name: str, **inputs: str) -> Job:
    """A job in a checkout whose programs are stand-ins."""
    checkout = tmp_path / "checkout"
    for program in ("dyno", ".venv/bin/python"):
        path = checkout / program
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(STAND_IN)
        path.chmod(0o755)
    (checkout / "gates").mkdir()
    for part in (1, 2):
        (checkout / f"gates/part-{part}.jsonl").touch()
    environment = {
        "TOLD": str(tmp_path / "told"),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
    }
    contexts = {"matrix.part": "3"}
    return Job(HOSTED, checkout, tmp_path / "temp", inputs, contexts, environment, name=name)


def test_it_starts_by_hand_alone_and_may_only_read() -> None:
    read = workflow(HOSTED)
    assert list(read[True]) == ["workflow_dispatch"]  # YAML 1.1 takes `on` for true
    assert read["permissions"] == {"contents": "read"}
    assert all("permissions" not in each for each in read["jobs"].values())


def test_jobs_end_within_six_hours_and_share_all_gates() -> None:
    gates = workflow(HOSTED)["jobs"]["gates"]
    parts = gates["strategy"]["matrix"]["part"]
    assert len(parts) == PARTS
    assert [kind.gates % PARTS for kind in hosted.KINDS] == [0] * 4
    at_most_min = sum(kind.gates // PARTS for kind in hosted.KINDS) * 11  # a minute around each
    assert at_most_min < gates["timeout-minutes"] < 360


@pytest.mark.parametrize(
    ("inputs", "asked"),
    [
        ({}, "--jobs 5 --time 10m --results"),
        ({"gates": "1", "time": "30s"}, "--jobs 5 --gates 1 --time 30s --results"),
    ],
)
def test_a_job_measures_its_part(tmp_path: Path, inputs: dict[str, str], asked: str) -> None:
    measuring = job(tmp_path, "gates", **inputs)
    assert measuring.run() == 0, measuring.reported
    reported = (tmp_path / "told").read_text()
    assert "./dyno --version" in reported
    assert f"bench/hosted.py {asked} gates/part-3.jsonl --runs gates/runs-3" in reported
    words = reported.rpartition("hosted.py ")[2].split()
    assert hosted.script().parse_args(words).jobs == PARTS


def test_the_last_job_shows_all_parts(tmp_path: Path) -> None:
    showing = job(tmp_path, "page")
    assert showing.run() == 0, showing.reported
    reported = (tmp_path / "told").read_text()
    files = "gates/part-1.jsonl gates/part-2.jsonl"
    assert f"bench/hosted.py --table --results {files} --page gates/gates.md" in reported
    assert (tmp_path / "summary").read_text() == "the page\n"
    assert workflow(HOSTED)["jobs"]["page"]["needs"] == "gates"


def test_inputs_are_data_and_no_code(tmp_path: Path) -> None:
    measuring = job(tmp_path, "gates", gates="$(touch hacked)", time="1m; touch `touch hacked`")
    assert measuring.run() == 0, measuring.reported
    assert not [*tmp_path.rglob("hacked")]
    for path in (HOME / ".github/workflows").glob("*.yml"):
        for each in workflow(path)["jobs"].values():
            assert not [step for step in each["steps"] if "${{" in step.get("run", "")], path
