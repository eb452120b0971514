"""Servers that answer without end, or hardly, and disks that are full: each one clear message."""

import itertools
import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from e2e.commands import (
    FEW,
    WEBDYNO,
    environment,
    left_behind,
    run_rounds,
    scratch,
    statuses,
    webdyno,
)
from manners import HELLO, Manners, saying, serving
from variants import further

OK = b"HTTP/1.1 200 OK\r\n"
HINT = b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n"


def endless(connection: socket.socket) -> None:
    """Answer with a body that has no end."""
    connection.recv(65_536)
    connection.sendall(OK + b"\r\n")
    while True:
        connection.sendall(bytes(2**20))
        time.sleep(0.05)  # or it would take all CPUs


def many_headers(connection: socket.socket) -> None:
    """Answer with headers that have no end."""
    connection.recv(65_536)
    connection.sendall(OK)
    for number in itertools.count():
        connection.sendall(b"X-%d: %s\r\n" % (number, b"a" * 1000))


def trickled(connection: socket.socket) -> None:
    """Answer with a byte at a time."""
    connection.recv(65_536)
    connection.sendall(OK + b"Content-Length: 99999\r\n\r\n")
    while True:
        connection.sendall(b"1")
        time.sleep(0.05)


def only_hints(connection: socket.socket) -> None:
    """Answer with hints of a response, and never with one."""
    connection.recv(65_536)
    while True:
        connection.sendall(HINT)


HOSTILE: dict[str, tuple[Manners, str]] = {
    "endless": (endless, "doesn't end: "),
    "many-headers": (many_headers, "can't be read: the head is longer"),
    "trickled": (trickled, "doesn't end: "),
    "only-hints": (only_hints, "doesn't end: "),
    "another-protocol": (
        saying(b"HTTP/1.1 101 Switching Protocols\r\n\r\n"),
        "can't be read: status 101",
    ),
    "huge": (
        saying(OK + b"Content-Length: 99999999999999999999999\r\n\r\nx"),
        "can't be read: Content-Length",
    ),
    "huge-chunk": (
        saying(OK + b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffffffff\r\nx"),
        "can't be read: a chunk's size",
    ),
    "bytes": (saying(b"\0\xff" * 5000), "can't be read: the status line"),
}


# "only-hints" is waited for as long as "trickled" is, ten seconds and more; lengths and bytes that
# can't be read are refused as "another-protocol" is, and by the engine's own tests.
FURTHER = {"only-hints", "huge", "huge-chunk", "bytes"}


@pytest.mark.parametrize("name", [further(it) if it in FURTHER else it for it in HOSTILE])
def test_a_hostile_server_is_reported_and_not_waited_for(name: str, open_folder: Path) -> None:
    manners, says = HOSTILE[name]
    with serving(manners) as port, serving(saying(HELLO)) as other:
        variants = (f"url:http://127.0.0.1:{port}", f"url:http://127.0.0.1:{other}")
        done = webdyno("compare", *variants, "--yes", "--output=out", *FEW, folder=open_folder)
    assert done.returncode == 3, done
    (message,) = [line for line in done.stderr.splitlines() if line.startswith("webdyno: ")]
    assert f"127.0.0.1:{port}" in message
    assert says in message
    assert "Traceback" not in done.stderr
    assert "defect" not in done.stderr


def test_a_server_with_early_hints_is_measured(open_folder: Path) -> None:
    with serving(saying(HINT + HELLO)) as port, serving(saying(HELLO)) as other:
        variants = (f"url:http://127.0.0.1:{port}", f"url:http://127.0.0.1:{other}")
        reported = run_rounds(1, "compare", *variants, "--yes", *FEW, folder=open_folder)
    assert statuses(open_folder) == {"200"}
    assert not re.search(r"\b103\b", reported)  # ports have such digits
    assert "webdyno: " not in reported


DEEP = """
import glob, http.server, os, sys
places = [it for it in glob.glob(sys.argv[2] + "/webdyno-*/live/*/*") if os.path.isdir(it)]
for place in [it for it in places if os.access(it, os.W_OK) and not os.listdir(it)]:
    print("deep", flush=True)
    fd = os.open(place, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d", dir_fd=fd)
        fd, old = os.open("d", os.O_RDONLY, dir_fd=fd), fd
        os.close(old)
http.server.test(http.server.SimpleHTTPRequestHandler, port=int(sys.argv[1]), bind="127.0.0.1")
"""


def test_folders_of_a_server_that_are_very_deep_are_removed(open_folder: Path) -> None:
    (open_folder / "deep.py").write_text(DEEP)
    variant = f"cmd:{sys.executable} {open_folder}/deep.py $PORT {scratch(open_folder)}"
    done = webdyno("compare", variant, "nginx", "--yes", "--output=out", *FEW, folder=open_folder)
    assert "Traceback" not in done.stderr
    assert "defect" not in done.stderr
    assert any(
        "deep" in log.read_text(errors="replace") for log in open_folder.glob("out/**/*.log")
    )
    assert not list(scratch(open_folder).glob("webdyno-*/live/*"))
    assert left_behind(open_folder) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small disk")
def test_a_full_disk_ends_a_run_with_one_message(open_folder: Path) -> None:
    small = open_folder / "small"
    small.mkdir()
    with serving(saying(HELLO)) as one, serving(saying(HELLO)) as other:
        variants = [f"url:http://127.0.0.1:{port}" for port in (one, other)]
        words = ["compare", *variants, "--yes", "--output", "small/out", "--no-report", *FEW]
        mounted = 'mount -t tmpfs -o size=48k tmpfs small && exec "$@"'
        done = subprocess.run(
            ["/usr/bin/unshare", "--mount", "/bin/sh", "-c", mounted, "sh", WEBDYNO, *words],
            cwd=open_folder,
            env=environment(open_folder),
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
            timeout=120,
        )
    assert done.returncode == 3, done
    (message,) = [line for line in done.stderr.splitlines() if line.startswith("webdyno: ")]
    assert "No space left" in message
    assert "small" in message
