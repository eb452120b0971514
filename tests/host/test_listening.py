"""Where processes listen, as people write it."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import cycle

import pytest

from webdyno.host import listening
from webdyno.host.listening import Listens, addresses, holders, holding_alone

LISTENS = (
    "import socket, sys; s = socket.create_server(('127.0.0.1', int(sys.argv[1]))); "
    "print(s.getsockname()[1], flush=True); sys.stdin.read()"
)

JOINS = (
    "import socket, sys; s = socket.socket(type=socket.SOCK_DGRAM); "
    "s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); "
    "s.bind(('127.0.0.1', int(sys.argv[1]))); "
    "len(sys.argv) > 2 and s.connect(('127.0.0.1', 9)); "
    "print(s.getsockname()[1], flush=True); sys.stdin.read()"
)


def test_an_ipv4_address_of_a_socket_for_both_kinds_is_one() -> None:
    """Java's sockets are of that kind: what binds 127.0.0.1 isn't open to others."""
    with socket.socket(socket.AF_INET6) as listening:
        listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listening.bind(("::ffff:127.0.0.1", 0))
        listening.listen()
        port = listening.getsockname()[1]
        assert f"127.0.0.1:{port}" in addresses([os.getpid()])


def test_where_processes_can_not_be_looked_into_the_user_decides(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As those of a program with file capabilities."""

    def refused(_: int) -> set[str]:
        raise PermissionError

    monkeypatch.setattr("webdyno.host.listening._sockets_of", refused)
    ours, us = [os.getpid()], os.geteuid()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        assert holders(ours, Listens(port, None, "127.0.0.1", us), os.getpid()) is None
        stranger = Listens(port, None, "127.0.0.1", us + 1)
        assert holders(ours, stranger, os.getpid()) == ([] if us else None)
    assert holders(ours, Listens(port, None, "127.0.0.1", us), os.getpid()) == []


@pytest.mark.parametrize("host", ["::1", "::"])
def test_a_port_at_which_somebody_else_answers_is_not_ours(host: str) -> None:
    """As of a server that listens at `localhost`, of IPv6 alone: the other address is free."""
    ours = [os.getpid()]
    with socket.socket(socket.AF_INET6) as listening:
        listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listening.bind((host, 0))
        listening.listen()
        port = listening.getsockname()[1]
        alone = holders(ours, Listens(port, None, "127.0.0.1"), os.getpid())
        with subprocess.Popen(
            [sys.executable, "-c", LISTENS, str(port)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as other:
            assert other.stdout is not None
            assert other.stdout.readline() == b"%d\n" % port
            for asked, found in (("127.0.0.1", []), ("::1", ours), (None, ours)):
                assert holders(ours, Listens(port, None, asked), os.getpid()) == found
            assert holders([other.pid], Listens(port, None, "127.0.0.1"), other.pid) == (
                [other.pid] if host == "::1" else []
            )
            other.communicate()
    assert alone == ([] if host == "::1" else ours)


@pytest.mark.parametrize("more", [[], ["connected"]])
def test_a_port_that_others_share_by_udp_is_not_ours(more: list[str]) -> None:
    """Linux lets anybody join a socket that has SO_REUSEADDR, as those of nginx and HAProxy do."""
    ours = [os.getpid()]
    with (
        socket.create_server(("127.0.0.1", 0)) as by_tcp,
        socket.socket(type=socket.SOCK_DGRAM) as by_udp,
    ):
        port = by_tcp.getsockname()[1]
        place = Listens(port, None, "127.0.0.1", is_udp=True)
        assert holders(ours, place, os.getpid()) == []
        by_udp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        by_udp.bind(("127.0.0.1", port))
        assert holders(ours, place, os.getpid()) == ours
        with subprocess.Popen(
            [sys.executable, "-c", JOINS, str(port), *more],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as other:
            assert other.stdout is not None
            assert other.stdout.readline() == b"%d\n" % port
            assert holders(ours, place, os.getpid()) == []
            assert holders(ours, place._replace(is_udp=False), os.getpid()) == ours
            other.communicate()
        assert holders(ours, place, os.getpid()) == ours


def test_nobody_joins_a_port_that_is_held_alone() -> None:
    with socket.socket(type=socket.SOCK_DGRAM) as ours, socket.socket(type=socket.SOCK_DGRAM) as us:
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        ours.bind(("127.0.0.1", 0))
        port = ours.getsockname()[1]
        with alone(port) as is_alone:
            assert is_alone
            for address in ("127.0.0.1", "0.0.0.0"):
                with pytest.raises(OSError, match="in use"), joined(address, port):
                    pass
            us.sendto(b"to the server", ("127.0.0.1", port))
            assert ours.recv(99) == b"to the server"


@pytest.mark.parametrize("shares", [True, False])
def test_a_server_has_its_port_alone_however_it_was_opened(*, shares: bool) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", JOINS.replace("REUSEADDR, 1", f"REUSEADDR, {shares:d}"), "0"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as other:
        assert other.stdout is not None
        port = int(other.stdout.readline())
        with alone(port, other.pid) as is_alone:
            assert is_alone
        other.communicate()


@pytest.mark.parametrize("his", [[True, False], [True, True, False], [True] * 9 + [False] * 9])
def test_no_port_is_closed_that_somebody_joins_now_and_then(
    monkeypatch: pytest.MonkeyPatch, his: list[bool]
) -> None:
    """He may have an attempt to join it fail, and be gone when it is looked who is there."""
    is_there = cycle(his)
    monkeypatch.setattr(listening, "_joining", lambda _: nullcontext(not next(is_there)))
    place = Listens(9, None, "127.0.0.1", is_udp=True)
    for _ in range(100):
        assert not listening._is_closed(place, lambda: not next(is_there))


def alone(port: int, pid: int | None = None) -> AbstractContextManager[bool]:
    place = Listens(port, None, "127.0.0.1", is_udp=True)
    return holding_alone([pid or os.getpid()], place, os.getpid())


@contextmanager
def joined(address: str, port: int) -> Iterator[None]:
    with socket.socket(type=socket.SOCK_DGRAM) as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind((address, port))
        yield
