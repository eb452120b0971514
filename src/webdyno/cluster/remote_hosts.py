"""What hosts do together: servers of one stack on several, clients that share a load.

What was read on each of them in a slot is put together.
"""

import os
import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from webdyno.cluster.host import RemoteAgent
from webdyno.core.errors import OperationError, UserError
from webdyno.core.files import write_whole
from webdyno.core.point import PointPlan
from webdyno.core.readings import CpuUse, StoppedUse
from webdyno.core.records import Response, ServerUse
from webdyno.load.interface import LoadOrder
from webdyno.load.split_and_merge import merged_results, split_order
from webdyno.measure.backend import (
    ClientsHost,
    ClientUse,
    HostLost,
    LoadOutcome,
    Questions,
    ServersHost,
    SlotUsage,
    StartedVariant,
    Tracing,
)
from webdyno.measure.planned import PlannedVariant
from webdyno.probes.instructions import Counted
from webdyno.probes.stacks import Profile
from webdyno.servers.layout import Placement
from webdyno.servers.service_graph import resolve_stack

T = TypeVar("T")
Number = TypeVar("Number", int, float)


def merged_servers(used: Sequence[SlotUsage]) -> SlotUsage:
    """Put together what the hosts of one variant's services used; the front's comes last.

    CPU time adds up. Of what only makes sense for one machine (network, samples, pressure) the
    front's is reported.
    """
    front = used[-1].readings
    readings = [usage.readings for usage in used]
    cpus = _added([reading.host.servers for reading in readings])
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
            other_variants_cpu_s=_summed(reading.other_variants_cpu_s for reading in readings),
            host=front.host.replace(servers=cpus),
            stopped=StoppedUse(servers_s=max(stopped, default=0.0)),
        ),
        profile=_profiles([usage.profile for usage in used if usage.profile]),
        system_calls=_summed(usage.system_calls for usage in used if usage.system_calls) or None,
        instructions=_counted([usage.instructions for usage in used if usage.instructions]),
        course=used[-1].course,
        server_cpus=used[-1].server_cpus,
    )


def merged_uses(uses: Sequence[ClientUse]) -> ClientUse | None:
    """Put together what was read of hosts that make load: each is watched for its own limits."""
    if not uses:
        return None
    return ClientUse(
        cpu=_added([use.cpu for use in uses]),
        waiting=_most(use.waiting for use in uses),
        stopped_s=max(use.stopped_s for use in uses),
        silent_s=_most(use.silent_s for use in uses),
    )


