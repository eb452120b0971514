"""The name server of a variant's containers: what Docker's at 127.0.0.11 is to those of Compose.

Podman starts it with the containers, as a program of its own: it answers in each of their networks,
from a file with the address of each name, and knows nothing else. It goes into the background once
it can be asked.
"""

import ctypes
import json
import os
import selectors
import socket
import struct
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

ADDRESS, PORT = "127.0.0.11", 53
MOST_BYTES = 512
HEAD, ENDS = struct.Struct("!6H"), struct.Struct("!2H")
ANSWER = struct.Struct("!3HIH4s")
A, INTERNET, NAME_ABOVE = 1, 1, 0xC00C
RESPONSE, NO_NAME, WRONG = 0x8580, 3, 1
"""It answers with authority, and recursion is there for who wants it."""
LIVES_S = 600
"""As Docker's."""
NEW_NETWORK = 0x40000000
"""CLONE_NEWNET of sched.h."""


def dns_answer(query: bytes, names: Mapping[str, str]) -> bytes:
    """Return the answer to a question; empty where that can't be answered."""
    if len(query) < HEAD.size:
        return b""
    number, flags, questions, *_ = HEAD.unpack_from(query)
    recursion = flags & 0x0100
    labels, offset = [], HEAD.size
    while offset < len(query) and 0 < query[offset] < 64:
        labels.append(query[offset + 1 : offset + 1 + query[offset]].decode("ascii", "replace"))
        offset += 1 + query[offset]
    end = offset + 1 + ENDS.size
    if flags & 0x8000 or questions != 1 or end > len(query) or query[offset]:
        return HEAD.pack(number, RESPONSE | recursion | WRONG, 0, 0, 0, 0)
    kind, of = ENDS.unpack_from(query, offset + 1)
    address = names.get(".".join(labels).lower())
    known = bool(address) and kind == A and of == INTERNET
    status = 0 if address else NO_NAME
    head = HEAD.pack(number, RESPONSE | recursion | status, 1, int(known), 0, 0)
    head += query[HEAD.size : end]
    if known and address:
        packed = socket.inet_aton(address)
        head += ANSWER.pack(NAME_ABOVE, A, INTERNET, LIVES_S, len(packed), packed)
    return head


def listen(networks: Sequence[str]) -> list[socket.socket]:
    """Return a socket in each of the networks, which are named by files."""
    enter = ctypes.CDLL(None, use_errno=True).setns
    sockets = []
    for path in networks:
        with open(path) as network:  # noqa: PTH123 (its number is all that counts)
            if enter(network.fileno(), NEW_NETWORK):
                raise OSError(ctypes.get_errno(), f"{path} can't be entered")
        server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        server.bind((ADDRESS, PORT))
        sockets.append(server)
    return sockets


def main(names: str, networks: Sequence[str]) -> None:
    """Answer for ever, in the background."""
    known = json.loads(Path(names).read_text(encoding="utf-8"))
    asking = selectors.DefaultSelector()
    for server in listen(networks):
        asking.register(server, selectors.EVENT_READ)
    if os.fork():
        os._exit(0)
    while True:
        for key, _ in asking.select():
            listening = key.fileobj
            assert isinstance(listening, socket.socket)  # noqa: S101
            query, who = listening.recvfrom(MOST_BYTES)
            if response := dns_answer(query, known):
                listening.sendto(response, who)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
