"""Where processes listen, as people write it."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from webdyno.host.listening import Listens, addresses, holders, unix_sockets

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

NAMED = (
    "import socket, sys; own, other, pair = (socket.socket(socket.AF_UNIX) for _ in range(3)); "
    "own.bind(sys.argv[1]); own.listen(); other.bind(bytes.fromhex(sys.argv[2])); other.listen(); "
    "pair.connect(sys.argv[1]); print(flush=True); sys.stdin.read()"
)
ANOTHERS_LINE = b"\0a\n0: 00000002 00000000 00010000 0001 01 4711 "


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


@pytest.mark.parametrize("name", [b"\0\xff", b"\0a\nb", ANOTHERS_LINE])
def test_no_name_of_another_s_unix_socket_hides_ours(open_folder: Path, name: bytes) -> None:
    """The kernel lists names of any bytes as they are, in a network of its own here."""
    path = open_folder / "listen.sock"
    name += bytes(path) if name == ANOTHERS_LINE else b""
    alone = ["unshare", "--net", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"])]
    with subprocess.Popen(
        [*alone, sys.executable, "-c", NAMED, str(path), name.hex()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as server:
        assert server.stdout is not None
        if server.stdout.readline() != b"\n":
            pytest.skip("no network namespace can be made here")
        place = Listens(0, path, "127.0.0.1", os.geteuid())
        assert holders([server.pid], place, server.pid) == [server.pid]
        assert holders([os.getpid()], place, server.pid) == []
        sockets = [*unix_sockets(server.pid)]
        assert any(each.is_connected and not each.name for each in sockets)
        server.communicate()
