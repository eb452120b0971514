"""A whole log of known truth, in nginx's JSON: all of it comes back, within what docs state."""

import json
from pathlib import Path

import numpy as np
import pytest

from traffic.made import BEGIN_S, read, zipf_draws
from variants import further
from webdyno.traffic import Manner, traffic_of

SESSIONS, LENGTH, PAUSE_S, VISITORS_PER_S = 12_000, 5.0, 1.0, 2.0
PATHS, EXPONENT, HEADS, EACH = 200, 0.8, 0.1, 4


def made_log(seed: int, together: int) -> str:
    """Visitors arrive `together` at a time, as Poisson; each has a geometric number of requests."""
    rng = np.random.default_rng(seed)
    groups = np.cumsum(rng.exponential(together / VISITORS_PER_S, SESSIONS // together))
    starts = BEGIN_S + np.repeat(groups, together)
    lengths = rng.geometric(1 / LENGTH, len(starts))
    paths = iter(zipf_draws(seed, int(lengths.sum()), PATHS, EXPONENT).tolist())
    lines = []
    for visitor, (start, length) in enumerate(zip(starts, lengths, strict=True)):
        pauses = np.concatenate(([0.0], rng.exponential(PAUSE_S, length - 1)))
        for nth, time_s in enumerate(start + np.cumsum(pauses)):
            method = "HEAD" if rng.random() < HEADS else "GET"
            record = {
                "msec": f"{time_s:.3f}",
                "remote_addr": f"10.{visitor >> 16}.{visitor >> 8 & 255}.{visitor & 255}",
                "request": f"{method} /page/{next(paths)} HTTP/1.1",
                "status": 200,
                "body_bytes_sent": 1_000,
                "connection_requests": nth % EACH + 1,
            }
            lines.append((time_s, json.dumps(record)))
    # When nobody comes any more the last ones still trickle out, which is no burst.
    return "\n".join(text for time_s, text in sorted(lines) if time_s <= starts[-1])


@pytest.mark.parametrize("seed", [1, further(2)])
@pytest.mark.parametrize("together", [1, 20])
def test_a_log_gives_back_what_it_was_made_with(tmp_path: Path, seed: int, together: int) -> None:
    found = traffic_of(read(tmp_path / "a.log", made_log(seed, together)), Manner()).workload
    assert found.popularity.kind == "zipf"
    assert found.popularity.paths == PATHS
    assert found.popularity.zipf == pytest.approx(EXPONENT, rel=0.03)
    assert found.methods["HEAD"] == pytest.approx(HEADS, abs=0.01)
    assert found.sessions.sessions == SESSIONS
    assert found.sessions.requests.mean == pytest.approx(LENGTH, rel=0.05)
    assert found.sessions.pause_s is not None
    assert found.sessions.pause_s.mean == pytest.approx(PAUSE_S, rel=0.05)
    assert found.arrivals.rate_per_s == pytest.approx(VISITORS_PER_S * LENGTH, rel=0.1)
    assert found.response_bytes
    assert found.response_bytes.mean == 1_000
    assert found.connections is not None
    firsts = 1 / (1 - (1 - 1 / LENGTH) ** EACH) / LENGTH  # of a geometric length, each EACH-th
    assert found.connections.requests_each == pytest.approx(1 / firsts, rel=0.05)
    # Windows much longer than visits see whole groups: E[S²]/E[S] of what a group asks for.
    whole_groups = (together * LENGTH * (LENGTH - 1) + (together * LENGTH) ** 2) / (
        together * LENGTH
    )
    assert 1 < found.arrivals.dispersion["60s"] < 1.3 * whole_groups
    assert found.arrivals.dispersion["60s"] > 0.65 * whole_groups
    assert found.arrivals.dispersion["1s"] < found.arrivals.dispersion["60s"]
