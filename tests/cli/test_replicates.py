"""What is refused before a cluster is joined, and what is told while a fleet measures."""

import socket
from pathlib import Path

import pytest

from builders import SimulatedArm, simulated_run
from e2e.commands import webdyno_here
from webdyno.cli.hosts import BlockNews

REFUSED = {
    ("--replicates=1",): "--replicates 1: two hosts or more",
    ("--replicates=3",): "which cluster? Give its head with --cluster",
    ("--replicates=3", "--cluster=10.0.0.1:6379"): "RAY_AUTH_MODE=token",
    ("--replicates=3", "--why"): "--why asks a single run",
    ("--replicates=3", "--fail-on=nginx.rate_rps < -5%"): "--fail-on asks a single run",
    ("--bench=cluster",): "which cluster? Give its head with --cluster",
    ("--set=bench.hosts.servers=web1",): 'hosts and services need kind = "cluster" under [bench]',
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_cannot_be_is_refused_before_anything_starts(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("RAY_ADDRESS", "RAY_AUTH_MODE"):
        monkeypatch.delenv(name, raising=False)
    done = webdyno_here("run", "static-hello", *words, "--out=out", folder=tmp_path)
    assert done.returncode == 2
    assert REFUSED[words] in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_calibration_is_of_this_machine(tmp_path: Path) -> None:
    done = webdyno_here("calibrate", "--bench=cluster", folder=tmp_path)
    assert (done.returncode, "that is for runs" in done.stderr) == (2, True)


def test_a_cluster_that_is_not_there_is_told_at_once(
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


def test_blocks_are_told_as_they_come(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = simulated_run({"nginx": SimulatedArm(rate_rps=40_000), "b": SimulatedArm()}, blocks=5)
    folder = run.stored(tmp_path / "host1")
    records = tmp_path / "host1/slots.jsonl"
    whole, news = records.read_bytes(), BlockNews(2, quiet=False)
    for end in (*range(0, len(whole), 700), len(whole)):  # cut anywhere
        records.write_bytes(whole[:end])
        news("host1", folder)
    told = capsys.readouterr().err.splitlines()
    assert [line.partition(":")[0] for line in told] == [f"host1, block {n}" for n in range(1, 6)]
    sure = [line for line in told if "÷" in line]
    assert [line.partition(":")[0] for line in sure] == ["host1, block 2", "host1, block 4"]


def test_of_many_hosts_only_how_far_they_are_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arms = {"nginx": SimulatedArm(rate_rps=40_000), "b": SimulatedArm()}
    folder = simulated_run(arms, blocks=4).stored(tmp_path / "host")
    records = folder / "slots.jsonl"
    lines, news = records.read_bytes().splitlines(keepends=True), BlockNews(1000, quiet=False)
    ends = [n for n, line in enumerate(lines, 1) if line.startswith(b'{"kind":"block"')]
    for end in ends:
        records.write_bytes(b"".join(lines[:end]))
        for number in range(1000):
            news(f"host{number}", folder)
    assert capsys.readouterr().err.splitlines() == [
        f"{n},000 blocks on 1,000 hosts, {n} on each" for n in range(1, 5)
    ]
