"""Points that were spread: what is refused, and how they are shown together."""

from dataclasses import replace
from pathlib import Path

import pytest

from builders import SimulatedArm, simulated_run
from e2e.commands import webdyno_here
from webdyno.definitions import Catalogue
from webdyno.model.experiment import Experiment
from webdyno.model.measure import Measure
from webdyno.model.point import only_at, plan_points
from webdyno.run.repeat import keep_for_repeating

VARIED = "--vary=load.connections=4,8"
REFUSED = {
    ("--spread",): "--spread takes an experiment of several points",
    ("--spread", VARIED): "which cluster? Give its head with --cluster",
    ("--spread", VARIED, "--why"): "--why asks a single run",
    ("--spread", VARIED, "--replicates=2"): "--spread and --replicates",
    ("--spread", VARIED, "--fail-on=nginx.rate_rps < -5%"): "--fail-on asks a single run",
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_cannot_be_is_refused_before_anything_starts(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    done = webdyno_here("run", "static-hello", *words, "--out=out", folder=tmp_path)
    assert done.returncode == 2
    assert REFUSED[words] in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.fixture
def spread(tmp_path: Path) -> Path:
    """Three points, measured by two machines."""
    folder = tmp_path / "sweep"
    arms = {
        "apache-event": SimulatedArm(stack="apache-event"),
        "nginx": SimulatedArm(rate_rps=80_000, stack="nginx"),
    }
    runs = [
        simulated_run(arms, blocks=6, seed=seed, measure=Measure(seed=seed, max_blocks=6))
        for seed in range(3)
    ]
    written = runs[0].head.experiment.model_dump(exclude_unset=True)
    factors = {"load.connections": [4, 8, 16]}
    experiment = Experiment.model_validate({**written, "site": "static", "factors": factors})
    keep_for_repeating(folder, experiment, Catalogue.load())
    (folder / "spread.json").write_text('{"name": "sweep"}')
    for plan, run, host in zip(plan_points(experiment), runs, ("a", "b", "a"), strict=True):
        head = run.head.model_copy(update={"experiment": only_at(experiment, plan.point)})
        replace(run, head=head).stored(folder / host / f"point-00{plan.point.number}")
    return folder


def test_each_point_is_told_with_its_machine(spread: Path, tmp_path: Path) -> None:
    done = webdyno_here("report", str(spread), folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "nginx against apache-event: faster at all 3 points" in done.stdout
    assert "3 of 3 points, on 2 machines" in done.stdout
    assert "Points of different machines aren't compared" in " ".join(done.stdout.split())
    rows = [it for it in done.stdout.splitlines() if "point-00" in it]
    assert [(it.split()[0], it.split()[-1]) for it in rows] == [
        ("4", "a/point-000"),
        ("8", "b/point-001"),
        ("16", "a/point-002"),
    ]
    assert webdyno_here("resume", "sweep", folder=tmp_path).stdout == done.stdout  # all is there


def test_a_missing_point_is_told(spread: Path, tmp_path: Path) -> None:
    records = spread / "b/point-001/slots.jsonl"
    records.write_bytes(records.read_bytes()[:5000])
    done = webdyno_here("report", "sweep", folder=tmp_path)
    assert done.returncode == 3
    assert "2 of 3 points, on 1 machine" in done.stdout


def test_what_asks_a_single_run_is_refused(spread: Path, tmp_path: Path) -> None:
    done = webdyno_here("report", "sweep", "--json=x.json", folder=tmp_path)
    assert "give the folder of one of them" in done.stderr
    done = webdyno_here("resume", "sweep", "--budget=5m", folder=tmp_path)
    assert "--budget is for a single run" in done.stderr
    (spread / "spread.json").write_text("{")
    done = webdyno_here("resume", "sweep", folder=tmp_path)
    assert (done.returncode, "not the head of a spread" in done.stderr) == (2, True)
