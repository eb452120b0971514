"""What threads of real processes wait for."""

import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator

import pytest

from waiting import wait_until
from webdyno.probes import processes as probe

THREADS = 4
PROGRAM = """
import os, socket, sys, threading, time
kind, port = sys.argv[1], int(sys.argv[2])
lock, idle = threading.Lock(), threading.Lock()
idle.acquire()
lock.acquire()
threading.Thread(target=idle.acquire, daemon=True).start()  # waits for work
print("ready", flush=True)
sys.stdin.readline()

def work():
    if kind == "locks":
        lock.acquire()
    elif kind == "pauses":
        time.sleep(60)
    elif kind == "backends":
        backend = socket.create_connection(("127.0.0.1", port))
        backend.recv(1)
    elif kind == "polled":
        backend = socket.create_connection(("127.0.0.1", port))
        backend.settimeout(60)
        backend.recv(1)

for _ in range(4):
    threading.Thread(target=work, daemon=True).start()
print("works", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def backend_port() -> Iterator[int]:
    """A port where whoever asks gets no response."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


@pytest.mark.skipif(not probe.CALLS, reason="the calls of this machine have unknown numbers")
@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        ("locks", "locks"),
        ("pauses", "pauses"),
        ("backends", "backends"),
        ("polled", "backends"),
        ("nothing", ""),
    ],
)
def test_threads_are_blocked_by_what_they_wait_for(
    kind: str, wanted: str, backend_port: int
) -> None:
    words = [sys.executable, "-c", PROGRAM, kind, str(backend_port)]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin
        assert process.stdout
        try:
            assert process.stdout.readline() == "ready\n"
            wait_until(lambda: bool(idle_locks(process.pid)))
            idle = idle_locks(process.pid)
            process.stdin.write("\n")
            process.stdin.flush()
            assert process.stdout.readline() == "works\n"
            expected = Counter({wanted: THREADS} if wanted else {})
            seen = Counter[str]()
            for _ in range(100):
                seen = Counter(probe.what_blocks([process.pid], idle))
                if seen == expected and wanted:
                    break
                time.sleep(0.02)
            assert seen == expected
        finally:
            process.kill()


def idle_locks(pid: int) -> set[tuple[int, int]]:
    """Where threads wait that have nothing to do."""
    return {(each.pid, each.first) for each in probe._waiting([pid]) if each.meaning == "lock"}
