"""The lab's agent in a process of its own, apart from what carries its orders.

What carries them has threads, timers, signal handlers and a niceness of its own, which are not to
be in a process that starts servers and reads counters. Orders and replies go through pipes, as a
length in eight bytes and a pickle. When the other side ends in any way, its end of the pipe closes,
at which the agent leaves nothing behind and ends.
"""

import os
import pickle
import subprocess
import sys
from collections.abc import Collection
from contextlib import suppress
from typing import IO, Any

from webdyno.cluster.agent import at_usual_priority
from webdyno.cluster.orders import Order, Reply, carried_out
from webdyno.cluster.role_agent import RoleAgent
from webdyno.model.mistake import Trouble

LENGTH_BYTES = 8


class AgentProcess:
    """An agent for one run, and the way to it."""

    def __init__(self, parcel: bytes, address: str, peers: Collection[str], *, yes: bool) -> None:
        """Start it; for what it is given see `RoleAgent`."""
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "webdyno.cluster.agent_process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        self._send((parcel, address, list(peers), yes))

    def do(self, order: Order) -> Reply:
        """Have it carry out an order."""
        try:
            self._send(order)
            reply = _received(self._process.stdout)
        except (BrokenPipeError, EOFError):
            return Reply(refusal=Trouble("the agent's process ended unexpectedly"))
        return reply if isinstance(reply, Reply) else Reply(refusal=Trouble(f"no reply: {reply}"))

    def _send(self, content: object) -> None:
        assert self._process.stdin is not None  # noqa: S101 (asked for above)
        _sent(self._process.stdin, content)


def _sent(pipe: IO[bytes], content: object) -> None:
    data = pickle.dumps(content)
    pipe.write(len(data).to_bytes(LENGTH_BYTES, "big") + data)
    pipe.flush()


def _received(pipe: IO[bytes] | None) -> Any:  # noqa: ANN401 (whatever was sent)
    assert pipe is not None  # noqa: S101 (asked for above)
    head = pipe.read(LENGTH_BYTES)
    if len(head) < LENGTH_BYTES:
        raise EOFError
    return pickle.loads(pipe.read(int.from_bytes(head, "big")))  # noqa: S301 (from our other half)


def main() -> None:
    """Be the agent until the other side is gone."""
    orders, replies = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what anything here prints is no reply
    at_usual_priority()
    parcel, address, peers, yes = _received(orders)
    agent = RoleAgent(parcel, address, peers, yes=yes)
    with suppress(EOFError, BrokenPipeError):
        while True:
            _sent(replies, carried_out(_received(orders), agent))
    agent.close()


if __name__ == "__main__":
    main()
