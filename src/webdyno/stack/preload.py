"""Fills memcached with a site's files, each under the path it is asked for by."""

import socket
from collections.abc import Iterable
from pathlib import Path

from webdyno.model.mistake import Trouble
from webdyno.stack.ports import NewSocket
from webdyno.stack.ready import Address, connect

LARGEST_BYTES = 1_000_000
"""memcached takes items up to 1 MiB, key and header included; larger files stay on the disk."""


def preload(
    address: Address, files: Iterable[tuple[str, Path]], new_socket: NewSocket = socket.socket
) -> None:
    """Store files in a memcached; raise Trouble when it doesn't take one."""
    with connect(address, new_socket) as connection, connection.makefile("rb") as answers:
        for key, path in files:
            body = path.read_bytes()
            if len(body) <= LARGEST_BYTES:
                _store(connection, key, body)
                if (said := answers.readline()) != b"STORED\r\n":
                    raise Trouble(f"memcached does not take {key}: {said.decode().strip()}")


def _store(connection: socket.socket, key: str, body: bytes) -> None:
    connection.sendall(f"set {key} 0 0 {len(body)}\r\n".encode() + body + b"\r\n")
