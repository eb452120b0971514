"""Ports."""

import os
import socket

import pytest

from webdyno.model.mistake import Trouble
from webdyno.stack.ports import demand_port, free_port


def test_a_free_port_can_be_listened_on() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", free_port()))


def test_a_port_in_use_is_named_with_its_holder() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        with pytest.raises(Trouble) as trouble:
            demand_port(port)
    assert f"port {port} is in use by " in str(trouble.value)
    assert f"(process {os.getpid()})" in str(trouble.value)
    assert demand_port(port) == port
