"""Answers every request with "Hello, World!", rightly at first, then with the fault asked for."""

import asyncio
import gzip
import sys
import tempfile

RIGHT_AT_FIRST = {"compressed": 1}
"""Right answers before the fault shows: enough to be ready, or for the certificate as well."""
USUALLY_RIGHT_AT_FIRST = 100
HELLO = b"Hello, World!"
WRITTEN_BYTES = 200_000
WRITTEN_AT_MOST = 128_000_000


def answer(
    body: bytes, status: str = "200 OK", headers: str = "", length: int | None = None
) -> bytes:
    """Give an answer's bytes."""
    length = len(body) if length is None else length
    return f"HTTP/1.1 {status}\r\nContent-Length: {length}\r\n{headers}\r\n".encode() + body


# On a disk: what lies in a tmpfs, as /tmp may be, is memory that the kernel can't take back. The
# file is open as long as the server lives.
scratch = tempfile.TemporaryFile(dir="/var/tmp")  # noqa: SIM115


class Faulty(asyncio.Protocol):
    """One connection."""

    fault = "none"
    answered = 0
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
            if fault == "memory":
                fill_the_page_cache()
            if fault == "truncated":
                self.transport.write(answer(HELLO[:5], length=len(HELLO)))
                self.transport.close()
            elif fault == "not-found":
                self.transport.write(answer(b"gone", status="404 Not Found"))
            elif fault == "compressed":
                packed = gzip.compress(HELLO)
                self.transport.write(answer(packed, headers="Content-Encoding: gzip\r\n"))
            else:
                self.transport.write(answer(HELLO))


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
