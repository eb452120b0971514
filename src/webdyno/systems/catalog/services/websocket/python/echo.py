"""Sends each message of a WebSocket back, in WORKERS processes that share the port."""

import asyncio
import os
from http import HTTPStatus

from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response


async def echo(socket: ServerConnection) -> None:
    try:
        async for message in socket:
            await socket.send(message)
    except ConnectionClosed:
        pass


def plaintext(socket: ServerConnection, request: Request) -> Response | None:
    """Answer requests that open no WebSocket."""
    if request.path == "/plaintext":
        return socket.respond(HTTPStatus.OK, "Hello, World!")
    return None if request.path == "/echo" else socket.respond(HTTPStatus.NOT_FOUND, "")


async def main() -> None:
    host, port = os.environ["HOST"], int(os.environ["PORT"])
    async with serve(echo, host, port, process_request=plaintext, reuse_port=True) as server:
        await server.serve_forever()


if __name__ == "__main__":
    for _ in range(int(os.environ["WORKERS"]) - 1):
        if os.fork() == 0:
            break
    asyncio.run(main())
