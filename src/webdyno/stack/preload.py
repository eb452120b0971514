"""Fills memcached with a site's files, each under the path it is asked for by."""

import os
import re
import socket
from collections.abc import Iterable
from pathlib import Path

from webdyno.model.mistake import Trouble
from webdyno.stack.ports import NewSocket
from webdyno.stack.ready import Address, connect

LARGEST_BYTES = 1_000_000
"""memcached takes items up to 1 MiB, key and header included; larger files stay on the disk."""
LONGEST_KEY_BYTES = 250


def preload(
    address: Address, files: Iterable[tuple[str, Path]], new_socket: NewSocket = socket.socket
) -> None:
    """Store files in a memcached; raise Trouble when it doesn't take one."""
    with connect(address, new_socket) as connection, connection.makefile("rb") as answers:
        for key, path in files:
            body, name = path.read_bytes(), _key(key)
            if len(body) <= LARGEST_BYTES and len(name) <= LONGEST_KEY_BYTES:
                connection.sendall(b"set %b 0 0 %d\r\n%b\r\n" % (name, len(body), body))
                if (said := answers.readline()) != b"STORED\r\n":
                    raise Trouble(f"memcached does not take {key}: {said.decode().strip()}")


def _key(path: str) -> bytes:
    """Escape as nginx does, which knows that a key can't hold spaces and control characters."""
    return re.sub(rb"[\x00-\x20%\x7f]", lambda char: b"%%%02X" % char[0][0], os.fsencode(path))
