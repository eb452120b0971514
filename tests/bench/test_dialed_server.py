"""The server of dialed cost: what a request costs is what was dialed."""

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import truth
from rig.programs import build

REQUEST = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"
REQUESTS = 200
READY_WITHIN_S = 10.0


@contextmanager
def serving(*options: str) -> Iterator[tuple[int, socket.socket]]:
    """Run the server; give its process id and a connection."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        host, port = probe.getsockname()
    command = [str(build(truth.SERVER)[truth.SERVER]), f"--listen={host}:{port}", *options]
    with subprocess.Popen(command) as process:
        try:
            with connected(host, port) as connection:
                yield process.pid, connection
        finally:
            process.kill()


def connected(host: str, port: int) -> socket.socket:
    end_s = time.monotonic() + READY_WITHIN_S
    while True:
        try:
            return socket.create_connection((host, port), timeout=READY_WITHIN_S)
        except ConnectionRefusedError:
            if time.monotonic() > end_s:
                raise
            time.sleep(0.01)


def ask(connection: socket.socket, times: int) -> None:
    for _ in range(times):
        connection.sendall(REQUEST)
        response = b""
        while not response.endswith(b"Hello, World!"):
            response += connection.recv(4096)
        assert response.startswith(b"HTTP/1.1 200 OK\r\n")


def cpu_s(pid: int) -> float:
    """CPU time of all threads; the first figure of schedstat is in nanoseconds."""
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


def resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_memory_leaks_by_time_as_fast_as_was_dialed() -> None:
    with serving("--cost-us=0", "--leak-bytes-per-s=10e6") as (pid, connection):
        ask(connection, 1)
        before_bytes, began_s = resident_bytes(pid), time.monotonic()
        time.sleep(1)
        taken_bytes, took_s = resident_bytes(pid) - before_bytes, time.monotonic() - began_s
    assert taken_bytes == pytest.approx(10e6 * took_s, abs=2.5e6)


@pytest.mark.parametrize("options", [[], ["--sleep-ms=1"], ["--workers=2"]])
@pytest.mark.parametrize("cost_us", [500, 1_000])
def test_requests_cost_what_was_dialed(cost_us: int, options: list[str]) -> None:
    with serving(f"--cost-us={cost_us}", *options) as (pid, connection):
        ask(connection, 1)
        before_s = cpu_s(pid)
        ask(connection, REQUESTS)
        used_s = cpu_s(pid) - before_s
    assert used_s == pytest.approx(REQUESTS * cost_us / 1e6, rel=0.01)


def test_a_slow_start_costs_more_and_fades() -> None:
    with serving("--cost-us=500", "--slow-start=3", "--slow-start-s=0.2") as (pid, connection):
        ask(connection, 1)
        before_s = cpu_s(pid)
        ask(connection, 20)
        first_s = cpu_s(pid) - before_s
        ask(connection, 2_000)
        before_s = cpu_s(pid)
        ask(connection, 20)
        last_s = cpu_s(pid) - before_s
    assert first_s > 1.1 * last_s
    assert last_s == pytest.approx(20 * 500e-6, rel=0.1)


def test_a_request_may_come_in_pieces() -> None:
    with serving("--cost-us=1") as (_, connection):
        for i in range(len(REQUEST)):
            connection.sendall(REQUEST[i : i + 1])
        assert connection.recv(4096).endswith(b"Hello, World!")


def test_a_dear_start_costs_so_many_times_as_much() -> None:
    for share, times in ((0, 1), (1, 3)):
        dear = ("--dear-times=3", f"--dear-share={share}")
        with serving("--cost-us=500", *dear) as (pid, connection):
            ask(connection, REQUESTS)
            assert cpu_s(pid) == pytest.approx(REQUESTS * 500e-6 * times, rel=0.1)
