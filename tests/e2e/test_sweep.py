"""`webdyno run --vary` on real servers, judged and reported point by point."""

import csv
import re
from pathlib import Path

import pytest

from e2e.commands import QUICK, left_behind, webdyno, webdyno_here
from webdyno.comparison import judge_sweep
from webdyno.comparison.stop import SPARE_ROUNDS
from webdyno.core.judgement import Verdict
from webdyno.measure.folder import RunFolder

VARIED = (
    *(flag for flag in QUICK if "slot_s" not in flag),
    "--vary=load.connections=4,32",
    "--set=measure.slot_s=0.05",
    # A client that is short of CPU, as next to other tests, says nothing about server CPU time.
    "--set=measure.decide_on=server_cpu_us",
)


@pytest.mark.measures
def test_a_sweep_ends_with_a_verdict_at_every_point(tmp_path: Path) -> None:
    done = webdyno("run", "static-hello", *VARIED, "--output=run", "--report", folder=tmp_path)
    folder = RunFolder.open(tmp_path / "run")
    sweep = judge_sweep(folder.data())
    assert all(6 <= at.judgement.rounds <= 6 + SPARE_ROUNDS for at in sweep.points)
    assert [at.judgement.verdict for at in sweep.points] == [Verdict.FASTER, Verdict.FASTER]
    assert done.returncode == 0, done.stderr
    assert re.search(r"connections +value", done.stdout)
    assert re.search(r"^  32 +nginx", done.stdout, re.MULTILINE)
    with (tmp_path / "run/summary.csv").open(encoding="utf-8") as file:
        levels = {line["load.connections"] for line in csv.DictReader(file)}
    assert levels == {"4", "32"}
    page = (tmp_path / "run/report.html").read_text(encoding="utf-8")
    assert 'data-chart="server_cpu_us-0"' in page
    assert 'data-chart="point-1-latency"' in page
    assert "What a request costs" in page
    assert left_behind(tmp_path) == []

    again = webdyno("report", "run", folder=tmp_path)
    assert (again.returncode, again.stdout) == (done.returncode, done.stdout)


def test_a_level_that_cannot_be_is_refused(tmp_path: Path) -> None:
    done = webdyno_here("run", "static-hello", "--vary=load.connections=8,none", folder=tmp_path)
    assert done.returncode == 2
    assert "load.connections" in done.stderr
    assert "Traceback" not in done.stderr
