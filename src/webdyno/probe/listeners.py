"""Connections that each listening TCP socket has dropped, by sock_diag(7).

The kernel counts the same for the whole network namespace (ListenDrops), but there other programs'
listeners count as well.
"""

import socket
import struct
from collections.abc import Collection, Iterator

NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY = 4, 20
NLM_F_REQUEST, NLM_F_DUMP = 0x1, 0x300
NLMSG_ERROR, NLMSG_DONE = 2, 3
TCP_LISTEN = 10
INET_DIAG_SKMEMINFO = 7
SK_MEMINFO_DROPS = 8
"""Position of the drops among the attribute's numbers (linux/sock_diag.h)."""

MESSAGE_HEAD = struct.Struct("=IHHII")
"""struct nlmsghdr: length, type, flags, sequence, port."""
REQUEST = struct.Struct("=BBBxI48x")
"""struct inet_diag_req_v2: family, protocol, wanted attributes, states, any socket."""
SOCKET = struct.Struct("=4x2s38x2I20x")
"""struct inet_diag_msg: local port (in network order) and cookie of it."""
ATTRIBUTE = struct.Struct("=HH")
"""struct rtattr: length, type."""
ANSWER_BYTES = 1 << 16
WITHIN_S = 1.0

Listener = tuple[int, int]
"""Local port, and the kernel's number of the socket."""


def drops_by_listener() -> dict[Listener, int] | None:
    """Give what each listener of our network namespace has dropped; None if the kernel won't tell.

    Drops are connection attempts that found a full queue, or were dropped for any other reason.
    """
    try:
        return {
            listener: drops
            for family in (socket.AF_INET, socket.AF_INET6)
            for listener, drops in _dump(family)
        }
    except OSError:
        return None


def drops_since(
    before: dict[Listener, int] | None,
    after: dict[Listener, int] | None,
    ports: Collection[int],
) -> int | None:
    """Give what listeners on some ports dropped between two readings; None if one is missing."""
    if before is None or after is None:
        return None
    return sum(
        drops - before.get(listener, 0) for listener, drops in after.items() if listener[0] in ports
    )


def _dump(family: int) -> Iterator[tuple[Listener, int]]:
    wanted = 1 << (INET_DIAG_SKMEMINFO - 1)
    request = REQUEST.pack(family, socket.IPPROTO_TCP, wanted, 1 << TCP_LISTEN)
    head = MESSAGE_HEAD.pack(
        MESSAGE_HEAD.size + len(request), SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST | NLM_F_DUMP, 1, 0
    )
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_SOCK_DIAG) as kernel:
        kernel.settimeout(WITHIN_S)
        kernel.send(head + request)
        while True:
            answer = kernel.recv(ANSWER_BYTES)
            at = 0
            while at < len(answer):
                length, kind, *_ = MESSAGE_HEAD.unpack_from(answer, at)
                if kind == NLMSG_DONE:
                    return
                if kind == NLMSG_ERROR:
                    raise OSError("the kernel doesn't tell of its sockets")
                yield _listener(answer[at + MESSAGE_HEAD.size : at + length])
                at += _aligned(length)


def _listener(message: bytes) -> tuple[Listener, int]:
    port, cookie, cookie_high = SOCKET.unpack_from(message)
    at, drops = SOCKET.size, 0
    while at + ATTRIBUTE.size <= len(message):
        length, kind = ATTRIBUTE.unpack_from(message, at)
        if kind == INET_DIAG_SKMEMINFO:
            (drops,) = struct.unpack_from("=I", message, at + ATTRIBUTE.size + 4 * SK_MEMINFO_DROPS)
        at += max(_aligned(length), ATTRIBUTE.size)
    return (int.from_bytes(port, "big"), cookie | cookie_high << 32), drops


def _aligned(length: int) -> int:
    return (length + 3) & ~3
