"""Streamed responses in real runs: servers whose events come at known times."""

import sys
from pathlib import Path

import pytest

from e2e.commands import slots, webdyno
from webdyno.measure.folder import RunFolder

STREAMER = """
import http.server, os, time

FIRST_S, GAP_S = float(os.environ["FIRST_S"]), float(os.environ["GAP_S"])

class Streamer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        time.sleep(FIRST_S)
        for number in range(4):
            event = b"data: %d\\n\\n" % number
            self.wfile.write(b"%x\\r\\n%s\\r\\n" % (len(event), event))
            time.sleep(GAP_S)
        self.wfile.write(b"0\\r\\n\\r\\n")

    def log_message(self, *_): pass

address = os.environ["HOST"], int(os.environ["PORT"])
http.server.ThreadingHTTPServer(address, Streamer).serve_forever()
"""
WITHIN_S = 420.0
"""A noisy machine makes such runs six minutes long."""
EXPERIMENT = """
title = "Tokens"
question = "Which one begins to answer sooner?"
site = "own"
load.connections = 4
[measure]
decide_on = "first_event_p50_us"
budget_s = "15s"
max_rounds = 6
[[requests]]
path = "/chat"
method = "POST"
json = {{ prompt = "Hello" }}
events = "sse"
[variants.eager]
stack = "cmd:{python} streamer.py"
environment = {{ FIRST_S = "0.01", GAP_S = "0.005" }}
[variants.slow]
stack = "cmd:{python} streamer.py"
environment = {{ FIRST_S = "0.04", GAP_S = "0.005" }}
"""


@pytest.mark.long
def test_the_time_to_the_first_event_is_compared(home: Path) -> None:
    (home / "streamer.py").write_text(STREAMER)
    (home / "tokens.toml").write_text(EXPERIMENT.format(python=sys.executable))
    done = webdyno("run", "tokens.toml", "--output", "run", "--yes", folder=home)
    assert "time to first event" in done.stdout, done.stdout + done.stderr
    reported = [(slot.variant, slot.load.events) for slot in slots(RunFolder.open(home / "run"))]
    # Where others have the CPUs a short slot may have no response, or only the end of one.
    answered = [
        (variant, events, events.time_to_first_us.min)
        for variant, events in reported
        if events and events.responses and events.time_to_first_us.min is not None
    ]
    assert {variant for variant, _, _ in answered} == {"eager", "slow"}
    for variant, events, first_us in answered:
        assert events.per_response == 4
        # A sleep never ends early: these are the least that can be true.
        least_us = 40_000 if variant == "slow" else 10_000
        assert first_us >= least_us * 0.99
        assert (events.gap_us.p50 or 0) >= 5_000 * 0.9


def test_other_generators_are_refused_before_anything_runs(home: Path) -> None:
    (home / "streamer.py").write_text(STREAMER)
    written = EXPERIMENT.format(python=sys.executable)
    (home / "tokens.toml").write_text('generator = "wrk"\n' + written)
    done = webdyno("run", "tokens.toml", "--output", "run", "--yes", folder=home)
    assert done.returncode == 2, done.stdout
    assert "wrk" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.measures
def test_a_first_token_that_comes_5_percent_sooner_is_found(home: Path) -> None:
    """By the command of the guide, at shorter times."""
    done = webdyno(
        *("compare", "new=model-server", "old=model-server"),
        *("--set", "new.ttft_ms=38", "--set", "old.ttft_ms=40"),
        *("--set", "new.itl_ms=2", "--set", "old.itl_ms=2"),
        *("--set", "measure.decide_on=first_event_p50_us", "--set", "measure.slot_s=0.5"),
        *("--output", "run", "--yes"),
        folder=home,
        within_s=WITHIN_S,
    )
    assert "new is FASTER" in done.stdout, done.stdout + done.stderr
    for slot in slots(RunFolder.open(home / "run")):
        assert slot.load.events is not None
        assert slot.load.events.per_response == 20
        assert slot.load.failures.total == 0


@pytest.mark.measures
def test_goodput_is_compared(home: Path) -> None:
    """One of them keeps the limit on its first token, the other one in half of its responses."""
    done = webdyno(
        *("compare", "new=model-server", "old=model-server"),
        *("--set", "new.ttft_ms=20", "--set", "old.ttft_ms=40", "--set", "old.jitter=0.5"),
        *("--set", "new.itl_ms=2", "--set", "old.itl_ms=2"),
        *("--set", 'load.goodput=["ttft<40ms", "latency<2s"]'),
        *("--set", "measure.decide_on=goodput_rps", "--set", "measure.slot_s=0.5"),
        *("--output", "run", "--yes"),
        folder=home,
        within_s=WITHIN_S,
    )
    assert "new is FASTER" in done.stdout, done.stdout + done.stderr
    assert "the goodput of old" in done.stdout
