"""The testbed with a network of its own: client and servers in namespaces, a link between them.

The sides are namespaces that processes of ours hold (`netns_agent.py`); `ip` and `tc`, run in
there, do the rest. Rates are kept by the kernel (tbf) at both ends of a pair of virtual Ethernet
devices. So are delay and losses where the kernel has netem; where it hasn't, a relay of ours passes
the packets on between two links, late or not at all.
"""

import json
import logging
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Self

from webdyno.core.errors import OperationError
from webdyno.core.testbed import Machine, TestbedSettings
from webdyno.host import netns_agent
from webdyno.host.children import python_file
from webdyno.host.this_machine import Testbed
from webdyno.host.users import ServerUser

logger = logging.getLogger(__name__)

ANSWER_WITHIN_S = 30.0
END_WITHIN_S = 5.0
PROGRAM_FOLDERS = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

CLIENT, SERVERS = "198.18.0.1", "198.18.0.2"
"""RFC 2544 sets 198.18.0.0/15 aside for benchmarks: nobody's real address."""
CLIENT_END, SERVERS_END = "client0", "servers0"
HARDWARE = {CLIENT_END: "02:00:00:00:00:01", SERVERS_END: "02:00:00:00:00:02"}

FRAME_BYTES = 1514
BURST_S = 0.001
"""A rate is kept over this time: shorter bursts may be faster."""
QUEUE_S = 1.0
"""What would wait longer than this is dropped. It is long, as the queue of a server's own network
card is: a short one would add losses that nobody requested."""
NETEM_PACKETS = 100_000

Command = list[str]
PROGRAMS = {"ip": "iproute2", "tc": "iproute2", "nsenter": "util-linux"}
"""What sets the network up, and the Debian packages that hold it."""
CONGESTION_CONTROL = "ipv4/tcp_congestion_control"
INHERITED = (
    "core/somaxconn",
    "ipv4/ip_local_port_range",
    "ipv4/tcp_max_syn_backlog",
    "ipv4/tcp_tw_reuse",
    CONGESTION_CONTROL,
    "ipv4/tcp_rmem",
    "ipv4/tcp_wmem",
)
"""Kernel parameters in /proc/sys/net that a new namespace doesn't take over by itself."""
STEADY = {"ipv4/tcp_slow_start_after_idle": "0"}
"""A variant is idle while others have their slots. Under the steady load that slots stand for it
wouldn't be, so TCP must not begin each of them again."""


class Namespace:
    """One network namespace, by way of the process in it that works for us."""

    def __init__(self, end: socket.socket) -> None:
        """Wait for the process to be in its namespace; raise OperationError if it can't."""
        self._end = end
        greeting = self._receive()
        if "pid" not in greeting:
            raise OperationError(
                "network namespaces can't be made here: "
                f"{greeting.get('error', 'the process for it ended')}; that takes root, or a "
                "kernel and a container that allow user namespaces (try: unshare -Urn true). "
                "Else use --testbed this-machine"
            )
        self.pid: int = greeting["pid"]

    def run(self, *argv: str) -> None:
        """Run a command in the namespace; raise OperationError with its own words when it fails."""
        if fault := self.attempt(*argv):
            raise OperationError(
                f"the testbed's network can't be set up: {' '.join(argv)}: {fault}"
            )

    def attempt(self, *argv: str) -> str | None:
        """Run a command in the namespace; return what it said when it failed."""
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
            raise OperationError("the testbed's network namespace has gone")
        return socket.socket(fileno=descriptors[0])

    def entry(self, user: ServerUser | None = None) -> list[str]:
        """Return the words before a command that let it run in the namespace, as a user."""
        words = ["nsenter", f"--net=/proc/{self.pid}/ns/net"]
        if os.geteuid() != 0:
            words += ["--preserve-credentials", f"--user=/proc/{self.pid}/ns/user"]
        if user is not None:
            words += [f"--setgid={user.gid}", f"--setuid={user.uid}"]
        return [*words, "--"]

    def _ask(self, message: dict[str, Any]) -> dict[str, Any]:
        logger.debug("in the network namespace of process %d: %s", self.pid, message)
        with suppress(ConnectionError):
            self._end.send(json.dumps(message).encode())
        return self._receive() or {"code": 1, "said": "the testbed's network namespace has gone"}

    def _receive(self) -> dict[str, Any]:
        try:
            answer = self._end.recv(netns_agent.MESSAGE_BYTES)
        except TimeoutError:
            raise OperationError("setting up the testbed's network took too long") from None
        except ConnectionError:
            answer = b""
        return dict(json.loads(answer)) if answer else {}


