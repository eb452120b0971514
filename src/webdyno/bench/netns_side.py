"""The sides of a bench with a network of its own: namespaces that processes of ours hold."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from webdyno.bench import netns_agent
from webdyno.bench.users import ServerUser
from webdyno.model.mistake import Trouble

ANSWER_WITHIN_S = 30.0
END_WITHIN_S = 5.0
PROGRAM_FOLDERS = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PLACES = ("cable", "client", "servers")


class Side:
    """One network namespace, by way of the process in it that works for us."""

    def __init__(self, end: socket.socket) -> None:
        """Wait until the process is in its namespace; raise Trouble when it can't get there."""
        self._end = end
        greeting = self._receive()
        if "pid" not in greeting:
            raise Trouble(
                "network namespaces can't be made here: "
                f"{greeting.get('error', 'the process for it ended')}; that takes root, or a "
                "kernel and a container that allow user namespaces (try: unshare -Urn true). "
                "Else use --bench this-machine"
            )
        self.pid: int = greeting["pid"]

    def run(self, *argv: str) -> None:
        """Run a command in the namespace; raise Trouble with its own words when it fails."""
        if fault := self.attempt(*argv):
            raise Trouble(f"the bench's network can't be set up: {' '.join(argv)}: {fault}")

    def attempt(self, *argv: str) -> str | None:
        """Run a command in the namespace; give what it said when it failed."""
        done = self._ask({"run": argv})
        return (done["said"] or f"exit code {done['code']}") if done["code"] else None

    def start(self, *argv: str) -> str:
        """Start a program that lives as long as the namespace's process; give its first line."""
        return str(self._ask({"start": argv})["said"])

    def set_kernel(self, path: str, text: str) -> None:
        """Set a kernel parameter of the namespace where that is allowed."""
        self._ask({"write": [path, text]})

    def socket(self) -> socket.socket:
        """Make a TCP socket whose connections begin or end in the namespace."""
        self._end.send(b'{"socket": null}')
        _, descriptors, _, _ = socket.recv_fds(self._end, netns_agent.MESSAGE_BYTES, 1)
        if not descriptors:
            raise Trouble("the bench's network namespace has gone")
        return socket.socket(fileno=descriptors[0])

    def entry(self, user: ServerUser | None = None) -> list[str]:
        """Give the words before a command that let it run in the namespace, as a user."""
        words = ["nsenter", f"--net=/proc/{self.pid}/ns/net"]
        if os.geteuid() != 0:
            words += ["--preserve-credentials", f"--user=/proc/{self.pid}/ns/user"]
        if user is not None:
            words += [f"--setgid={user.gid}", f"--setuid={user.uid}"]
        return [*words, "--"]

    def _ask(self, message: dict[str, Any]) -> dict[str, Any]:
        with suppress(ConnectionError):
            self._end.send(json.dumps(message).encode())
        return self._receive() or {"code": 1, "said": "the bench's network namespace has gone"}

    def _receive(self) -> dict[str, Any]:
        try:
            answer = self._end.recv(netns_agent.MESSAGE_BYTES)
        except TimeoutError:
            raise Trouble("setting up the bench's network took too long") from None
        except ConnectionError:
            answer = b""
        return dict(json.loads(answer)) if answer else {}


class Sides:
    """Three namespaces: the client's, the servers', and one for the cable between them."""

    def __init__(self, cpus: Sequence[int]) -> None:
        """Make them, held by processes on some CPUs; raise Trouble where that isn't allowed."""
        pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in PLACES]
        self._ends = [ours for ours, _ in pairs]
        theirs = [their for _, their in pairs]
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", netns_agent.__file__, *(str(s.fileno()) for s in theirs)],
            pass_fds=[end.fileno() for end in theirs],
            env={"PATH": PROGRAM_FOLDERS, "LANG": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        for end in theirs:
            end.close()
        with suppress(ProcessLookupError):
            os.sched_setaffinity(self._process.pid, cpus)
        try:
            for end in self._ends:
                end.settimeout(ANSWER_WITHIN_S)
            self.cable, self.client, self.servers = (Side(end) for end in self._ends)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let the namespaces go; safe to call twice."""
        for end in self._ends:
            end.close()
        try:
            self._process.wait(END_WITHIN_S)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def __enter__(self) -> Self:
        """Give itself: the namespaces are there."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Let the namespaces go."""
        self.close()
