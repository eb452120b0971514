"""A node's end, shown by processes that have its mark and are no Ray; and orders that are none."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from pathlib import Path

import psutil
import pytest

from ordinary_user import NOBODY, needs_ordinary_user
from waiting import wait_until
from webdyno.cluster import node
from webdyno.cluster.node import StartNode, StopNode

SAYS_READY = "print('ready', flush=True); time.sleep(600)"
DEAF = f"import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); {SAYS_READY}"
OBEYS = f"import time; {SAYS_READY}"


@pytest.fixture
def address() -> str:
    """Of no machine. Tests may run next to each other, in processes that each have their own."""
    return f"10.255.{os.getpid() % 250}.1"


@contextmanager
def began(
    program: str, marked: Mapping[str, str] | None = None, folder: Path | None = None
) -> Iterator["subprocess.Popen[bytes]"]:
    """Start it in a session of its own; wait until it is ready."""
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        env=marked or {},
        cwd=folder,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout
    with process.stdout as said:
        said.readline()
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def order(address: str = "10.255.255.1", **changes: str) -> bytes:
    reported = StartNode(
        webdyno=version("webdyno"), address=address, port=6379, head=None, token="t" * 32
    )
    return reported.model_copy(update=changes).model_dump_json().encode()


def test_all_with_the_mark_end_and_nobody_else(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node, "ENDS_WITHIN_S", 1.0)
    mine, theirs = {node.MARK: address}, {node.MARK: f"{address}0"}
    with ExitStack() as exits:
        deaf, obeys, other = (
            exits.enter_context(began(program, marked))
            for program, marked in ((DEAF, mine), (OBEYS, mine), (OBEYS, theirs))
        )
        reported = node.follow_order(StopNode(address=address).model_dump_json().encode())
        assert (reported.wrong, reported.ended, reported.killed) == (None, 2, 1)
        assert (deaf.wait(), obeys.wait(), other.poll()) == (-9, -15, None)
    again = node.follow_order(StopNode(address=address).model_dump_json().encode())
    assert (again.wrong, again.ended) == (None, 0)


def test_processes_of_its_session_end_without_the_mark(address: str) -> None:
    program = f"import subprocess; p = subprocess.Popen(['sleep', '600'], env={{}}); {OBEYS}"
    with began(program, {node.MARK: address}):
        reported = node.follow_order(StopNode(address=address).model_dump_json().encode())
        assert (reported.ended, reported.killed) == (2, 0)


def test_processes_in_its_folder_end_without_the_mark(address: str, tmp_path: Path) -> None:
    (folder := tmp_path / f"webdyno-node-{address}-x").mkdir()
    (other := tmp_path / f"webdyno-node-{address}0-x").mkdir()
    with began(OBEYS, folder=folder), began(OBEYS, folder=other) as stays:
        reported = node.follow_order(StopNode(address=address).model_dump_json().encode())
        assert (reported.ended, reported.killed) == (1, 0)
        assert stays.poll() is None


@needs_ordinary_user
def test_nothing_ends_for_the_mark_of_another_user(address: str) -> None:
    """He could put it into a session in which root's processes are."""
    words = ["setpriv", "--reuid", str(NOBODY), "--clear-groups", "sleep", "600"]
    program = (
        f"import subprocess; p = subprocess.Popen({words}, env={{{node.MARK!r}: {address!r}}})"
    )
    with began(f"{program}; {OBEYS}") as stays:
        (child,) = psutil.Process(stays.pid).children()
        wait_until(lambda: child.name() == "sleep")
        reported = node.follow_order(StopNode(address=address).model_dump_json().encode())
        assert reported.ended == 0
        assert stays.poll() is None
        child.kill()


def test_one_node_at_a_time(address: str) -> None:
    with began(OBEYS, {node.MARK: address}):
        assert "runs there already" in str(node.follow_order(order(address)).wrong)


@pytest.mark.parametrize(
    ("reported", "wrong"),
    [
        (order(), "10.255.255.1 is no address of its own"),
        (order(webdyno="0.0.1"), "the order comes from 0.0.1: install the same"),
        (b'{"order": "dance"}', "doesn't know this order"),
        (b"", "doesn't know this order"),
    ],
)
def test_what_cannot_be_carried_out_is_reported(reported: bytes, wrong: str) -> None:
    assert wrong in str(node.follow_order(reported).wrong)
