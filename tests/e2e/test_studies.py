"""`webdyno studies`: lists, repeats and judges."""

import signal
from pathlib import Path

from builders import SimulatedArm, simulated_run
from e2e.commands import left_behind, started_webdyno, wait_for, webdyno
from webdyno.run.folder import RunFolder


def test_studies_are_listed(tmp_path: Path) -> None:
    done = webdyno("studies", folder=tmp_path)
    assert done.returncode == 0
    assert "deathmatch" in done.stdout
    assert "heroku-wordpress" in done.stdout


def test_an_unknown_study_is_told_with_those_there_are(tmp_path: Path) -> None:
    done = webdyno("studies", "deathmach", folder=tmp_path)
    assert done.returncode == 2
    assert "deathmatch" in done.stderr
    assert "Traceback" not in done.stderr


def test_runs_that_are_there_are_judged_and_written_as_a_table(tmp_path: Path) -> None:
    arms = {
        "apache-alone": SimulatedArm(rate_rps=20_000),
        "nginx-in-front": SimulatedArm(rate_rps=40_000),
    }
    simulated = simulated_run(arms)
    with RunFolder.create(tmp_path / "s/hdm-front-proxy", simulated.head) as folder:
        for record in simulated.records:
            folder.append(record)
    done = webdyno("studies", "hdm-front-proxy", "--out=s", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "1 × can't be told" in done.stdout
    *_, row = (tmp_path / "s/claims.md").read_text().splitlines()
    assert "frees it from slow client connections" in row
    assert "no finished block at its levels" in row
    assert left_behind(tmp_path) == []


def test_an_interrupted_study_shows_what_it_has(tmp_path: Path) -> None:
    arguments = ("studies", "hdm-front-proxy", "--budget=30s", "--out=s")
    with started_webdyno(*arguments, folder=tmp_path) as process:
        wait_for(tmp_path / "s/hdm-front-proxy/slots.jsonl", lines=1)
        process.send_signal(signal.SIGINT)
        told, _ = process.communicate(timeout=60)
    assert process.returncode == 130, told
    assert "1 × can't be told" in told
    assert "interrupted; the same command with --out s measures what is missing" in told
    assert (tmp_path / "s/claims.md").exists()
    assert left_behind(tmp_path) == []
