"""`webdyno compare` and `webdyno report --format parquet` on folders of simulated runs."""

import json
from pathlib import Path

import duckdb
import pytest

from builders import SimulatedRun, SimulatedVariant, simulated_run
from in_process import webdyno
from webdyno.core.measure import Measure

AS_BEFORE, SLOWER, BROKEN = (
    SimulatedVariant(throughput_rps=20_000),
    SimulatedVariant(throughput_rps=16_000),
    SimulatedVariant(wrong_status=500),
)


def simulated(apache: SimulatedVariant, seed: int, rounds: int = 10) -> SimulatedRun:
    variants = {"nginx": SimulatedVariant(), "apache": apache}
    return simulated_run(
        variants,
        rounds=rounds,
        restart_sd=0.003,
        slot_sd=0.003,
        seed=seed,
        measure=Measure(seed=seed),
    )


def swept(run: SimulatedRun, levels: list[int]) -> SimulatedRun:
    """The same run at each of these numbers of connections."""
    factors = {"load.connections": levels}
    experiment = run.head.experiment.model_copy(update={"factors": factors})
    records = [
        record.model_copy(update={"point": point})
        for point in range(len(levels))
        for record in run.records
    ]
    return SimulatedRun(run.head.model_copy(update={"experiment": experiment}), records)


@pytest.fixture
def before(tmp_path: Path) -> Path:
    return simulated(AS_BEFORE, seed=1).stored(tmp_path / "before")


@pytest.mark.parametrize(
    ("apache", "rounds", "code", "said"),
    [
        (AS_BEFORE, 10, 0, "EQUIVALENT"),
        (SLOWER, 10, 4, "SLOWER"),
        (AS_BEFORE, 4, 5, "INCONCLUSIVE"),
        (BROKEN, 10, 1, "INVALID"),
    ],
)
def test_exit_code_says_what_changed(
    before: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    apache: SimulatedVariant,
    rounds: int,
    code: int,
    said: str,
) -> None:
    after = simulated(apache, seed=2, rounds=rounds).stored(tmp_path / "after")
    assert webdyno("diff", before, after) == code
    reported = capsys.readouterr().out
    assert said in reported
    assert "after ÷ before" in reported


def test_what_else_differs_is_named(
    before: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = simulated(AS_BEFORE, seed=2)
    head = run.head.model_copy(update={"load_generator": "loadgen 0.2.0"})
    webdyno("diff", before, SimulatedRun(head, run.records).stored(tmp_path / "after"))
    reported = capsys.readouterr().out
    assert "load_generator" in reported
    assert "loadgen 0.2.0" in reported


def test_json_holds_every_change(
    before: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    after = simulated(SLOWER, seed=2).stored(tmp_path / "after")
    assert webdyno("diff", before, after, "--format=json") == 4
    found = json.loads(capsys.readouterr().out)
    assert found["verdict"] == "slower"
    (point,) = found["points"]
    subjects = {change["subject"] for change in point["comparison"]["changes"]}
    assert subjects == {"nginx", "apache", "apache / nginx"}


def test_sweeps_are_compared_where_both_have_a_point(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = swept(simulated(AS_BEFORE, 1), [1, 8]).stored(tmp_path / "before")
    after = swept(simulated(SLOWER, 2), [8, 64]).stored(tmp_path / "after")
    assert webdyno("diff", before, after) == 4
    reported = capsys.readouterr().out
    assert "connections = 8" in reported
    assert "connections = 64" not in reported
    assert "2 points excluded" in reported


def test_runs_without_a_common_point_are_not_compared(
    before: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    after = swept(simulated(AS_BEFORE, 2), [8, 64]).stored(tmp_path / "after")
    assert webdyno("diff", before, after) == 1
    assert "no point in common" in capsys.readouterr().out


def test_slots_are_exported(before: Path, tmp_path: Path) -> None:
    assert webdyno("report", before, "--format=parquet") == 0
    assert webdyno("report", before, "--format=parquet", "-o", tmp_path / "mine.parquet") == 0
    for file in (before / "slots.parquet", tmp_path / "mine.parquet"):
        with duckdb.connect() as database:
            slots = database.read_parquet(str(file)).project("variant").fetchall()
        assert len(slots) == 10 * (2 + 8)
