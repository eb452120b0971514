"""`webdyno load` on a real nginx: limits, results of several clients, the view on a terminal."""

import json
import os
import pty
import re
import socket
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from e2e.commands import PATIENCE_S, WEBDYNO, environment, webdyno
from manners import HELLO, serving
from webdyno.core.errors import Exit

FEW_PORTS = (
    'ip link set lo up && echo 50000 50007 >/proc/sys/net/ipv4/ip_local_port_range && exec "$@"'
)
WITHOUT_PORTS = """
import socket, subprocess, sys
listening = socket.create_server(("127.0.0.1", 8080), backlog=100)
held = []
try:
    while True:
        held.append(socket.create_connection(("127.0.0.1", 8080)))
except OSError:
    pass  # no port is left
sys.exit(subprocess.run(sys.argv[1:]).returncode)
"""
CAN_UNSHARE = subprocess.run(["unshare", "--net", "true"], check=False).returncode == 0
PACED = ("-c", "2", "--think", "5ms", "--window", "100ms")
"""So slow that the client is never the limit."""


def undisturbed(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a load, again while a busy machine kept the client itself from its CPU."""
    done = webdyno(*words, folder=folder)
    deadline = time.monotonic() + PATIENCE_S
    while "the client was saturated in" in done.stderr and time.monotonic() < deadline:
        done = webdyno(*words, folder=folder)
    return done


def test_where_nothing_is_answered_that_comes_first(tmp_path: Path) -> None:
    done = webdyno("load", "http://127.0.0.1:1", "--count", "2", "--time", "1s", folder=tmp_path)
    assert done.returncode == 1
    assert re.match(r"FAILED +no valid response: .*refused", done.stdout)


@pytest.mark.parametrize("flag", ["--fail-if", "--stop-if"])
def test_a_limit_that_is_crossed_is_worse(url: str, flag: str, tmp_path: Path) -> None:
    words = ["load", f"{url}/none.txt", *PACED, "--time", "1s", flag, "failures > 5%"]
    done = webdyno(*words, folder=tmp_path)
    assert done.returncode == Exit.WORSE, done.stderr
    assert "failures > 5% is true: it is 100.000%" in done.stderr
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


def test_a_server_that_closes_under_requests_can_be_a_failure(tmp_path: Path) -> None:
    def forgetful(connection: socket.socket) -> None:
        for _ in range(2):
            connection.recv(65_536)
            connection.sendall(HELLO)
        connection.recv(65_536)

    with serving(forgetful) as port:
        words = ("load", f"http://127.0.0.1:{port}/", *PACED, "--count", "20")
        tolerated = webdyno(*words, "--fail-if", "retried > 60%", folder=tmp_path)
        worse = webdyno(*words, "--fail-if", "retried > 10%", folder=tmp_path)
    assert tolerated.returncode != Exit.WORSE, tolerated.stderr
    assert worse.returncode == Exit.WORSE, worse.stderr


def test_one_request_keeps_to_its_timeout_and_shows_what_came(tmp_path: Path) -> None:
    def drip(connection: socket.socket) -> None:
        connection.recv(65_536)
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:  # until the other side has gone
            connection.sendall(b"drip ")
            time.sleep(0.02)

    with serving(drip) as port:
        words = ("load", f"http://127.0.0.1:{port}/", "--once", "--timeout", "300ms")
        done = webdyno(*words, folder=tmp_path)
    assert done.returncode == Exit.INVALID, done.stderr
    assert "drip drip" in done.stdout
    assert "no full answer within 0.3 s" in done.stdout


def test_a_stream_without_an_end_stops_with_the_load(tmp_path: Path) -> None:
    def stream(connection: socket.socket) -> None:
        connection.recv(65_536)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        while True:  # until the other side has gone
            connection.sendall(b"data: x\n\n")
            time.sleep(0.02)

    with serving(stream) as port:
        words = ("load", f"http://127.0.0.1:{port}/", "-c", "2", "--events", "sse")
        length = ("--time", "500ms", "--timeout", "600s", "--window", "100ms")
        done = webdyno(*words, *length, folder=tmp_path)
    assert "2 streams under way when the load ended" in done.stdout
    assert "TTFT (first event), ITL (event gap)" in done.stdout
    assert "Failed" not in done.stdout


def test_goodput_is_counted_and_limited(tmp_path: Path) -> None:
    def stream(connection: socket.socket) -> None:
        connection.recv(65_536)
        time.sleep(0.05)
        event = b"data: x\n\n"
        head = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
        connection.sendall(head % (2 * len(event)) + 2 * event)

    with serving(stream) as port:
        words = ("load", f"http://127.0.0.1:{port}/", "-c", "1", "--count", "8", "--events", "sse")
        slow = ("--goodput", "ttft<600s", "--goodput", "tpot < 600s", "--goodput", "latency<600s")
        good = undisturbed(*words, *slow, "--fail-if", "ttft p99 > 600s", folder=tmp_path)
        quick = ("--goodput", "ttft<600s", "--goodput", "latency<20ms")
        fails = (
            "--fail-if",
            "ttft p99>20ms",
            "--fail-if",
            "tokens<0.001",
            "--fail-if",
            "goodput<1",
        )
        bad = webdyno(*words, *quick, *fails, folder=tmp_path)
        wrong = webdyno(*words, "--goodput", "itl<5ms", folder=tmp_path)
    assert good.returncode == Exit.OK, good.stderr
    throughput = re.search(r"Throughput +([\d.]+)", good.stdout)
    goodput = re.search(r"goodput ([\d.]+)", good.stdout)
    assert throughput
    assert goodput
    assert throughput[1] == goodput[1]
    # A sleep never ends early.
    assert bad.returncode == Exit.WORSE, bad.stderr
    assert "goodput 0.0 responses/s" in bad.stdout
    assert "ttft p99>20ms is true" in bad.stderr
    assert "goodput<1 is true" in bad.stderr
    assert "tokens" not in bad.stderr
    assert wrong.returncode == Exit.USER_ERROR
    assert "not one of ttft, tpot, latency" in wrong.stderr


@pytest.mark.skipif(not CAN_UNSHARE, reason="no network namespaces here")
def test_a_client_without_local_ports_is_the_limit_itself(tmp_path: Path) -> None:
    within = ("unshare", "--net", "/bin/sh", "-c", FEW_PORTS, "sh")
    load = (str(WEBDYNO), "load", "http://127.0.0.1:8080/", "-c", "1", "--time", "300ms")
    done = subprocess.run(
        [*within, sys.executable, "-c", WITHOUT_PORTS, *load],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == Exit.INVALID, done.stderr
    for words in ("no local port left", "--source", "--keepalive"):
        assert words in done.stdout, done.stdout
        assert words in done.stderr, done.stderr
    assert "fewer connections" not in done.stdout + done.stderr
