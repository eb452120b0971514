"""A server of server-sent events at known times, which prints when it wrote each.

    python streamer.py FIRST_S GAP_S EVENTS

Each time is drawn, up to twice as long. A line of JSON has the port. At the end of standard input
another one has the seconds that each response took to its first event, those between events, and
their mean in each response, by the server's own clock.
"""

import asyncio
import json
import random
import sys
import time

FIRST_S, GAP_S, EVENTS = float(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
DRAWN = random.Random(1)
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


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


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, log: Log) -> None:
    """Answer all requests of a connection, each by a stream."""
    while True:
        try:
            await reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()
            return
        before_s = time.perf_counter()
        first_s, due_s = 0.0, before_s + FIRST_S * DRAWN.uniform(1, 2)
        writer.write(HEAD)
        for number in range(EVENTS):
            await asyncio.sleep(due_s - time.perf_counter())
            due_s += GAP_S * DRAWN.uniform(1, 2)
            event = b"data: %d\n\n" % number
            now_s = time.perf_counter()
            writer.write(b"%x\r\n%s\r\n" % (len(event), event))
            (log.gap_s if number else log.first_s).append(now_s - before_s)
            before_s, first_s = now_s, first_s or now_s
        log.per_event_s.append((before_s - first_s) / (EVENTS - 1))
        writer.write(b"0\r\n\r\n")


async def serve() -> None:
    """Serve until standard input ends."""
    log = Log()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await answer(reader, writer, log)

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    async with server:
        say({"port": server.sockets[0].getsockname()[1]})
        await asyncio.to_thread(sys.stdin.read)
    say({"first_s": log.first_s, "gap_s": log.gap_s, "per_event_s": log.per_event_s})


if __name__ == "__main__":
    asyncio.run(serve())
