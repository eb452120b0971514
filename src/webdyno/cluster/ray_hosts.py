"""The nodes of a Ray cluster as hosts; nothing else of webdyno knows of Ray.

Ray carries orders and answers and says when a node is gone. It schedules nothing: each order names
its node, takes no logical CPU, and is never tried again by itself.
"""

import logging
import os
import socket
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import chdir, contextmanager, suppress
from functools import partial
from importlib.metadata import version
from ipaddress import ip_address
from typing import Any, ParamSpec, TypeVar

import ray
from ray.exceptions import RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from webdyno.cluster import agent
from webdyno.cluster.host import (
    AgentExit,
    LinkFacts,
    Order,
    Piece,
    RemoteAgent,
    Reply,
    remote_agent,
)
from webdyno.cluster.role_agent import AgentProcess
from webdyno.core.errors import OperationError, UserError
from webdyno.core.testbed import Machine
from webdyno.load.interface import GeneratorError
from webdyno.measure.backend import HostLost
from webdyno.servers.service import StackDied

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")
HEAD_LABEL = "node:__internal_head__"
REACHED_WITHIN_S = 10
CLOSED_WITHIN_S = 15.0
"""Includes the seconds that servers get to stop, and the rest of a running slot."""
TOKENS = "https://docs.ray.io/en/latest/ray-security/token-auth.html"


class RayHost:
    """A node of the cluster."""

    def __init__(self, name: str, address: str, node_id: str) -> None:
        self.name = name
        self.address = address
        self._where = NodeAffinitySchedulingStrategy(node_id, soft=False)
        self._running: ray.ObjectRefGenerator | None = None
        self._actor: Any = None

    def look(self) -> Machine:
        there, here = self._ask(agent.webdyno_version), version("webdyno")
        if there != here:
            raise UserError(
                f"{self.name} has webdyno {there}, here is {here}: install the same on all hosts"
            )
        return self._ask(agent.look)

    def replicate(self, parcel: bytes, *, yes: bool) -> Iterator[Piece | AgentExit]:
        running = self._order(agent.replicate)(parcel, yes=yes)
        self._running = running
        try:
            for piece in running:
                yield ray.get(piece)
        except RayError as error:
            if self._running is running:  # else it was interrupted
                raise HostLost(self._what_happened(error)) from error
        finally:
            self.interrupt()

    def answer_link(self) -> Iterator[tuple[str, int]]:
        try:
            for port in self._order(agent.answer_link)(self.address):
                yield self.address, ray.get(port)
        except RayError as error:
            raise HostLost(self._what_happened(error)) from error

    def measure_link(self, address: str, port: int) -> LinkFacts:
        return self._ask(agent.measure_link, address, port)

    def interrupt(self) -> None:
        """End what runs there for us, as Ctrl-C would."""
        running, self._running = self._running, None
        if running is not None:
            with suppress(RayError):
                ray.cancel(running)

    def agent(self, parcel: bytes, peers: Collection[str], *, yes: bool) -> RemoteAgent:
        """Start an agent there: an actor, which is never started again by itself."""
        there = ray.remote(AgentProcess).options(num_cpus=0, scheduling_strategy=self._where)
        self._actor = there.remote(parcel, self.address, list(peers), yes=yes)
        return remote_agent(partial(self._give, self._actor))

    def release(self) -> None:
        """End its agent; its wardens see that all that it started ends with it."""
        actor, self._actor = self._actor, None
        if actor is None:
            return
        with suppress(UserError, OperationError, ValueError):
            remote_agent(partial(self._give, actor, within_s=CLOSED_WITHIN_S)).close()
        with suppress(RayError, ValueError):
            ray.kill(actor)

    def _give(self, actor: Any, order: Order, within_s: float | None = None) -> object:  # noqa: ANN401 (Ray's own)
        """Send its agent an order, and wait until it is carried out."""
        logger.debug("%s is given an order: %s", self.name, order.what)
        try:
            reply: Reply = ray.get(actor.do.remote(order), timeout=within_s)
        except RayTaskError as failure:
            raise OperationError(self._what_happened(failure)) from failure
        except RayError as error:
            raise HostLost(self._what_happened(error), self.name) from error
        if reply.refusal is None:
            return reply.value
        if isinstance(reply.refusal, StackDied | GeneratorError):
            raise reply.refusal
        raise type(reply.refusal)(f"{self.name}: {reply.refusal}")

    def _ask(self, function: Callable[P, T], *values: P.args, **more: P.kwargs) -> T:
        try:
            answer: T = ray.get(self._order(function)(*values, **more))
        except RayTaskError as failure:
            raise UserError(self._what_happened(failure)) from failure
        except RayError as error:
            raise HostLost(self._what_happened(error)) from error
        return answer

    def _what_happened(self, error: RayError) -> str:
        """Why an order failed, without the traceback that Ray makes of it."""
        if isinstance(error, RayTaskError):
            for_people = isinstance(error.cause, UserError | OperationError)
            kind = "" if for_people else f"{type(error.cause).__name__}: "
            return f"{self.name}: {kind}{error.cause}"
        # Ray's own words are a page about its actors' numbers and retries.
        why = type(error).__name__
        return f"{self.name} is gone: it, or what runs there, ended or isn't reached ({why})"

    def _order(self, function: Callable[..., object]) -> Callable[..., Any]:
        """Return what calls a function on this node."""
        there = ray.remote(function).options(
            num_cpus=0, max_retries=0, scheduling_strategy=self._where
        )
        send: Callable[..., Any] = there.remote
        return send


