"""Studies: listed, repeated, judged."""

import re
import signal
from pathlib import Path

import pytest

from builders import START, SimulatedVariant, simulated_run
from e2e.commands import left_behind, started_webdyno, wait_for, webdyno, webdyno_here
from webdyno.core.records import StopRecord
from webdyno.load.engine import find_loadgen


def test_studies_are_listed(tmp_path: Path) -> None:
    done = webdyno_here("list", "studies", folder=tmp_path)
    assert done.returncode == 0
    assert "deathmatch" in done.stdout
    assert "heroku-wordpress" in done.stdout


def test_an_unknown_study_is_reported_with_those_there_are(tmp_path: Path) -> None:
    done = webdyno_here("run", "study:deathmach", folder=tmp_path)
    assert done.returncode == 2
    assert "deathmatch" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_folder_that_cannot_be_made_is_reported_before_anything_starts(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = webdyno_here("run", "study:deathmatch", "--output=file/s", folder=tmp_path)
    assert done.returncode == 2
    assert "-o file/s: can't be made: Not a directory" in done.stderr


def test_runs_that_are_there_are_judged_and_written_as_a_table(tmp_path: Path) -> None:
    variants = {
        "apache-alone": SimulatedVariant(throughput_rps=20_000),
        "nginx-in-front": SimulatedVariant(throughput_rps=40_000),
    }
    simulated = simulated_run(variants)
    ended = StopRecord(round=8, stopped_at=START, reason="budget", why="for a test")
    simulated.records.append(ended)
    simulated.stored(tmp_path / "s/hdm-front-proxy")
    done = webdyno_here("run", "study:hdm-front-proxy", "--output=s", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "1 × not judged" in done.stdout
    *_, row = (tmp_path / "s/claims.md").read_text().splitlines()
    assert "frees it from slow client connections" in row
    assert "no finished round at its levels" in row
    page = (tmp_path / "s/claims.html").read_text()
    assert "Of 1 claim none hold here, none do not; 1 stays open." in page
    assert left_behind(tmp_path) == []


@pytest.mark.long
def test_an_interrupted_study_shows_what_it_has_and_is_gone_on_with(tmp_path: Path) -> None:
    arguments = ("run", "study:deathmatch", "--time=30s", "--output=s")
    slots = tmp_path / "s/deathmatch-ab/slots.jsonl"
    with started_webdyno(*arguments, folder=tmp_path) as process:
        wait_for(slots, lines=2)
        process.send_signal(signal.SIGINT)
        reported, _ = process.communicate(timeout=60)
    assert process.returncode == 130, reported
    assert re.search(r"\d × not judged", reported)
    assert "interrupted; to measure what is missing: " in reported
    assert "run study:deathmatch --time 30s -o s" in reported
    assert (tmp_path / "s/claims.md").exists()
    assert left_behind(tmp_path) == []
    before = slots.read_bytes()
    with started_webdyno(*arguments, folder=tmp_path) as process:
        wait_for(slots, lines=before.count(b"\n") + 3)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert slots.read_bytes().startswith(before)
    assert left_behind(tmp_path) == []


@pytest.mark.long
def test_a_study_whose_experiments_all_fail_ends_with_3(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "loadgen"
    broken.write_text(f'#!/bin/sh\n[ "$1" = serve ] && exit 7\nexec {find_loadgen()} "$@"\n')
    broken.chmod(0o755)
    monkeypatch.setenv("WEBDYNO_LOADGEN", str(broken))
    done = webdyno("run", "study:hdm-front-proxy", "--time=30s", "--output=s", folder=tmp_path)
    assert done.returncode == 3, done.stderr
    assert "failed: hdm-front-proxy; to measure what is missing: " in done.stderr
    assert "ended unexpectedly" in (tmp_path / "s/claims.md").read_text()
    assert "Traceback" not in done.stderr