def _most(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def _added(parts: Sequence[CpuUse]) -> CpuUse:
    return CpuUse(**_summed(part.model_dump() for part in parts))


def _profiles(profiles: Sequence[Profile]) -> Profile | None:
    if not profiles:
        return None
    stacks = Counter(_summed(profile.stacks for profile in profiles))
    return Profile(
        _summed(profile.cpu_s for profile in profiles),
        stacks,
        _summed(profile.functions_s for profile in profiles),
    )


def _counted(counted: Sequence[Counted]) -> Counted | None:
    """Add instructions up; where one host can't count them, nobody knows."""
    known = [each.instructions for each in counted if each.instructions is not None]
    if len(known) < len(counted):
        return next(each for each in counted if each.instructions is None)
    return Counted(sum(known)) if counted else None


def _summed(parts: Iterable[Mapping[str, Number]]) -> dict[str, Number]:
    """Add figures up by their names."""
    sums: dict[str, Number] = {}
    for part in parts:
        for name, number in part.items():
            sums[name] = sums.get(name, 0) + number
    return sums


def at_once(orders: Sequence[Callable[[], T]]) -> list[T]:
    """Give several orders at once; give what came of them, in their order.

    Raises the first refusal when all have answered.
    """
    with ThreadPoolExecutor(max(len(orders), 1)) as pool:
        given = [pool.submit(order) for order in orders]
    return [future.result() for future in given]


def _ends(agent: RemoteAgent) -> bool:
    """End what an agent has started; False where its host is lost, and that has ended with it.

    Who is lost is reported when the next order needs him.
    """
    with suppress(HostLost):
        agent.end()
        return True
    return False


class RemoteServers(ServersHost):
    """The hosts with the servers of a point's variants."""

    def __init__(
        self,
        agents: Mapping[str, RemoteAgent],
        addresses: Mapping[str, str],
        plan: PointPlan,
        variants: Sequence[PlannedVariant],
    ) -> None:
        """Use the agents of hosts, by name."""
        self._agents, self._addresses, self._plan = agents, addresses, plan
        self._variants = {variant.name: variant for variant in variants}
        self._testbed = plan.experiment.testbed
        self._where: dict[str, list[str]] = {}
        """The hosts of each variant that is up, in the order in which they start; the front's
        last."""
        self._folders: dict[str, Path] = {}
        self._loaded: list[RemoteAgent] = []

    def start(self, variant: str, folder: Path) -> StartedVariant:
        """Start those first on which others rely."""
        self._go_to_point()
        by_host = self._roles_by_host(self._variants[variant])
        self._where[variant], self._folders[variant] = list(by_host), folder
        placement = self._placement(variant, by_host) if len(by_host) > 1 else {}
        ups = [
            self._agents[host].start(variant, Path(folder.name), placement.get(host))
            for host in by_host
        ]
        if len(ups) == 1:
            return ups[0]
        facts = {name: value for up in ups for name, value in up.facts.items()}
        return ups[-1]._replace(
            ready_s=sum(up.ready_s for up in ups),
            cpu_s=sum(up.cpu_s for up in ups),
            is_counted=False,
            facts=facts,
        )

    def stop(self, variant: str) -> None:
        for host in reversed(self._where.pop(variant, [])):
            self._agents[host].stop(variant)

    def broken_rule(self, variant: str) -> str | None:
        """Ask from the front's host."""
        return self._agents_of(variant)[-1].broken_rule(variant)

    def check_alive(self, variant: str) -> None:
        for agent in self._agents_of(variant):
            agent.check_alive(variant)

    def waits_for_rest(self, most_s: float) -> bool:
        return all(at_once([partial(host.waits_for_rest, most_s) for host in self._all()]))

    def put_back(self, variant: str) -> None:
        at_once([partial(agent.put_back, variant) for agent in self._agents_of(variant)])

    def slot_begins(self, variant: str, tracing: Tracing | None) -> None:
        self._loaded = self._agents_of(variant)
        at_once([partial(agent.slot_begins, variant, tracing) for agent in self._loaded])

    def slot_ends(self) -> SlotUsage:
        """Report the front's host where only one can be reported."""
        loaded, self._loaded = self._loaded, []
        used = at_once([agent.slot_ends for agent in loaded])
        return used[0] if len(used) == 1 else merged_servers(used)

    def slot_fails(self) -> None:
        loaded, self._loaded = self._loaded, []
        for agent in loaded:
            with suppress(UserError, OperationError):
                agent.slot_fails()

    def sampling_begins(self, variant: str, every_s: float) -> None:
        """Read where it is on one host."""
        self._loaded = self._agents_of(variant)
        self._loaded[-1].sampling_begins(variant, every_s)

    def sampling_ends(self) -> Sequence[tuple[float, float]]:
        loaded, self._loaded = self._loaded, []
        return loaded[-1].sampling_ends()

    def end(self) -> None:
        """Stop everything; bring here what servers were started with, and said."""
        where, self._where = self._where, {}
        for host in _each_once(where):
            if not _ends(self._agents[host]):
                continue
            for folder in (
                self._folders[variant] for variant, hosts in where.items() if host in hosts
            ):
                with suppress(HostLost):
                    keep_files(self._agents[host].files(Path(folder.name)), folder)

    def _agents_of(self, variant: str) -> list[RemoteAgent]:
        return [self._agents[host] for host in self._where.get(variant, [])]

    def _all(self) -> list[RemoteAgent]:
        return [self._agents[host] for host in _each_once(self._where)]

    def _go_to_point(self) -> None:
        if self._where:
            return
        names = {
            self._testbed.hosts.servers,
            *(service.host for service in self._testbed.services.values()),
        }
        number = self._plan.point.number
        at_once([partial(self._agents[name].at_point, number) for name in names if name])

    def _roles_by_host(self, variant: PlannedVariant) -> dict[str, list[str]]:
        """Give the services of each host, in the order in which they start; the front's last."""
        resolved = resolve_stack(variant.stack, variant.site, variant.settings, server_cpus=1)
        roles: dict[str, list[str]] = {}
        for role in resolved.roles:
            roles.setdefault(self._testbed.host_of(role.name), []).append(role.name)
        front = self._testbed.host_of(variant.stack.front)
        roles[front] = roles.pop(front)
        return roles

    def _placement(
        self, variant: str, by_host: Mapping[str, Sequence[str]]
    ) -> dict[str, Placement]:
        """Find where each service listens; give each host its view of that."""
        addresses: dict[str, tuple[str, int]] = {}
        for host, roles in by_host.items():
            ports = self._agents[host].ports_for(variant, roles)
            addresses |= {
                role: (self._addresses[host], port) for role, port in zip(roles, ports, strict=True)
            }
        seed, name = secrets.token_bytes(32), secrets.token_hex(8)
        return {
            host: Placement(frozenset(roles), addresses, seed, name)
            for host, roles in by_host.items()
        }


def keep_files(files: Mapping[str, bytes], folder: Path) -> None:
    """Write down what came from a host. Raises OperationError for what lies elsewhere."""
    for name, content in files.items():
        path = Path(os.path.normpath(folder / name))
        if not path.is_relative_to(folder):
            raise OperationError(f"a host sent a file that is none of the run's: {name}")
        write_whole(path, content, below=folder)


def _each_once(where: Mapping[str, Sequence[str]]) -> list[str]:
    return list(dict.fromkeys(host for hosts in where.values() for host in hosts))


class RemoteClients(ClientsHost):
    """The hosts that make load, and share it."""

    def __init__(
        self, agents: Mapping[str, RemoteAgent], names: Sequence[str], plan: PointPlan
    ) -> None:
        """Use the agents of these hosts; who is named may change from round to round."""
        self._agents, self._names, self._plan = agents, names, plan
        self._ready: tuple[str, ...] = ()

    def ask(self, variant: str, url: str, questions: Questions) -> list[Response]:
        """Ask from the first of them."""
        self._go_to_point()
        return self._all()[0].ask(variant, url, questions)

    def get_ready(self, variant: str) -> None:
        self._go_to_point()
        at_once([partial(client.get_ready, variant) for client in self._all()])

    def log_in(self, variant: str, order: LoadOrder) -> None:
        """Have each of them log in the users whose load it will make."""
        parts = self._parts(order)
        at_once(
            [
                partial(client.log_in, variant, part)
                for client, part in zip(self._all(), parts, strict=True)
            ]
        )

    def load(self, variant: str, order: LoadOrder) -> LoadOutcome:
        """Load it from each of them with its share of timetable and connections."""
        clients, parts = self._all(), self._parts(order)
        loaded = at_once(
            [
                partial(client.load, variant, part)
                for client, part in zip(clients, parts, strict=True)
            ]
        )
        uses = [outcome.use for outcome in loaded if outcome.use is not None]
        return LoadOutcome(
            merged_results([outcome.result for outcome in loaded]), merged_uses(uses)
        )

    def end(self) -> None:
        ready, self._ready = self._ready, ()
        for name in ready:
            if name in self._agents:
                _ends(self._agents[name])

    def _parts(self, order: LoadOrder) -> list[LoadOrder]:
        parts = split_order(order, len(self._names))
        return [replace(part, allow_remote=True) for part in parts]

    def _all(self) -> list[RemoteAgent]:
        return [self._agents[name] for name in self._names]

    def _go_to_point(self) -> None:
        if self._ready != tuple(self._names):
            self._ready = tuple(self._names)
            number = self._plan.point.number
            at_once([partial(client.at_point, number) for client in self._all()])
