"""Answers with "Hello" at a dialed cost, which falls when a compiler of its own has had CPU time.

The compiler gets what a thread of the lowest priority gets next to busy workers: CPU time only
where nothing was asked for a while, in slices, since a response doesn't wait for it.

    server.py PORT COMPILER_S FASTER: the CPU time that it needs, and times as fast as it makes.
"""

import selectors
import socket
import sys
import time
from contextlib import suppress

COST_S = 0.001
HOT = 20
"""Requests after which there is something to compile."""
QUIET_S, SLICE_S = 0.03, 0.002
RESPONSE = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nHello"


def spend(cpu_s: float) -> None:
    """Use so much CPU time, however long that takes."""
    ends = time.process_time() + cpu_s
    while time.process_time() < ends:
        pass


def serve(port: int, compiler_s: float, faster: float) -> None:
    """Answer whatever is asked, and compile meanwhile."""
    waiting = selectors.DefaultSelector()
    listening = socket.create_server(("127.0.0.1", port), backlog=128)
    waiting.register(listening, selectors.EVENT_READ)
    connections: dict[int, socket.socket] = {}
    served, last_at, left_s = 0, 0.0, compiler_s
    while True:
        compiles = served > HOT and left_s > 0
        for key, _ in waiting.select(QUIET_S / 10 if compiles else None):
            if key.fileobj is listening:
                connection, _ = listening.accept()
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                connections[connection.fileno()] = connection
                waiting.register(connection, selectors.EVENT_READ)
                continue
            connection, asked = connections[key.fd], b""
            with suppress(ConnectionError):
                asked = connection.recv(65_536)
                for _ in range(asked.count(b"\r\n\r\n")):
                    spend(COST_S / (1 if left_s > 0 else faster))
                    connection.sendall(RESPONSE)
                    served, last_at = served + 1, time.monotonic()
            if not asked:
                waiting.unregister(connections.pop(key.fd))
                connection.close()
        while served > HOT and left_s > 0 and time.monotonic() - last_at > QUIET_S:
            spend(SLICE_S)
            left_s -= SLICE_S
            if waiting.select(0):
                break


if __name__ == "__main__":
    serve(int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]))
