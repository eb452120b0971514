"""Machines to be, on one switch, and a Ray cluster of them.

Each has an address, a host name, a machine's id, processes and temporary files of its own. The
namespaces have no names: each lives as long as the process that holds it, which ends with the test,
and with the last process of a host its files and addresses are gone.
"""

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path

import psutil
import pytest

from e2e.commands import PATIENCE_S
from webdyno.cluster.node import SPARING_OPTIONS, STARTED, environment
from webdyno.host.control_group import forget_groups, trees

BIN = Path(sys.executable).parent
PORT = 6379
HEAD = f"10.77.0.1:{PORT}"
"""Where the first of them has its cluster."""
ON_HOSTS = [
    pytest.mark.measures,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces with addresses take root"),
    pytest.mark.timeout(600),
]
"""Of tests that measure on them."""
SHARED = "/mnt"
"""Where all hosts see the test's folder: their /tmp is their own."""
CHECKOUT = Path(__file__).parents[2]
ASIDE = "/media"
"""Where a checkout waits that a host's own /tmp would hide."""
SLEEP = "sleep infinity"
TOKEN = "0123456789abcdef0123456789abcdef"  # noqa: S105 (of nodes that nobody else reaches)
TRIES = 3
"""Ray gives a node 30 s to start, which a busy machine may not have."""


def groups() -> set[str]:
    """Name the control groups of stacks in which nobody runs: these hosts share a kernel.

    Where somebody runs, while nothing does on the hosts, it is who else uses this machine.
    """
    there = (path for every in trees("*") for path in every.parent.glob(every.name))
    return {str(path) for path in there if not _is_used(path)}


def _is_used(group: Path) -> bool:
    try:
        return any(file.read_text() for file in group.rglob("cgroup.procs"))
    except OSError:  # it is just being removed
        return True


GROUPS_BEFORE = groups()
"""Of who else uses this machine."""


class TestHost:
    """A machine to be."""

    __test__ = False

    def __init__(self, number: int, switch: int, shared: Path, exits: ExitStack) -> None:
        self.number = number
        self.name, self.address = f"host{number}", f"10.77.0.{number}"
        kinds = ("--net", "--mount", "--uts", "--pid", "--mount-proc")
        self._holder = exits.enter_context(_held("unshare", *kinds, "--fork", "--kill-child"))
        self._init = _sleeper(self._holder.pid)
        self._into = ("nsenter", "--target", str(self._init), *kinds[:4])
        port = f"port{number}"
        ends = ("name", port, "type", "veth", "peer", "name", "eth0", "netns", str(self._init))
        _do("nsenter", "--target", str(switch), "--net", "ip", "link", "add", *ends)
        _do(*_switch(switch), "ip", "link", "set", port, "master", "switch0", "up")
        self._started: list[subprocess.Popen[bytes]] = []
        exits.callback(self.kill)
        identity = f"{number:032x}"
        self.do(
            f"hostname {self.name}; ip link set lo up; ip addr add {self.address}/24 dev eth0;"
            f"ip link set eth0 up; mount --bind {shared} {SHARED}; {own_temporary_folder()}"
            f"echo {identity} >/tmp/id; mount --bind /tmp/id /etc/machine-id"
        )

    def do(self, script: str) -> None:
        """Run shell commands there to their end."""
        _do(*self._into, "sh", "-ec", script)

    def popen(self, *words: str | Path, log: Path) -> subprocess.Popen[bytes]:
        """Start something there, in the shared folder."""
        with log.open("ab") as file:
            process = subprocess.Popen(
                [*self._into, "sh", "-c", f'cd {SHARED}; exec "$@"', "sh", *words],
                env=os.environ | environment(TOKEN),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
            )
        self._started.append(process)
        return process

    def _stacks(self) -> list[str]:
        """Stop all that runs there, if it is on; name the stacks that are up."""
        if self._holder.poll() is not None:
            return []
        self.signal("", signal.SIGSTOP)
        temporary = Path(f"/proc/{self._init}/root/tmp")
        return [path.name for path in temporary.glob("webdyno-*/live/*")]

    def processes(self) -> dict[int, str]:
        """Give the command lines of all that runs there, but for what holds the host."""
        mine = Path(f"/proc/{self._init}/ns/pid").readlink()
        found = {}
        for process in psutil.process_iter():
            with suppress(psutil.Error, OSError):
                if Path(f"/proc/{process.pid}/ns/pid").readlink() == mine:
                    found[process.pid] = " ".join(process.cmdline())
        return {pid: words for pid, words in found.items() if words != SLEEP}

    def signal(self, part: str, number: signal.Signals) -> None:
        """Send a signal to all processes there that have this in their command line."""
        for pid, words in self.processes().items():
            if part in words:
                with suppress(ProcessLookupError):
                    os.kill(pid, number)

    def start_node(self) -> None:
        """Start its Ray node, as it was first started."""
        self._start()

    def has_node(self, start: Callable[[], None]) -> None:
        """Start its node, and remember how."""
        self._start = start
        start()

    def kill_node(self) -> None:
        """Kill what Ray runs there, but for who gives orders."""
        for part in ("raylet", "gcs_server", "ray start"):
            self.signal(part, signal.SIGKILL)

    def kill_all(self) -> None:
        """Kill all that runs there."""
        self.signal("", signal.SIGKILL)

    def kill(self) -> None:
        """Switch it off: all of its processes are killed at once.

        Its kernel would be gone as well, and with it the control groups of its stacks.
        """
        stacks = self._stacks()
        for process in (self._holder, *self._started):
            process.kill()
            process.wait()
        for stack in stacks:
            forget_groups(stack)


