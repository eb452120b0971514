"""A host as seen from here: what its agent does there, by which orders, and readings of several.

Orders to an agent are values. What can be ordered is what `RemoteAgent` has, and nothing else: who
gives orders calls its methods, and who carries them out has them.
"""

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from typing import Any, NamedTuple, Protocol, cast

from webdyno.core.base import Amount, Model
from webdyno.core.errors import OperationError, UserError
from webdyno.core.readings import CpuUse, StoppedUse
from webdyno.core.records import ServerUse
from webdyno.core.sweep import Difference
from webdyno.core.testbed import Machine
from webdyno.evidence.differences import machine_differences
from webdyno.load.split_and_merge import sums_by_name
from webdyno.measure.backend import (
    ClientsHost,
    ClientUse,
    HostLost,
    ServersHost,
    SlotUsage,
    StartedVariant,
    Surroundings,
)
from webdyno.probes.instructions import Counted
from webdyno.probes.stacks import Profile
from webdyno.servers.service_graph import Placement

logger = logging.getLogger(__name__)


class LinkFacts(Model):
    """What lies between two hosts, as seen from one of them."""

    round_trip_us: Amount
    """Of a byte there and back, the median of many."""
    rate_bits_per_s: Amount
    """Of one TCP connection."""


class Piece(NamedTuple):
    """A part of a file of a run that goes on, on another host."""

    file: PurePosixPath
    """Inside the run's folder."""
    start_bytes: int
    data: bytes


class AgentExit(NamedTuple):
    """How the run there ended."""

    code: int
    """What its process ended with."""
    said: str
    """The end of what it printed."""


class Runner(Protocol):
    """Where experiments run for us."""

    @property
    def name(self) -> str:
        """What people call it; no two of a cluster are called alike."""

    def replicate(self, parcel: bytes, *, yes: bool) -> Iterator[Piece | AgentExit]:
        """Run an experiment there, as `agent.replicate`. Raise HostLost, whenever it is."""

    def interrupt(self) -> None:
        """End what runs there for us."""


class RemoteAgent(ServersHost, ClientsHost, Protocol):
    """An agent of webdyno on a host, for one run: all that can be asked of it from elsewhere.

    `remote_agent` derives from this what goes over the wire; `role_agent.RoleAgent` does it there.
    Everything raises what the agent raises, and HostLost.
    """

    def look(self) -> Surroundings:
        """Look at what can change a result there; see that what is needed is there."""

    def answer_heartbeats(self) -> tuple[str, int]:
        """Answer heartbeats from now on; return address and port."""

    def expect_heartbeats(self, address: str, port: int) -> None:
        """Wait for heartbeats from there whenever load is made."""

    def at_point(self, number: int) -> None:
        """Work at a point of the experiment from now on."""

    def ports_for(self, variant: str, roles: Sequence[str]) -> list[int]:
        """Find a free port for each of some services of a variant."""

    def start(
        self, variant: str, folder: Path, placement: Placement | None = None
    ) -> StartedVariant:
        """Start a variant's servers again, or those that a placement has there.

        `folder` is a name among the agent's own, by which `files` gives what is in it.
        """

    def files(self, folder: Path) -> Mapping[str, bytes]:
        """Return what servers were started with, and what they said, by path in the folder."""

    def close(self) -> None:
        """Leave nothing there."""


class RoleHost(Protocol):
    """What can serve, or make load."""

    @property
    def name(self) -> str:
        """What people call it; no two of a cluster are called alike."""

    @property
    def address(self) -> str:
        """By which other hosts reach it."""

    def agent(self, parcel: bytes, peers: Collection[str], *, yes: bool) -> RemoteAgent:
        """Start an agent there, or raise UserError, OperationError or HostLost."""

    def release(self) -> None:
        """Let its agent go, with everything that it has started; safe to call twice."""


class Host(Runner, RoleHost, Protocol):
    """Where a webdyno does what this one asks."""

    def look(self) -> Machine:
        """Report what it is; raise UserError if it has another webdyno or none, or HostLost."""

    def answer_link(self) -> Iterator[tuple[str, int]]:
        """Yield where one measurement of a link is answered, and answer it; raise HostLost."""

    def measure_link(self, address: str, port: int) -> LinkFacts:
        """Measure the link to who answers there. Raise UserError where nobody does, HostLost."""


class Order(NamedTuple):
    """A call of a method."""

    what: str
    values: tuple[object, ...]
    named: Mapping[str, object]


class Reply(NamedTuple):
    """What came of an order: a value, or what to raise where it was given."""

    value: object = None
    refusal: UserError | OperationError | None = None


ORDERS = frozenset(
    name for kind in RemoteAgent.__mro__ for name in vars(kind) if not name.startswith("_")
)


def remote_agent(give: Callable[[Order], object]) -> RemoteAgent:
    """Return an agent whose methods `give` orders, and return or raise what comes of them."""

    def method(what: str) -> Callable[..., object]:
        return lambda *values, **named: give(Order(what, values, named))

    return cast("RemoteAgent", SimpleNamespace(**{what: method(what) for what in ORDERS}))


