"""Where processes listen, as people write it."""

import os
import socket
import subprocess
import sys

import pytest

from webdyno.host.listening import Listens, addresses, holders

LISTENS = (
    "import socket, sys; s = socket.create_server(('127.0.0.1', int(sys.argv[1]))); "
    "print(s.getsockname()[1], flush=True); sys.stdin.read()"
)

JOINS = (
    "import socket, sys; s = socket.socket(type=socket.SOCK_DGRAM); "
    "s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); "
    "s.bind(('127.0.0.1', int(sys.argv[1]))); "
    "len(sys.argv) > 2 and s.connect(('127.0.0.1', 9)); print(flush=True); sys.stdin.read()"
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
            assert other.stdout.readline() == b"\n"
            assert holders(ours, place, os.getpid()) == []
            assert holders(ours, place._replace(is_udp=False), os.getpid()) == ours
            other.communicate()
        assert holders(ours, place, os.getpid()) == ours
