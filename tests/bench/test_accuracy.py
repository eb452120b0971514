"""The server with known delays, and the benchmark that rests on it, on real programs, in short."""

import http.client
import os
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from rich.console import Console

from accuracy import Sample, all_samples
from bench.test_peers import run
from rig import lab, truth
from rig.delay_server import serve_while
from rig.programs import build
from rig.truth import Constant

ASKED = 3


def ask(url: str) -> list[bytes]:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=5)
    responses = []
    for _ in range(ASKED):
        connection.request("GET", "/")
        responses.append(connection.getresponse().read())
    connection.close()
    return responses


@pytest.mark.parametrize(("tolerance_ms", "too_late"), [(0.0, ASKED), (120_000.0, 0)])
def test_answers_beyond_their_tolerance_are_counted(
    monkeypatch: pytest.MonkeyPatch, tolerance_ms: float, too_late: int
) -> None:
    monkeypatch.setattr(truth, "TOLERANCE_MS", tolerance_ms)
    monkeypatch.setattr(truth, "TOLERANCE_SHARE", 0.0)
    cpus = list(os.sched_getaffinity(0))
    responses, kept = serve_while(ask, build("delay_server")["delay_server"], Constant(1), cpus)
    assert responses == [b"Hello, World!"] * ASKED
    assert (kept.requests, kept.too_late) == (ASKED, too_late)
    assert kept.sound == (too_late == 0)
    assert set(kept.late_us) == {"p50", "p99", "max"}


def sample(client: str, p99_ms: float, *, sound: bool = True) -> Sample:
    """A frozen server's, whose percentiles are right but for p99."""
    truth_ms = {50.0: 1.0, 99.0: 190.0}
    reported_ms = truth_ms | {99.0: p99_ms}
    return Sample(
        at=datetime.now(UTC),
        machine="",
        commit="",
        delays="frozen",
        client=client,
        awake=True,
        requests=10_000,
        too_late=0 if sound else 50,
        sound=sound,
        percentiles_ms=reported_ms,
        truth_ms=truth_ms,
        right=truth.all_within(reported_ms, truth_ms),
        others=0.0,
    )


def test_all_results_are_counted_by_client_and_only_sound_ones_judged(tmp_path: Path) -> None:
    results = tmp_path / "accuracy.jsonl"
    for each in (
        sample("loadgen", 192.4),
        sample("loadgen", 250.0, sound=False),
        sample("wrk", 90.0),
    ):
        lab.append(results, each)
    console = Console(record=True, width=150)
    console.print(all_samples(lab.read_as(results, Sample)))
    lines = [line for line in console.export_text().splitlines() if "frozen" in line]
    rows = [[cell.strip() for cell in line.split("│")] for line in lines]
    assert {row[2]: row[4:8] for row in rows} == {
        "loadgen": ["2", "1", "1 of 1", "50%"],
        "wrk": ["1", "1", "0 of 1", "2083%"],
    }


@pytest.mark.long
def test_one_short_round(tmp_path: Path) -> None:
    done = run(
        *("--delays", "constant", "--clients", "loadgen,loadgen-kernel-times", "--rounds", "1"),
        *("--duration", "1", "--results", str(tmp_path / "accuracy.jsonl")),
        script="accuracy.py",
    )
    assert done.returncode == 0, done.stderr
    assert "goal: loadgen within 2% + 1 ms of the truth at every percentile" in done.stdout
    assert "goals for the send delay's p99 by budget: 0 at most 200" in done.stdout
    assert "arrival p50" in done.stdout
    assert "goal: loadgen-kernel-times within" in done.stdout
    samples = lab.read_as(tmp_path / "accuracy.jsonl", Sample)
    assert {each.client for each in samples} == {"loadgen", "loadgen-kernel-times"}


@pytest.mark.measures
@pytest.mark.parametrize("protocol", ["grpc", "http3", "websocket"])
def test_percentiles_of_other_protocols_are_right(protocol: str, tmp_path: Path) -> None:
    results = tmp_path / "accuracy.jsonl"
    done = run(
        *("--delays", "bimodal,frozen", "--clients", f"loadgen-{protocol}", "--rounds", "1"),
        *("--repeats", "3", "--duration", "2", "--no-pacing", "--results", str(results)),
        script="accuracy.py",
    )
    assert done.returncode == 0, done.stderr
    judged = [each for each in lab.read_as(results, Sample) if each.sound]
    assert judged, done.stdout
    assert all(each.right for each in judged), done.stdout


def test_a_server_shows_how_late_requests_arrived() -> None:
    server, cpus = build("delay_server")["delay_server"], list(os.sched_getaffinity(0))
    _, kept = serve_while(ask, server, Constant(1), cpus, due_per_s=1e6)
    # One after the other, each answered after 1 ms, though all were due at once.
    assert kept.arrived_late_us is not None
    assert kept.arrived_late_us["max"] >= (ASKED - 1) * 990
