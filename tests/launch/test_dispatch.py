"""What several hosts measure: what is refused, reported meanwhile, and shown of points together."""

import socket
from dataclasses import replace
from pathlib import Path

import pytest

from builders import SimulatedVariant, simulated_run
from e2e.commands import webdyno_here
from webdyno.config import Catalogue
from webdyno.core.experiment import Experiment
from webdyno.core.measure import Measure
from webdyno.core.sweep import only_at, plan_points
from webdyno.launch.dispatch import RoundNews
from webdyno.measure.repeat import keep_for_repeating
from webdyno.media.console import notify

VARIED = "--vary=load.connections=4,8"
REFUSED = {
    ("--replicates=1",): "--replicates 1: two hosts or more",
    ("--replicates=3",): "which cluster? Give its head with --cluster",
    ("--replicates=3", "--cluster=10.0.0.1:6379"): "RAY_AUTH_MODE=token",
    ("--replicates=3", "--explain"): "--explain asks a single run",
    ("--replicates=3", "--fail-if=nginx.throughput_rps < -5%"): "--fail-if asks a single run",
    ("--spread",): "--spread takes an experiment of several points",
    ("--spread", VARIED): "which cluster? Give its head with --cluster",
    ("--spread", VARIED, "--explain"): "--explain asks a single run",
    ("--spread", VARIED, "--replicates=2"): "--spread and --replicates",
    ("--spread", VARIED, "--fail-if=nginx.throughput_rps < -5%"): "--fail-if asks a single run",
    ("--testbed=cluster",): "which cluster? Give its head with --cluster",
    (
        "--set=testbed.hosts.servers=web1",
    ): 'hosts and services need kind = "cluster" under [testbed]',
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_cannot_be_is_refused_before_anything_starts(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("RAY_ADDRESS", "RAY_AUTH_MODE"):
        monkeypatch.delenv(name, raising=False)
    done = webdyno_here("run", "static-hello", *words, "--output=out", folder=tmp_path)
    assert done.returncode == 2
    assert REFUSED[words] in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_calibration_is_of_this_machine(tmp_path: Path) -> None:
    done = webdyno_here("doctor", "--calibrate", "--testbed=cluster", folder=tmp_path)
    assert (done.returncode, "that is for runs" in done.stderr) == (2, True)


def test_a_cluster_that_is_not_there_is_reported_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    done = webdyno_here("cluster", "check", "nonsense", folder=tmp_path)
    assert (done.returncode, "address and port" in done.stderr) == (2, True)
    with socket.create_server(("127.0.0.1", 0)) as closed:
        address = f"127.0.0.1:{closed.getsockname()[1]}"
    done = webdyno_here("cluster", "check", address, folder=tmp_path)
    assert done.returncode == 3
    assert f"the cluster at {address} can't be joined" in done.stderr
    assert "Connection refused" in done.stderr


def test_a_damaged_fleet_is_named(tmp_path: Path) -> None:
    (tmp_path / "fleet.json").write_text('{"name": "x"')
    done = webdyno_here("resume", ".", folder=tmp_path)
    assert done.returncode == 2
    assert "fleet.json: not the head of a fleet" in done.stderr


def test_rounds_are_reported_as_they_come(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = simulated_run(
        {"nginx": SimulatedVariant(throughput_rps=40_000), "b": SimulatedVariant()}, rounds=5
    )
    folder = run.stored(tmp_path / "host1")
    records = tmp_path / "host1/slots.jsonl"
    whole, news = records.read_bytes(), RoundNews(2, notify, quiet=False)
    for end in (*range(0, len(whole), 700), len(whole)):  # cut anywhere
        records.write_bytes(whole[:end])
        news("host1", folder)
    reported = capsys.readouterr().err.splitlines()
    assert [line.partition(":")[0] for line in reported] == [
        f"host1, round {n}" for n in range(1, 6)
    ]
    sure = [line for line in reported if "×" in line]
    assert [line.partition(":")[0] for line in sure] == ["host1, round 2", "host1, round 4"]


def test_of_many_hosts_only_how_far_they_are_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    variants = {"nginx": SimulatedVariant(throughput_rps=40_000), "b": SimulatedVariant()}
    folder = simulated_run(variants, rounds=4).stored(tmp_path / "host")
    records = folder / "slots.jsonl"
    lines, news = (
        records.read_bytes().splitlines(keepends=True),
        RoundNews(1000, notify, quiet=False),
    )
    ends = [n for n, line in enumerate(lines, 1) if line.startswith(b'{"kind":"round"')]
    for end in ends:
        records.write_bytes(b"".join(lines[:end]))
        for number in range(1000):
            news(f"host{number}", folder)
    assert capsys.readouterr().err.splitlines() == [
        f"{n},000 rounds on 1,000 hosts, {n} on each" for n in range(1, 5)
    ]


@pytest.fixture
def spread(tmp_path: Path) -> Path:
    """Three points, measured by two machines."""
    folder = tmp_path / "sweep"
    variants = {
        "apache-event": SimulatedVariant(stack="apache-event"),
        "nginx": SimulatedVariant(throughput_rps=80_000, stack="nginx"),
    }
    runs = [
        simulated_run(variants, rounds=6, seed=seed, measure=Measure(seed=seed, max_rounds=6))
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


def test_each_point_is_reported_with_its_machine(spread: Path, tmp_path: Path) -> None:
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


def test_nothing_goes_on_without_a_cluster(
    spread: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    records = spread / "b/point-001/slots.jsonl"
    records.write_bytes(records.read_bytes()[:5000])
    done = webdyno_here("resume", "sweep", folder=tmp_path)
    assert (done.returncode, "which cluster?" in done.stderr) == (2, True)


def test_a_missing_point_is_reported(spread: Path, tmp_path: Path) -> None:
    records = spread / "b/point-001/slots.jsonl"
    records.write_bytes(records.read_bytes()[:5000])
    done = webdyno_here("report", "sweep", folder=tmp_path)
    assert done.returncode == 3
    assert "2 of 3 points, on 1 machine" in done.stdout


def test_what_asks_a_single_run_is_refused(spread: Path, tmp_path: Path) -> None:
    done = webdyno_here("report", "sweep", "--format=json", folder=tmp_path)
    assert "give the folder of one of them" in done.stderr
    done = webdyno_here("resume", "sweep", "--time=5m", folder=tmp_path)
    assert "--time is for a single run" in done.stderr
    (spread / "spread.json").write_text("{")
    done = webdyno_here("resume", "sweep", folder=tmp_path)
    assert (done.returncode, "not the head of a spread" in done.stderr) == (2, True)
