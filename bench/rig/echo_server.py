"""The WebSocket server that sends each message back, as a running program."""

import http.client
import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rig.nginx import COUNTERS_WITHIN_S, Counters
from rig.process import BenchError, pinned


class EchoServer:
    """A running one; it counts messages where nginx counts requests."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._asked = 0

    def url(self, path: str, *, tls: bool = False, http2: bool = False) -> str:
        """Give the URL of a path; there is neither TLS nor HTTP/2."""
        if tls or http2:
            raise BenchError("the echo server speaks WebSocket in clear only; leave out --tls")
        return f"http://127.0.0.1:{self._port}{path}"

    def counters(self) -> Counters:
        """Ask for its counters, and take away the connections of these questions."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=COUNTERS_WITHIN_S)
        try:
            connection.request("GET", "/status")
            seen = json.loads(connection.getresponse().read())
        except (OSError, http.client.HTTPException) as error:
            raise BenchError(f"the echo server does not tell its counters: {error}") from None
        finally:
            connection.close()
        self._asked += 1
        return Counters(accepts=seen["accepted"] - self._asked, requests=seen["messages"], active=0)


@contextmanager
def running_echo_server(path: Path, cpus: Sequence[int]) -> Iterator[EchoServer]:
    """Serve on these CPUs."""
    process = subprocess.Popen(
        pinned([str(path)], cpus), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        if process.stdin is None or process.stdout is None:
            raise AssertionError("both were asked for")
        try:
            port = process.stdout.readline()
            if not port:
                raise BenchError("echo_server ended early; it says above why")
            yield EchoServer(int(port))
        finally:
            # That is what makes it end.
            process.stdin.close()
