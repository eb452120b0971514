"""Where processes listen, as people write it."""

import os
import socket

from webdyno.host.server_process import addresses


def test_an_ipv4_address_of_a_socket_for_both_kinds_is_one() -> None:
    """Java's sockets are of that kind: what binds 127.0.0.1 isn't open to others."""
    with socket.socket(socket.AF_INET6) as listening:
        listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listening.bind(("::ffff:127.0.0.1", 0))
        listening.listen()
        port = listening.getsockname()[1]
        assert f"127.0.0.1:{port}" in addresses([os.getpid()])