@contextmanager
def hosts_on_a_switch(number: int, folder: Path) -> Iterator[list[TestHost]]:
    """Give hosts that reach each other, and see one folder."""
    with ExitStack() as exits:
        switch = _sleeper(exits.enter_context(_held("unshare", "--net")).pid)
        _do(*_switch(switch), "ip", "link", "add", "name", "switch0", "type", "bridge")
        _do(*_switch(switch), "ip", "link", "set", "switch0", "up")
        yield [TestHost(each, switch, folder, exits) for each in range(1, number + 1)]


@contextmanager
def ray_cluster_of(number: int, folder: Path, cpus: Sequence[str] = ()) -> Iterator[list[TestHost]]:
    """Give hosts with a node of one Ray cluster each, whose head is the first.

    Each has the CPUs that are given for it; all of them unless given.
    """
    with hosts_on_a_switch(number, folder) as hosts:
        for host in hosts:
            of_head = ("--head", f"--port={PORT}", "--include-dashboard=false")
            own = ("taskset", "--cpu-list", cpus[host.number - 1]) if cpus else ()
            role: tuple[str, ...] = of_head if host is hosts[0] else (f"--address={HEAD}",)
            host.has_node(partial(_start_node, host, own, role, folder))
        yield hosts


def _start_node(host: TestHost, own: tuple[str, ...], role: tuple[str, ...], folder: Path) -> None:
    """One after the other: together they take longer than Ray waits."""
    log = folder / f"ray-{host.name}.log"
    common = (f"--node-ip-address={host.address}", "--num-cpus=2", *SPARING_OPTIONS)
    for _ in range(TRIES):
        before = len(log.read_text()) if log.exists() else 0
        node = host.popen(*own, BIN / "ray", "start", "--block", *role, *common, log=log)
        while node.poll() is None:
            if STARTED in log.read_text()[before:]:
                return
            time.sleep(0.2)
    raise AssertionError(log.read_text())


def own_temporary_folder(checkout: Path = CHECKOUT) -> str:
    """Give shell commands that mount an empty /tmp, and keep a checkout below it in its place."""
    empty = "mount -t tmpfs tmpfs /tmp; chmod 1777 /tmp;"
    if not checkout.is_relative_to("/tmp"):  # noqa: S108 (the name that is mounted on)
        return empty
    there = shlex.quote(str(checkout))
    return f"mount --bind {there} {ASIDE}; {empty}mkdir -p {there}; mount --bind {ASIDE} {there};"


@contextmanager
def _held(*words: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *words, *SLEEP.split()])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _sleeper(holder: int) -> int:
    """Give the process inside: it sleeps when all of its namespaces are made."""
    began = time.monotonic()
    while time.monotonic() - began < PATIENCE_S:
        there = psutil.Process(holder)
        for process in (there, *there.children()):
            if " ".join(process.cmdline()) == SLEEP:
                return process.pid
        time.sleep(0.01)
    raise AssertionError(f"{holder} doesn't sleep")


def _switch(switch: int) -> tuple[str, ...]:
    return ("nsenter", "--target", str(switch), "--net")


def _do(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=30)
    assert done.returncode == 0, (words, done.stderr)
