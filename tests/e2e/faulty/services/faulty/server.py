"""Answers every request with "Hello, World!", rightly at first, then with the fault requested."""

import asyncio
import gzip
import sys
import tempfile
import time
from math import exp

RIGHT_AT_FIRST = {"compressed": 1, "other-body": 1}
"""Valid responses before the fault shows: enough to be ready, or for the pre-flight check as
well."""
USUALLY_RIGHT_AT_FIRST = 100
HELLO = b"Hello, World!"
WRITTEN_BYTES = 200_000
WRITTEN_AT_MOST = 128_000_000
PAGE_S = 0.05
"""What a slow page takes."""
RESTED_S, COLD_FOR_S, COLD_COST_S = 0.05, 0.08, 0.001
"""After so long without a request, each costs so much for a while."""
FADES_IN_S = 0.3
"""In which the cost of a slow start fades to 37%."""
WORKS_ON_S, SLICE_S = 0.25, 0.005
"""So long after its last request a server may go on working, in slices."""


def response(
    body: bytes, status: str = "200 OK", headers: str = "", length: int | None = None
) -> bytes:
    """Give a response's bytes."""
    length = len(body) if length is None else length
    return f"HTTP/1.1 {status}\r\nContent-Length: {length}\r\n{headers}\r\n".encode() + body


# On a disk: what lies in a tmpfs, as /tmp may be, is memory that the kernel can't take back. The
# file is open as long as the server lives.
scratch = tempfile.TemporaryFile(dir="/var/tmp")  # noqa: SIM115


class Faulty(asyncio.Protocol):
    """One connection."""

    fault = "none"
    answered = 0
    first_at = last_at = burst_at = 0.0
    """Moments of the first request, the last one, and the first after a rest."""
    works_on = False
    transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember where answers go."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer what was asked, once for each end of a head."""
        for _ in range(data.count(b"\r\n\r\n")):
            Faulty.answered += 1
            right = Faulty.answered <= RIGHT_AT_FIRST.get(Faulty.fault, USUALLY_RIGHT_AT_FIRST)
            fault = "none" if right else Faulty.fault
            take_time()
            if Faulty.fault == "slow-page":
                asyncio.get_running_loop().call_later(PAGE_S, self.transport.write, response(HELLO))
                continue
            if fault == "memory":
                fill_the_page_cache()
            if fault == "truncated":
                self.transport.write(response(HELLO[:5], length=len(HELLO)))
                self.transport.close()
            elif fault == "not-found":
                self.transport.write(response(b"gone", status="404 Not Found"))
            elif fault == "other-body":
                self.transport.write(response(b"Hello, work!\n"))
            elif fault == "compressed":
                packed = gzip.compress(HELLO)
                self.transport.write(response(packed, headers="Content-Encoding: gzip\r\n"))
            else:
                self.transport.write(response(HELLO))


def take_time() -> None:
    """Cost what a request costs at this moment."""
    now = time.monotonic()
    if now - Faulty.last_at > RESTED_S:
        Faulty.burst_at = now
    Faulty.first_at, Faulty.last_at = Faulty.first_at or now, now
    if Faulty.fault == "slow-start":
        spin(COLD_COST_S * exp((Faulty.first_at - now) / FADES_IN_S))
    elif Faulty.fault == "slow-after-rest" and now - Faulty.burst_at < COLD_FOR_S:
        spin(COLD_COST_S)
    elif Faulty.fault == "works-on" and not Faulty.works_on:
        Faulty.works_on = True
        asyncio.get_running_loop().call_later(SLICE_S, work_on)


def work_on() -> None:
    """Use the CPU for a while after the last request."""
    rests_for_s = time.monotonic() - Faulty.last_at
    Faulty.works_on = rests_for_s < WORKS_ON_S
    if Faulty.works_on and rests_for_s > SLICE_S:
        spin(SLICE_S)
        asyncio.get_running_loop().call_soon(work_on)
    elif Faulty.works_on:
        asyncio.get_running_loop().call_later(SLICE_S, work_on)


def spin(for_s: float) -> None:
    """Use the CPU for so long."""
    until = time.monotonic() + for_s
    while time.monotonic() < until:
        pass


def fill_the_page_cache() -> None:
    """Take memory that the kernel can take back, so that nobody has to be killed."""
    if scratch.tell() > WRITTEN_AT_MOST:
        scratch.seek(0)
    scratch.write(b"x" * WRITTEN_BYTES)


async def serve(host: str, port: int) -> None:
    """Serve until killed."""
    server = await asyncio.get_running_loop().create_server(Faulty, host, port, backlog=511)
    await server.serve_forever()


if __name__ == "__main__":
    Faulty.fault = sys.argv[3]
    asyncio.run(serve(sys.argv[1], int(sys.argv[2])))
