"""`webdyno load` on a real nginx: limits, results of several clients, the view on a terminal."""

import json
import os
import pty
import subprocess
import termios
from pathlib import Path

import pytest

from e2e.commands import WEBDYNO, environment, webdyno
from webdyno.model.exit_codes import Exit

PACED = ("-c", "2", "--think", "5ms", "--window", "100ms")
"""So slow that the client is never the limit."""


@pytest.mark.parametrize("flag", ["--fail-if", "--stop-if"])
def test_a_limit_that_is_crossed_is_worse(url: str, flag: str, tmp_path: Path) -> None:
    words = ["load", f"{url}/none.txt", *PACED, "--time", "1s", flag, "failures > 5%"]
    done = webdyno(*words, folder=tmp_path)
    assert done.returncode == Exit.WORSE, done.stderr
    assert "failures>5% is true: it is 100.000%" in done.stderr
    assert ("stopped after" in done.stderr) == (flag == "--stop-if")


def test_results_of_several_clients_are_merged(url: str, tmp_path: Path) -> None:
    for name in ("a", "b"):
        words = ["load", f"{url}/hello.txt", *PACED, "--time", "400ms", "--format", "json"]
        (tmp_path / f"{name}.json").write_text(webdyno(*words, folder=tmp_path).stdout)
    one, other = (json.loads((tmp_path / f"{name}.json").read_text()) for name in ("a", "b"))
    merged = webdyno("load", "merge", "a.json", "b.json", "--format", "json", folder=tmp_path)
    requests = json.loads(merged.stdout)["requests"]
    assert requests["completed"] == one["requests"]["completed"] + other["requests"]["completed"]
    limited = ("--fail-if", "p99 < 60s")
    worse = webdyno("load", "merge", "a.json", "b.json", *limited, folder=tmp_path)
    assert worse.returncode == Exit.WORSE
    assert "Throughput " in worse.stdout


def test_a_terminal_shows_how_it_goes(url: str, tmp_path: Path) -> None:
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (24, 60))
    with subprocess.Popen(
        [WEBDYNO, "load", f"{url}/hello.txt", *PACED, "--time", "1s", "--fail-if", "p99 > 60s"],
        env=environment(tmp_path) | {"TERM": "xterm"},
        stdin=slave,
        stdout=subprocess.PIPE,
        stderr=slave,
        text=True,
    ) as running:
        os.close(slave)
        drawn = bytearray()
        try:
            while more := os.read(master, 4096):
                drawn += more
        except OSError:  # Linux's word for the end of a terminal
            pass
        result, _ = running.communicate()
    os.close(master)
    assert "Throughput " in result
    frames = drawn.decode().split("\x1b[3A\r\x1b[J")
    assert len(frames) >= 5, frames
    frame = frames[-2].splitlines()
    assert [line.split()[0] for line in frame] == ["load", "latency", "failures"]
    assert "█" in frame[0]
    assert max(map(len, frame)) < 60


def test_metrics_and_a_log_of_requests_agree_with_the_result(url: str, tmp_path: Path) -> None:
    files = ("--prometheus", "load.prom", "--log-requests", "log.jsonl", "--log-every", "2")
    counted = ("--count", "100", "--format", "json")
    done = webdyno("load", f"{url}/hello.txt", *PACED, *counted, *files, folder=tmp_path)
    completed = json.loads(done.stdout)["requests"]["completed"]
    assert completed == 100, done.stderr
    metrics = (tmp_path / "load.prom").read_text().splitlines()
    assert "loadgen_valid_responses_total 100" in metrics
    assert 'loadgen_responses_total{status="200"} 100' in metrics
    assert "loadgen_running 0" in metrics
    logged = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert len(logged) == 50
    assert {(each["status"], each["body_bytes"]) for each in logged} == {(200, 13)}


@pytest.mark.parametrize(
    "pace",
    [
        ["--conn-ramp", "200ms", "-c", "4"],
        ["--rate", "200", "--burst", "20"],
        ["--rate-per-conn", "20", "--poisson", "-c", "4"],
    ],
    ids=" ".join,
)
def test_every_pace_is_kept(url: str, tmp_path: Path, pace: list[str]) -> None:
    usual = ("--think", "5ms") if "--conn-ramp" in pace else ()
    words = ("load", f"{url}/hello.txt", *pace, *usual, "--time", "400ms", "--format", "json")
    done = webdyno(*words, folder=tmp_path)
    requests = json.loads(done.stdout)["requests"]
    assert requests["completed"], done.stderr
    assert requests["completed"] + requests["unanswered"] == requests["sent"]
