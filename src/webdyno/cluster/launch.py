"""A cluster started and stopped on machines that are reached by SSH.

The `ssh` program carries typed orders to `webdyno.cluster.node` there: on its standard input, so
that the token stands on no command line.
"""

import logging
import os
import re
import shlex
import socket
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import version
from ipaddress import ip_address
from subprocess import CompletedProcess

from pydantic import ValidationError

from webdyno.cluster.orders import NodeAnswer, StartNode, StopNode
from webdyno.core.debug_log import DEBUG_FILE
from webdyno.core.errors import OperationError, UserError
from webdyno.host.children import run_program
from webdyno.host.python import python_module

logger = logging.getLogger(__name__)

CONNECTS_WITHIN_S = 10
ANSWERS_WITHIN_S = 600
"""A node may be started three times, each taking up to two minutes."""
SSH_FAILED = 255
HOST = re.compile(r"(ssh://)?([\w.-]+@)?[\w][\w.-]*(:\d+)?")


@dataclass(frozen=True)
class SshHost:
    """A machine that is reached by SSH."""

    name: str
    """As `ssh` takes it: `user@10.0.0.1`, `ssh://user@10.0.0.1:2222`, or a name of its settings."""
    python: str
    """There: one that has webdyno."""

    def address(self) -> str:
        """Give the private IPv4 address by which `ssh` reaches it. Raises UserError for another."""
        settings = dict(line.partition(" ")[::2] for line in self._ssh("-G").stdout.splitlines())
        name = settings.get("hostname", self.name)
        try:
            address = socket.getaddrinfo(name, None, socket.AF_INET)[0][4][0]
        except OSError as error:
            raise UserError(f"{self.name}: {name} has no address: {error.strerror}") from error
        kind = ip_address(address)
        if kind.is_loopback or not kind.is_private:
            raise UserError(
                f"{self.name}: {address} is {'its own' if kind.is_loopback else 'a public'} "
                "address; hosts of a cluster talk and load each other on private ones: name it by "
                "that"
            )
        return str(address)

    def carry_out(self, order: StartNode | StopNode) -> NodeAnswer:
        """Give an order.

        Raises UserError or OperationError, naming the host, where it isn't followed.
        """
        logger.debug("%s is given an order: %s", self.name, type(order).__name__)
        there = shlex.join(python_module("webdyno.cluster.node", self.python))
        done = self._ssh("-T", there=there, said=order.model_dump_json())
        try:
            answer = NodeAnswer.model_validate_json(done.stdout.strip().rpartition("\n")[2])
        except ValidationError:
            raise self._no_answer(done) from None
        if answer.wrong:
            raise OperationError(f"{self.name}: {answer.wrong}")
        return answer

    def _ssh(self, flag: str, there: str | None = None, said: str = "") -> CompletedProcess[str]:
        """Call `ssh`, which asks nothing.

        What it is to do `there` is words for a shell.
        """
        asks_nothing = ("-o", "BatchMode=yes", "-o", f"ConnectTimeout={CONNECTS_WITHIN_S}")
        return run_program(
            ["ssh", *asks_nothing, flag, "--", self.name, *([there] if there else [])],
            within_s=ANSWERS_WITHIN_S,
            given=said,
            named=f"{self.name} doesn't answer: ssh",
            install="there is no ssh on the PATH: install openssh-client",
        )

    def _no_answer(self, done: CompletedProcess[str]) -> UserError | OperationError:
        """Say why it didn't answer."""
        said = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        if done.returncode == SSH_FAILED:
            return OperationError(
                f"{self.name} isn't reached by SSH: {said}\n"
                f"`ssh {self.name} true` has to work without a question: a key, and a host that is "
                "known"
            )
        return UserError(
            f"{self.name}: {self.python} has no webdyno there that can be asked: {said}\n"
            "install the same webdyno on all hosts, and name its Python with --python"
        )


@dataclass(frozen=True)
class LaunchResult:
    """What became of one host."""

    host: SshHost
    answer: NodeAnswer | None = None
    failure: str | None = None


def ssh_hosts(names: Sequence[str], python: str) -> list[SshHost]:
    """Give the hosts of these names. Raises UserError for what is none, and for one named twice."""
    for name in names:
        if not HOST.fullmatch(name):
            raise UserError(f"{name} is no host: name each as ssh takes it, such as user@10.0.0.1")
    if len(set(names)) < len(names):
        raise UserError("a host is named twice: name each once, the head first")
    return [SshHost(name, python) for name in names]


def addresses_of(hosts: Sequence[SshHost]) -> dict[SshHost, str]:
    """Give each host's address. Raises UserError where one has none that will do."""
    addresses = {host: host.address() for host in hosts}
    if len(set(addresses.values())) < len(hosts):
        raise UserError("two of these hosts have one address: name each machine once")
    return addresses


def start_cluster(
    addresses: Mapping[SshHost, str], port: int, token: str
) -> Iterator[LaunchResult]:
    """Start a head on the first host, then nodes on the others; say of each when it is up.

    One after the other: together they take longer than Ray waits. Without a head nothing more is
    started.
    """
    head: str | None = None
    for host, address in addresses.items():
        order = StartNode(
            webdyno=version("webdyno"),
            address=address,
            port=port,
            head=head,
            token=token,
            debug_file=os.environ.get(DEBUG_FILE),
        )
        try:
            yield LaunchResult(host, host.carry_out(order))
        except (UserError, OperationError) as failure:
            yield LaunchResult(host, failure=str(failure))
            if head is None:
                return
        head = head or address


def stop_cluster(addresses: Mapping[SshHost, str]) -> Iterator[LaunchResult]:
    """End the nodes on all hosts at once, the head's after the others'."""
    head, *others = addresses.items()
    with ThreadPoolExecutor(len(addresses)) as pool:
        yield from pool.map(_stop, others)
    yield _stop(head)


def _stop(placed: tuple[SshHost, str]) -> LaunchResult:
    host, address = placed
    try:
        return LaunchResult(host, host.carry_out(StopNode(address=address)))
    except (UserError, OperationError) as failure:
        return LaunchResult(host, failure=str(failure))
