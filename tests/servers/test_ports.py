"""Ports."""

import os
import socket

import pytest

from webdyno.core.errors import OperationError
from webdyno.servers.service_graph import demand_port, free_port


def test_a_free_port_can_be_listened_on() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", free_port()))


def test_no_port_is_given_twice() -> None:
    taken: set[int] = set()
    lowest_free = free_port()
    with pytest.MonkeyPatch.context() as patch:
        # So few ports that two draws meet at once, unless they know of each other.
        patch.setattr("webdyno.servers.service_graph.LOWEST_PORT", lowest_free)
        patch.setattr("webdyno.servers.service_graph.first_number", lambda *_: 0)
        patch.setattr("webdyno.servers.service_graph.MOST_PORTS", 3)
        patch.setattr("webdyno.servers.service_graph._can_listen", lambda *_: None)
        for _ in range(3):
            taken.add(free_port(taken=taken))
    assert len(taken) == 3


def test_a_port_in_use_is_named_with_its_holder() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        with pytest.raises(OperationError) as error:
            demand_port(port)
    assert f"port {port} is in use by " in str(error.value)
    assert f"(process {os.getpid()})" in str(error.value)
    assert demand_port(port) == port
