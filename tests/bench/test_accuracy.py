"""The server with known delays, and the benchmark that rests on it, on real programs, in short."""

import http.client
import os
from urllib.parse import urlsplit

import pytest

from bench.test_peers import run
from rig import truth
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


@pytest.mark.long
def test_one_short_round() -> None:
    done = run(
        *("--delays", "constant", "--clients", "loadgen", "--rounds", "1", "--duration", "1"),
        script="accuracy.py",
    )
    assert done.returncode == 0, done.stderr
    assert "goal: loadgen within 2% + 1 ms of the truth at every percentile" in done.stdout
    assert "goals for the lag's p99 by budget: 0 at most 200" in done.stdout
    assert "arrival p50" in done.stdout


def test_a_server_tells_how_late_requests_arrived() -> None:
    server, cpus = build("delay_server")["delay_server"], list(os.sched_getaffinity(0))
    _, kept = serve_while(ask, server, Constant(1), cpus, due_per_s=1e6)
    # One after the other, each answered after 1 ms, though all were due at once.
    assert kept.arrived_late_us is not None
    assert kept.arrived_late_us["max"] >= (ASKED - 1) * 990