def carried_out(order: Order, agent: RemoteAgent) -> Reply:
    """Carry out an order here."""
    if order.what not in ORDERS:
        return Reply(refusal=UserError(f"there is no order {order.what!r}"))
    method: Callable[..., Any] = getattr(agent, order.what)
    logger.debug("carries out an order: %s", order.what)
    try:
        return Reply(method(*order.values, **order.named))
    except (UserError, OperationError) as refusal:
        return Reply(refusal=refusal)


@dataclass
class CheckedHost:
    """A host, and whether it can measure next to the others."""

    host: Host
    machine: Machine | None = None
    why_not: str | None = None
    """Why it can't; None of one that can."""
    link: LinkFacts | None = None
    """To the first that can; None of that one."""
    differs: list[Difference] = field(default_factory=list)
    """In what its machine isn't like the first that can."""


def checked_hosts(hosts: Sequence[Host]) -> list[CheckedHost]:
    """Look at all hosts at once; say of each what it is, or why it can't measure."""
    with ThreadPoolExecutor(len(hosts)) as pool:
        looked = list(pool.map(_look, hosts))
    first = next((host.machine for host in looked if host.machine), None)
    for number, looks in enumerate(looked):
        if first and looks.machine:
            identity = looks.machine.identity
            for other in looked[:number]:
                if identity and other.machine and other.machine.identity == identity:
                    looks.why_not = f"{looks.host.name} is the same machine as {other.host.name}"
                    break
            differences = machine_differences(first, looks.machine)
            looks.differs = [each for each in differences if each.what != "machine.identity"]
    return looked


def measure_links(looked: Sequence[CheckedHost]) -> None:
    """Measure the link from each host to the first, each after the other."""
    fit = [host for host in looked if not host.why_not]
    for host in fit[1:]:
        try:
            answering = fit[0].host.answer_link()
            host.link = host.host.measure_link(*next(answering))
            for _ in answering:  # to its end
                pass
        except (UserError, HostLost) as failure:
            host.why_not = str(failure)


def _look(host: Host) -> CheckedHost:
    try:
        return CheckedHost(host, host.look())
    except (UserError, OperationError, HostLost) as failure:
        return CheckedHost(host, why_not=str(failure))


def merged_servers(used: Sequence[SlotUsage]) -> SlotUsage:
    """Put together what the hosts of one variant's services used; the front's comes last.

    CPU time adds up. Of what only makes sense for one machine (network, samples, pressure) the
    front's is reported.
    """
    front = used[-1].readings
    readings = [usage.readings for usage in used]
    cpus = _sum_of_cpus([reading.host.servers for reading in readings])
    stopped = [reading.stopped.servers_s for reading in readings if reading.stopped]
    return SlotUsage(
        servers=ServerUse(
            cpu_user_s=sum(usage.servers.cpu_user_s for usage in used),
            cpu_sys_s=sum(usage.servers.cpu_sys_s for usage in used),
            interrupts_s=sum(usage.servers.interrupts_s for usage in used),
            means=used[-1].servers.means,
        ),
        readings=front.replace(
            services={role: use for each in readings for role, use in each.services.items()},
            status={role: value for each in readings for role, value in each.status.items()},
            other_variants_cpu_s=sums_by_name(reading.other_variants_cpu_s for reading in readings),
            host=front.host.replace(servers=cpus),
            stopped=StoppedUse(servers_s=max(stopped, default=0.0)),
        ),
        profile=_sum_of_profiles([usage.profile for usage in used if usage.profile]),
        system_calls=sums_by_name(usage.system_calls for usage in used if usage.system_calls)
        or None,
        instructions=_sum_of_instructions(
            [usage.instructions for usage in used if usage.instructions]
        ),
        course=used[-1].course,
        server_cpus=used[-1].server_cpus,
    )


def merged_uses(uses: Sequence[ClientUse]) -> ClientUse | None:
    """Put together what was read of hosts that make load: each is watched for its own limits."""
    if not uses:
        return None
    return ClientUse(
        cpu=_sum_of_cpus([use.cpu for use in uses]),
        waiting=_most(use.waiting for use in uses),
        stopped_s=max(use.stopped_s for use in uses),
        silent_s=_most(use.silent_s for use in uses),
    )


def _most(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def _sum_of_cpus(parts: Sequence[CpuUse]) -> CpuUse:
    return CpuUse(**sums_by_name(part.model_dump() for part in parts))


def _sum_of_profiles(profiles: Sequence[Profile]) -> Profile | None:
    if not profiles:
        return None
    return Profile(
        sums_by_name(profile.cpu_s for profile in profiles),
        Counter(sums_by_name(profile.stacks for profile in profiles)),
        sums_by_name(profile.functions_s for profile in profiles),
    )


def _sum_of_instructions(counted: Sequence[Counted]) -> Counted | None:
    """Where one host can't count them, nobody knows."""
    known = [each.instructions for each in counted if each.instructions is not None]
    if len(known) < len(counted):
        return next(each for each in counted if each.instructions is None)
    return Counted(sum(known)) if counted else None