class Namespaces:
    """Network namespaces that are there until they are closed, or webdyno ends in any way."""

    def __init__(self, cpus: Sequence[int], count: int) -> None:
        """Make so many, held by processes on some CPUs; raise OperationError if refused."""
        pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(count)]
        self._ends = [ours for ours, _ in pairs]
        theirs = [their for _, their in pairs]
        self._process = subprocess.Popen(
            [*python_file(netns_agent.__file__), *(str(s.fileno()) for s in theirs)],
            pass_fds=[end.fileno() for end in theirs],
            env={"PATH": PROGRAM_FOLDERS, "LANG": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        logger.debug("process %d holds %d network namespaces", self._process.pid, count)
        for end in theirs:
            end.close()
        with suppress(ProcessLookupError):
            os.sched_setaffinity(self._process.pid, cpus)
        try:
            for end in self._ends:
                end.settimeout(ANSWER_WITHIN_S)
            self.every = [Namespace(end) for end in self._ends]
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let the namespaces go; safe to call twice."""
        logger.debug("the network namespaces of process %d end", self._process.pid)
        for end in self._ends:
            end.close()
        try:
            self._process.wait(END_WITHIN_S)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Sides(Namespaces):
    """Three of them: the client's, the servers', and one for the link between them."""

    def __init__(self, cpus: Sequence[int]) -> None:
        super().__init__(cpus, 3)
        self.link, self.client, self.servers = self.every


class SharedNetwork(Namespaces):
    """One of them, in which servers of a stack find each other on the loopback interface."""

    def __init__(self, cpus: Sequence[int]) -> None:
        super().__init__(cpus, 1)
        (self.place,) = self.every
        self.place.run("ip", "link", "set", "dev", "lo", "up")


def set_up_link(sides: Sides, settings: TestbedSettings, engine: Path) -> str:
    """Join the sides and return the means, for the record; raise OperationError if that can't be.

    `engine` holds the relay.
    """
    impaired = bool(settings.delay or settings.loss)
    # Whether the kernel has netem, tried on the loopback interface of a namespace of ours.
    trial = ("tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms")
    netem = impaired and sides.link.attempt(*trial) is None
    relayed = impaired and not netem
    ends = [(CLIENT_END, "relay0"), (SERVERS_END, "relay1")]
    for one, other in ends if relayed else [(CLIENT_END, SERVERS_END)]:
        sides.link.run(
            *("ip", "link", "add", "name", one, "type", "veth", "peer", "name", other),
        )
    _connect(sides, sides.client, CLIENT_END, CLIENT, SERVERS)
    _connect(sides, sides.servers, SERVERS_END, SERVERS, CLIENT)
    for side, end in ((sides.client, CLIENT_END), (sides.servers, SERVERS_END)):
        for command in shaping(end, settings, netem=netem):
            side.run(*command)
    if relayed:
        _relay(sides.link, settings, engine)
    return ", ".join(_means(settings, netem=netem))


def shaping(end: str, settings: TestbedSettings, *, netem: bool) -> Iterator[Command]:
    """Return the commands that shape what leaves at one end of the link."""
    parent = ["root"]
    if netem:
        impairment = ["netem", "limit", str(NETEM_PACKETS)]
        if settings.delay:
            impairment += ["delay", f"{settings.delay / 2 * 1e6:.0f}us"]
        if settings.loss:
            impairment += ["loss", f"{settings.loss * 100:g}%"]
        yield ["tc", "qdisc", "add", "dev", end, *parent, "handle", "1:", *impairment]
        parent = ["parent", "1:1"]
    if rate := settings.link_bytes_per_s:
        burst = max(rate * BURST_S, 2 * FRAME_BYTES)
        limit = burst + max(rate * QUEUE_S, 20 * FRAME_BYTES)
        yield [
            *("tc", "qdisc", "add", "dev", end, *parent, "handle", "10:"),
            *("tbf", "rate", f"{rate * 8:.0f}bit"),
            *("burst", f"{burst:.0f}b", "limit", f"{limit:.0f}b"),
        ]
    if settings.loss:  # else a whole train of packets would be lost at a time
        yield ["ip", "link", "set", "dev", end, "gso_max_segs", "1"]


def _means(settings: TestbedSettings, *, netem: bool) -> Iterator[str]:
    yield "veth"
    if settings.link:
        yield f"{settings.link / 1e6:g} Mbit/s by tbf"
    by = "netem" if netem else "a relay in user space"
    if settings.delay:
        yield f"round trip + {settings.delay * 1e3:g} ms by {by}"
    if settings.loss:
        yield f"{settings.loss * 100:g}% loss by {by}"


def _connect(sides: Sides, side: Namespace, end: str, own: str, theirs: str) -> None:
    """Give a side its end of the link, with everything set by hand that could cost packets."""
    sides.link.run("ip", "link", "set", "dev", end, "netns", str(side.pid))
    (other,) = HARDWARE.keys() - {end}
    side.run("ip", "link", "set", "dev", "lo", "up")
    side.run("ip", "link", "set", "dev", end, "address", HARDWARE[end], "addrgenmode", "none")
    side.run("ip", "address", "add", f"{own}/30", "dev", end)
    side.run("ip", "link", "set", "dev", end, "up")
    side.run(
        *("ip", "neighbour", "replace", theirs, "lladdr", HARDWARE[other]),
        *("dev", end, "nud", "permanent"),
    )


def _relay(link: Namespace, settings: TestbedSettings, engine: Path) -> None:
    for end in ("relay0", "relay1"):
        link.run("ip", "link", "set", "dev", end, "addrgenmode", "none", "arp", "off")
        link.run("ip", "link", "set", "dev", end, "up")
    delay = f"{settings.delay / 2 * 1e6:.0f}us"
    said = link.start(
        str(engine), "relay", "relay0", "relay1", f"--delay={delay}", f"--loss={settings.loss!r}"
    )
    if said != "ready":
        raise OperationError(f"the testbed's network can't be set up: {said or 'the relay ended'}")


class NetnsTestbed(Testbed):
    """The machine, with client and servers in namespaces of their own while it is entered."""

    host = SERVERS

    def __init__(self, settings: TestbedSettings, engine: Path) -> None:
        """`engine` is the program of the load engine, which also holds the relay."""
        super().__init__(settings.server_cores, keep_awake=settings.keep_awake)
        self.link_bytes_per_s = settings.link_bytes_per_s
        self._settings = settings
        self._engine = engine
        self._sides: Sides | None = None
        self._means = ""

    def __enter__(self) -> Self:
        """Make the network; raise OperationError where this machine or user can't."""
        for program, package in PROGRAMS.items():
            if shutil.which(program, path=PROGRAM_FOLDERS) is None:
                raise OperationError(
                    f"--testbed netns needs the program {program}; on Debian and Ubuntu: "
                    f"apt-get install {package}"
                )
        with ExitStack() as failed:
            failed.push(self.__exit__)
            super().__enter__()
            self._sides = self._exits.enter_context(Sides(self.split.rest))
            self._means = set_up_link(self._sides, self._settings, self._engine)
            self._set_kernel_parameters(self._sides)
            self.network_pids = (self._sides.servers.pid, self._sides.client.pid)
            failed.pop_all()
        return self

    @property
    def has_own_network(self) -> bool:
        return True

    def describe(self) -> Machine:
        return super().describe().replace(network=self._means)

    def servers_entry(self, user: ServerUser | None = None) -> list[str]:
        return self._up.servers.entry(user)

    def client_entry(self) -> list[str]:
        return self._up.client.entry()

    def servers_socket(self) -> socket.socket:
        return self._up.servers.socket()

    def client_socket(self) -> socket.socket:
        return self._up.client.socket()

    @property
    def _up(self) -> Sides:
        assert self._sides is not None, "the testbed has not been entered"  # noqa: S101
        return self._sides

    def _set_kernel_parameters(self, sides: Sides) -> None:
        """New namespaces have the kernel's defaults: give them what runs need."""
        ours = {name: Path("/proc/sys/net", name) for name in INHERITED}
        texts = {name: path.read_text() for name, path in ours.items() if path.exists()} | STEADY
        if texts[CONGESTION_CONTROL].strip() == "bbr" and not self._settings.loss:
            # It paces each connection by its share so far, which leaves a full link idle for up
            # to a tenth of a slot, at random. Namespaces may always have reno instead.
            texts[CONGESTION_CONTROL] = "reno"
            self._means += ", TCP reno instead of bbr"
        for name, text in texts.items():
            for side in (sides.client, sides.servers):
                side.set_kernel(f"/proc/sys/net/{name}", text)


def open_testbed(settings: TestbedSettings, engine: Path) -> Testbed:
    """Make the testbed that settings ask for, to be entered; `engine` is the engine's program."""
    if settings.kind == "netns":
        return NetnsTestbed(settings, engine)
    return Testbed(settings.server_cores, keep_awake=settings.keep_awake)
