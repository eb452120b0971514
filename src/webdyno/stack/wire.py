"""A connection on which each answer has a deadline and a limit, whatever the other side sends."""

import io
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from webdyno.model.format import size

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

MOST_BYTES = 1 << 28
"""Bytes of one answer on the wire, head and all: more is no page, but a stream without an end."""


class TooMuch(Exception):  # noqa: N818 (it becomes a line of the certificate)
    """An answer that never ends, or takes too long; the message says which."""


class Wire(io.RawIOBase):
    """A socket for one answer after the other.

    A socket's own timeout begins again with each byte, so that a server which drips never times
    out. Here `begins` sets the moment by which the whole answer has to be there.
    """

    def __init__(self, connection: socket.socket, within_s: float) -> None:
        """Read and write on an open connection; each answer may take so many seconds."""
        super().__init__()
        self._connection = connection
        self._within_s = within_s
        self._reader = _Kept(self)
        self.begins()

    def begins(self) -> None:
        """Begin another request and its answer."""
        self._began = time.monotonic()
        self._deadline = self._began + self._within_s
        self._came = 0

    @property
    def so_far(self) -> str:
        """Say how much has come of the answer, and in which time; empty before its first byte."""
        took_s = time.monotonic() - self._began
        return f"{size(self._came)} after {took_s:.3g} s" if self._came else ""

    def makefile(self, *_: object, **__: object) -> "_Kept":
        """Give what `http.client` reads from: always the same, as it reads ahead."""
        return self._reader

    def sendall(self, data: "ReadableBuffer") -> None:
        """Send all of it in the time that is left."""
        with self._in_time():
            self._connection.sendall(data)

    def recv(self, most: int) -> bytes:
        """Give what comes next, nothing at the end."""
        with self._in_time():
            came = self._connection.recv(most)
        self._count(len(came))
        return came

    def readable(self) -> bool:
        """Whether it can be read from."""
        return True

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        """Fill a buffer with what comes next; give its length, 0 at the end."""
        with self._in_time():
            came = self._connection.recv_into(buffer)
        self._count(came)
        return came

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
        super().close()

    @contextmanager
    def _in_time(self) -> Iterator[None]:
        what = "its answer wasn't complete" if self._came else "no byte of an answer came"
        late = TooMuch(f"{what} within {self._within_s:g} s")
        left_s = self._deadline - time.monotonic()
        if left_s <= 0:
            raise late
        self._connection.settimeout(left_s)
        try:
            yield
        except TimeoutError:
            raise late from None

    def _count(self, came: int) -> None:
        self._came += came
        if self._came > MOST_BYTES:
            raise TooMuch(f"its answer has more than {MOST_BYTES >> 20} MiB")


class _Kept(io.BufferedReader):
    """A reader that outlives the answers read from it."""

    def __init__(self, wire: Wire) -> None:
        super().__init__(wire)

    def close(self) -> None:
        """Leave it open: http.client closes its reader after an answer."""