@contextmanager
def ray_cluster(address: str) -> Iterator[list[RayHost]]:
    """Join a cluster that runs; give its hosts, the head last, as it has Ray's own work to do.

    Raise UserError where the cluster takes orders from anybody, OperationError if it isn't reached.
    """
    if os.environ.get("RAY_AUTH_MODE") != "token":
        raise UserError(
            "Ray would take orders from anybody who reaches its ports: start all of its nodes with "
            f"RAY_AUTH_MODE=token and one RAY_AUTH_TOKEN, and set both here as well; see {TOKENS}"
        )
    name, _, port = address.rpartition(":")
    if not name or not port.isdigit():
        raise UserError(f"--cluster {address}: give the head's address and port: 10.0.0.1:6379")
    try:  # Ray itself tries for minutes
        socket.create_connection((name, int(port)), REACHED_WITHIN_S).close()
    except OSError as error:
        raise _no_cluster(address, error) from error
    os.environ["RAY_ENABLE_UV_RUN_RUNTIME_ENV"] = "0"  # else `uv run` is repeated on each host
    try:
        with chdir("/"):  # Ray has all workers import from the folder that it is called in
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (RayError, ConnectionError, RuntimeError, ValueError) as error:
        raise _no_cluster(address, error) from error
    try:
        yield _hosts(ray.nodes())  # type: ignore[no-untyped-call]
    finally:
        ray.shutdown()


def _no_cluster(address: str, error: Exception) -> OperationError:
    first = next(filter(None, map(str.strip, str(error).splitlines())), "")
    return OperationError(
        f"the cluster at {address} can't be joined: {first or repr(error)}\n"
        "its head is started by `ray start --head`, and webdyno is called on one of its nodes"
    )


def _hosts(nodes: list[Mapping[str, Any]]) -> list[RayHost]:
    there = [node for node in nodes if node["Alive"]]
    for node in there:
        if not ip_address(node["NodeManagerAddress"]).is_private:
            raise UserError(
                f"{node['NodeManagerAddress']} is a public address: hosts talk and load each other "
                "on private ones"
            )
    there.sort(key=lambda node: (HEAD_LABEL in node["Resources"], node["NodeManagerAddress"]))
    names = [node["NodeManagerHostname"] for node in there]
    alike = len(set(names)) < len(names)
    called = "NodeManagerAddress" if alike else "NodeManagerHostname"
    return [RayHost(node[called], node["NodeManagerAddress"], node["NodeID"]) for node in there]
