"""A server of streams at known times, which prints when it wrote each event.

    python streamer.py FIRST_S GAP_S EVENTS http|h2c

Server-sent events over HTTP/1.1, messages of gRPC over HTTP/2. Each time is drawn, up to twice as
long. A line of JSON has the port. At the end of standard input another one has the seconds that
each response took to its first event, those between events, and their mean in each response, by the
server's own clock.
"""

import asyncio
import json
import random
import struct
import sys
import time
from collections.abc import Callable

FIRST_S, GAP_S, EVENTS = float(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
SPEAKS_HTTP2 = sys.argv[4] == "h2c"
DRAWN = random.Random(1)
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, SETTINGS = 0, 1, 4
ACK = END_STREAM = 1
END_HEADERS = 4
OF_GRPC = b"\x88\x0f\x10\x10application/grpc"
"""Status 200 and the content's type, as HPACK has them (RFC 7541)."""
ENDED_WELL = b"\x00\x0bgrpc-status\x010"


def say(what: object) -> None:
    """Print a line of JSON."""
    sys.stdout.write(f"{json.dumps(what)}\n")
    sys.stdout.flush()


class Log:
    """When events were written, beginning with the requests."""

    def __init__(self) -> None:
        self.first_s: list[float] = []
        self.gap_s: list[float] = []
        self.per_event_s: list[float] = []

    async def stream(self, write: Callable[[int], None]) -> None:
        """Write the events of a response, each when it is due."""
        before_s = time.perf_counter()
        first_s, due_s = 0.0, before_s + FIRST_S * DRAWN.uniform(1, 2)
        for number in range(EVENTS):
            await asyncio.sleep(due_s - time.perf_counter())
            due_s += GAP_S * DRAWN.uniform(1, 2)
            now_s = time.perf_counter()
            write(number)
            (self.gap_s if number else self.first_s).append(now_s - before_s)
            before_s, first_s = now_s, first_s or now_s
        if EVENTS > 1:
            self.per_event_s.append((before_s - first_s) / (EVENTS - 1))


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, log: Log) -> None:
    """Answer all requests of a connection, one after the other."""

    def write(number: int) -> None:
        event = b"data: %d\n\n" % number
        writer.write(b"%x\r\n%s\r\n" % (len(event), event))

    while True:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(HEAD)
        await log.stream(write)
        writer.write(b"0\r\n\r\n")


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """Return a frame of HTTP/2."""
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


async def answer_http2(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, log: Log
) -> None:
    """Answer all requests of a connection, whose bodies say nothing, at the same time."""
    await reader.readexactly(len(PREFACE))
    writer.write(frame(SETTINGS, 0, 0))
    async with asyncio.TaskGroup() as streams:
        while True:
            head = await reader.readexactly(9)
            kind, flags, stream = struct.unpack(">BBI", head[3:])
            await reader.readexactly(int.from_bytes(head[:3]))
            if kind == SETTINGS and not flags & ACK:
                writer.write(frame(SETTINGS, ACK, 0))
            elif kind == HEADERS:
                streams.create_task(answer_stream(stream, writer, log))


async def answer_stream(stream: int, writer: asyncio.StreamWriter, log: Log) -> None:
    """Answer a request by messages of gRPC."""

    def write(number: int) -> None:
        message = b"%d" % number
        writer.write(frame(DATA, 0, stream, struct.pack(">BI", 0, len(message)) + message))

    writer.write(frame(HEADERS, END_HEADERS, stream, OF_GRPC))
    await log.stream(write)
    writer.write(frame(HEADERS, END_HEADERS | END_STREAM, stream, ENDED_WELL))


async def serve() -> None:
    """Serve until standard input ends."""
    log = Log()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await (answer_http2 if SPEAKS_HTTP2 else answer)(reader, writer, log)
        except* (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    async with server:
        say({"port": server.sockets[0].getsockname()[1]})
        await asyncio.to_thread(sys.stdin.read)
    say({"first_s": log.first_s, "gap_s": log.gap_s, "per_event_s": log.per_event_s})


if __name__ == "__main__":
    asyncio.run(serve())
