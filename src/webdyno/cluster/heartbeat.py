"""Heartbeats between hosts while load goes on: whether the network between them was cut.

A host with load generators sends a byte to that of the servers and waits for it to come back, ten
times a second, on a connection of its own. It times itself: how long no byte came back tells a cut
network from a slow server, which answers these bytes whatever its web server does.
"""

import socket
import threading
import time
from contextlib import suppress
from typing import Self

EVERY_S = 0.1
CONNECTED_WITHIN_S = 0.5


class HeartbeatServer:
    """Sends back every byte that comes, until the process ends."""

    def __init__(self, address: str) -> None:
        """Listen on an address, on a port that the kernel chooses."""
        self._server = socket.create_server((address, 0))
        self.port: int = self._server.getsockname()[1]
        threading.Thread(target=self._accept, name="heartbeat", daemon=True).start()

    def _accept(self) -> None:
        while True:
            connection, _ = self._server.accept()
            threading.Thread(target=_send_back, args=(connection,), daemon=True).start()


def _send_back(connection: socket.socket) -> None:
    with connection, suppress(OSError):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while said := connection.recv(16):
            connection.sendall(said)


class Heartbeat:
    """Waits for heartbeats of a host while it is entered; `silent_s` is there afterwards."""

    def __init__(self, address: str, port: int) -> None:
        """Ask who answers there."""
        self._where = (address, port)
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)
        self.silent_s = 0.0
        """The longest time without one."""

    def __enter__(self) -> Self:
        """Begin."""
        self._heard_s = time.monotonic()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End."""
        self._end.set()
        self._thread.join()
        self._waited()

    def _run(self) -> None:
        while not self._end.is_set():
            with suppress(OSError), socket.create_connection(self._where, CONNECTED_WITHIN_S) as it:
                it.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                it.settimeout(EVERY_S)
                self._ask(it)
            self._end.wait(EVERY_S)

    def _ask(self, connection: socket.socket) -> None:
        """Ask again and again; a byte that is late is waited for, as the kernel sends it again."""
        while not self._end.is_set():
            connection.sendall(b".")
            while not self._end.is_set():
                with suppress(TimeoutError):
                    if not connection.recv(1):
                        return
                    self._hear()
                    break
            self._end.wait(EVERY_S)

    def _hear(self) -> None:
        self._waited()
        self._heard_s = time.monotonic()

    def _waited(self) -> None:
        self.silent_s = max(self.silent_s, time.monotonic() - self._heard_s)
