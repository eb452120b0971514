"""Network counters of a namespace, from /proc/PID/net, and what each of its listeners has dropped.

The kernel counts drops for the whole namespace as well (ListenDrops), but there other programs'
listeners count too; sock_diag(7) reports them of each listening TCP socket.
"""

import socket
import struct
from collections.abc import Collection, Generator, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from webdyno.core.kernel import kernel_lines
from webdyno.core.readings import NetworkUse
from webdyno.probes.scene import PROC, Scene, counters

PORT_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
RECEIVED_BYTES, RECEIVED_PACKETS, SENT_BYTES, SENT_PACKETS = 0, 1, 8, 9
"""Columns of /proc/net/dev."""
OURS = ("self", "self")
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
RESPONSE_BYTES = 1 << 16
WITHIN_S = 1.0

Listener = tuple[int, int]
"""Local port, and the kernel's number of the socket."""


def network_use(scene: Scene) -> Generator[None, None, NetworkUse]:
    """Report what the servers' network carried, and which connections the listeners dropped.

    A testbed or a stack with namespaces of its own has nobody else in them, so that their own
    counts do.
    """
    pid, pids = scene.stack.network_pid, scene.testbed.network_pids
    own = pid is not None or pids != OURS
    ports = {service.address.port for service in scene.stack.services().values()}
    drops, before = None if own else drops_by_listener(), NetworkReading.of(pid, pids)
    yield
    after = NetworkReading.of(pid, pids)
    dropped = drops_since(drops, None if own else drops_by_listener(), ports)
    if dropped is not None:
        # Those of other programs' listeners count as well: of ours it is as many at least.
        dropped = max(dropped - (after.deferred - before.deferred), 0)
    use = after.since(before, scene.testbed.link_bytes_per_s)
    return use.replace(own_namespace=own, dropped=dropped)


@dataclass(frozen=True)
class NetworkReading:
    """Counters since the namespace was made."""

    devices: tuple[int, int, int, int]
    """Bytes and packets received, bytes and packets sent, on all devices together."""
    listen_overflows: int
    listen_drops: int
    deferred: int
    """Bare acknowledgements that TCP_DEFER_ACCEPT (Apache's AcceptFilter) lets the kernel ignore,
    one for each connection: to a listener, these are drops like others (the kernel's
    tcp_check_req)."""
    retransmits: int
    syn_retransmits: int
    time_wait: int
    ephemeral_ports: int

    @classmethod
    def of(cls, stack: int | None, testbed: tuple[int | str, int | str]) -> "NetworkReading":
        """Read those of a stack with a namespace of its own, or else of the testbed.

        Clients of the former are in the machine's, where only their ports can be known from other
        programs'.
        """
        if stack is None:
            return cls.read_both(*testbed)
        machine = cls.read()
        try:
            return replace(cls.read(stack, exclude="lo"), time_wait=machine.time_wait)
        except OSError:
            return machine  # it has ended, which who looks after it will say

    @classmethod
    def read_both(cls, servers: int | str, client: int | str) -> "NetworkReading":
        """Read the counters of servers and client, each in the namespace of a process.

        Where they have namespaces of their own, bytes and listen queues are the servers', local
        ports the client's, and segments sent again are both's.
        """
        if servers == client:
            return cls.read(servers)
        far, near = cls.read(servers, exclude="lo"), cls.read(client)
        return replace(
            far,
            retransmits=far.retransmits + near.retransmits,
            syn_retransmits=far.syn_retransmits + near.syn_retransmits,
            time_wait=near.time_wait,
        )

    @classmethod
    def read(cls, pid: int | str = "self", exclude: str = "") -> "NetworkReading":
        """Read the counters of the namespace that a process is in, one device excluded if named."""
        net = PROC / str(pid) / "net"
        tcp = counters((net / "snmp").read_text(), "Tcp")
        extended = counters((net / "netstat").read_text(), "TcpExt")
        lines = (net / "sockstat").read_text().splitlines()
        sockets = next(line for line in lines if line.startswith("TCP:")).split()
        first, last = map(int, PORT_RANGE.read_text().split())
        return cls(
            devices=_devices(kernel_lines(net / "dev"), exclude),
            listen_overflows=extended["ListenOverflows"],
            listen_drops=extended["ListenDrops"],
            deferred=extended.get("TCPDeferAcceptDrop", 0),
            retransmits=tcp["RetransSegs"],
            syn_retransmits=extended.get("TCPSynRetrans", 0),
            time_wait=int(sockets[sockets.index("tw") + 1]),
            ephemeral_ports=last - first + 1,
        )

    def since(self, earlier: "NetworkReading", link_bytes_per_s: float | None = None) -> NetworkUse:
        """Return what happened between an earlier reading and this one, on a link of that speed."""
        received_bytes, received_packets, sent_bytes, sent_packets = (
            max(now - then, 0) for now, then in zip(self.devices, earlier.devices, strict=True)
        )
        return NetworkUse(
            received_bytes=received_bytes,
            received_packets=received_packets,
            sent_bytes=sent_bytes,
            sent_packets=sent_packets,
            listen_overflows=max(self.listen_overflows - earlier.listen_overflows, 0),
            listen_drops=max(self.listen_drops - earlier.listen_drops, 0),
            retransmits=max(self.retransmits - earlier.retransmits, 0),
            syn_retransmits=max(self.syn_retransmits - earlier.syn_retransmits, 0),
            link_bytes_per_s=link_bytes_per_s,
            time_wait=self.time_wait,
            ephemeral_ports=self.ephemeral_ports,
        )


def _devices(lines: list[str], exclude: str) -> tuple[int, int, int, int]:
    devices = (line.partition(":") for line in lines[2:])
    rows = [numbers.split() for name, _, numbers in devices if name.strip() != exclude]

    def total(column: int) -> int:
        return sum(int(row[column]) for row in rows)

    return total(RECEIVED_BYTES), total(RECEIVED_PACKETS), total(SENT_BYTES), total(SENT_PACKETS)


def drops_by_listener() -> dict[Listener, int] | None:
    """Return what each listener of our network namespace dropped; None if the kernel won't say.

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
    """Return what listeners on some ports dropped between two readings; None if one is missing."""
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
            response = kernel.recv(RESPONSE_BYTES)
            place = 0
            while place < len(response):
                length, kind, *_ = MESSAGE_HEAD.unpack_from(response, place)
                if kind == NLMSG_DONE:
                    return
                if kind == NLMSG_ERROR:
                    raise OSError("the kernel doesn't report its sockets")
                yield _listener(response[place + MESSAGE_HEAD.size : place + length])
                place += _aligned_length(length)


def _listener(message: bytes) -> tuple[Listener, int]:
    port, cookie, cookie_high = SOCKET.unpack_from(message)
    place, drops = SOCKET.size, 0
    while place + ATTRIBUTE.size <= len(message):
        length, kind = ATTRIBUTE.unpack_from(message, place)
        if kind == INET_DIAG_SKMEMINFO:
            (drops,) = struct.unpack_from(
                "=I", message, place + ATTRIBUTE.size + 4 * SK_MEMINFO_DROPS
            )
        place += max(_aligned_length(length), ATTRIBUTE.size)
    return (int.from_bytes(port, "big"), cookie | cookie_high << 32), drops


def _aligned_length(length: int) -> int:
    return (length + 3) & ~3
