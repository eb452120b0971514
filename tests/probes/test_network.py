"""The network probe counts bytes, packets and what went wrong."""

import socket
import subprocess

import pytest

from webdyno.probes.network import NetworkReading, drops_by_listener, drops_since
from webdyno.probes.scene import counters, number_after

SNMP = """\
Ip: Forwarding DefaultTTL
Ip: 1 64
Tcp: ActiveOpens RetransSegs
Tcp: 12 34
"""


def test_counters_are_read_by_protocol_and_name() -> None:
    assert counters(SNMP, "Tcp") == {"ActiveOpens": 12, "RetransSegs": 34}
    assert counters(SNMP, "Ip") == {"Forwarding": 1, "DefaultTTL": 64}


def test_numbers_are_found_behind_their_names() -> None:
    text = b"Name:\tVmHWM:x\nVmHWM:\t    5120 kB\nread_bytes: 17\n"
    assert number_after(b"VmHWM", text) == 5120
    assert number_after(b"read_bytes", text) == 17
    assert number_after(b"missing", text) == 0


def test_what_goes_over_loopback_is_counted() -> None:
    before = NetworkReading.read()
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as client,
        server.accept()[0] as peer,
    ):
        client.sendall(b"x" * 100_000)
        received = 0
        while received < 100_000:
            received += len(peer.recv(65_536))
    use = NetworkReading.read().since(before)
    assert use.sent_bytes >= 100_000
    assert use.received_bytes >= 100_000
    assert use.sent_packets > 4
    assert use.ephemeral_ports > 1_000
    assert use.link_bytes_per_s is None


def test_a_full_listen_queue_is_seen() -> None:
    before = NetworkReading.read()
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(1)
        clients = [socket.socket() for _ in range(12)]
        for client in clients:
            client.setblocking(False)
            with pytest.raises(BlockingIOError):
                client.connect(server.getsockname())
        for client in clients:
            client.close()
    use = NetworkReading.read().since(before)
    assert use.listen_overflows >= 1
    assert use.listen_drops >= use.listen_overflows


def overflow(server: socket.socket) -> None:
    """Ask for more connections than its queue takes."""
    for _ in range(12):
        with socket.socket() as client:
            client.setblocking(False)
            with pytest.raises(BlockingIOError):
                client.connect(server.getsockname())


def listening() -> socket.socket:
    """A listener with a short queue, of which nobody takes connections."""
    return socket.create_server(("127.0.0.1", 0), backlog=1)


def test_drops_are_counted_by_listener() -> None:
    with listening() as ours, listening() as theirs, listening() as quiet:
        before = drops_by_listener()
        if before is None:
            pytest.skip("this kernel doesn't tell")
        overflow(ours)
        overflow(theirs)
        overflow(theirs)
        after = drops_by_listener()
        of = {
            name: drops_since(before, after, {it.getsockname()[1]})
            for name, it in (("ours", ours), ("theirs", theirs), ("quiet", quiet))
        }
    assert of["ours"]
    assert of["theirs"]
    assert of["quiet"] == 0
    assert drops_since(None, after, {80}) is None


def test_a_stack_that_has_ended_is_for_others_to_report() -> None:
    with subprocess.Popen(["true"]) as ended:
        ended.wait()
    assert NetworkReading.of(ended.pid, ("self", "self")).ephemeral_ports
