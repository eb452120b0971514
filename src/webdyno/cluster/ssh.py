"""Machines that are reached by SSH, and given the orders to start and to stop a node of Ray.

The `ssh` program carries typed orders to `python -m webdyno.cluster.node` there, on its standard
input: nothing secret stands on a command line, and no words for a shell come.
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
from typing import NamedTuple

from pydantic import ValidationError

from webdyno.cluster.node import NodeAnswer, StartNode, StopNode
from webdyno.core.debug_log import DEBUG_FILE
from webdyno.core.errors import OperationError, UserError
from webdyno.host.children import python_module, run_program

logger = logging.getLogger(__name__)

ANSWERS_WITHIN_S = 600
"""A node may be started three times, each taking up to two minutes."""
CONNECTS_WITHIN_S, SSH_FAILED = 10, 255
HOST = re.compile(r"(ssh://)?([\w.-]+@)?[\w][\w.-]*(:\d+)?")


@dataclass(frozen=True)
class SshHost:
    """A machine that is reached by SSH."""

    name: str
    """As `ssh` takes it: `user@10.0.0.1`, `ssh://user@10.0.0.1:2222`, or a name of its settings."""
    python: str
    """There: one that has webdyno."""

    def address(self) -> str:
        """Return the private IPv4 address by which `ssh` reaches it, or raise UserError."""
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
        """Send an order; raise UserError or OperationError where it isn't followed."""
        logger.debug("%s is given an order: %s", self.name, type(order).__name__)
        there = shlex.join(python_module("webdyno.cluster.node", self.python))
        done = self._ssh("-T", there=there, said=order.model_dump_json())
        try:
            answer = NodeAnswer.model_validate_json(done.stdout.strip().rpartition("\n")[2])
        except ValidationError:
            said = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
            if done.returncode == SSH_FAILED:
                raise OperationError(
                    f"{self.name} isn't reached by SSH: {said}\n"
                    f"`ssh {self.name} true` has to work without a question: a key, and a host "
                    "that is known"
                ) from None
            raise UserError(
                f"{self.name}: {self.python} has no webdyno there that can be asked: {said}\n"
                "install the same webdyno on all hosts, and name its Python with --python"
            ) from None
        if answer.wrong:
            raise OperationError(f"{self.name}: {answer.wrong}")
        return answer

    def _ssh(self, flag: str, there: str | None = None, said: str = "") -> CompletedProcess[str]:
        """What `ssh` is to do `there` is words for a shell; it asks nothing."""
        asks_nothing = ("-o", "BatchMode=yes", "-o", f"ConnectTimeout={CONNECTS_WITHIN_S}")
        return run_program(
            ["ssh", *asks_nothing, flag, "--", self.name, *([there] if there else [])],
            within_s=ANSWERS_WITHIN_S,
            given=said,
            named=f"{self.name} doesn't answer: ssh",
            install="there is no ssh on the PATH: install openssh-client",
        )


class LaunchResult(NamedTuple):
    """What became of one host."""

    host: SshHost
    answer: NodeAnswer | None = None
    failure: str | None = None


def ssh_hosts(names: Sequence[str], python: str) -> list[SshHost]:
    """Return the hosts of these names; raise UserError for what is none or is named twice."""
    for name in names:
        if not HOST.fullmatch(name):
            raise UserError(f"{name} is no host: name each as ssh takes it, such as user@10.0.0.1")
    if len(set(names)) < len(names):
        raise UserError("a host is named twice: name each once, the head first")
    return [SshHost(name, python) for name in names]


def addresses_of(hosts: Sequence[SshHost]) -> dict[SshHost, str]:
    """Return each host's address; raise UserError where one has none that will do."""
    addresses = {host: host.address() for host in hosts}
    if len(set(addresses.values())) < len(hosts):
        raise UserError("two of these hosts have one address: name each machine once")
    return addresses


def start_cluster(
    addresses: Mapping[SshHost, str], port: int, token: str
) -> Iterator[LaunchResult]:
    """Start a head on the first host, then nodes on the others; yield what became of each.

    One after the other: together they take longer than Ray waits. None is without a head.
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
        result = _result_of(host, order)
        yield result
        if result.failure and head is None:
            return
        head = head or address


def stop_cluster(addresses: Mapping[SshHost, str]) -> Iterator[LaunchResult]:
    """End the nodes on all hosts at once, the head's after the others'."""
    head, *others = ((host, StopNode(address=address)) for host, address in addresses.items())
    with ThreadPoolExecutor(len(addresses)) as pool:
        yield from pool.map(lambda placed: _result_of(*placed), others)
    yield _result_of(*head)


def _result_of(host: SshHost, order: StartNode | StopNode) -> LaunchResult:
    try:
        return LaunchResult(host, host.carry_out(order))
    except (UserError, OperationError) as failure:
        return LaunchResult(host, failure=str(failure))
