"""A cluster as where a run takes place: hosts that serve, and others that make load.

Servers of one stack may be on several hosts; clients share a load. What was read on each host in a
slot is put together.
"""

import os
import secrets
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Self, TypeVar

from webdyno.cluster.agent import parcel_of
from webdyno.cluster.host import RemoteAgent, RoleHost, merged_servers, merged_uses
from webdyno.config import Catalogue
from webdyno.core.errors import OperationError, UserError
from webdyno.core.experiment import Experiment
from webdyno.core.files import write_whole
from webdyno.core.records import Response
from webdyno.core.sweep import PointPlan
from webdyno.core.testbed import RoleHosts
from webdyno.load.interface import LoadOrder
from webdyno.load.split_and_merge import merged_results, split_order
from webdyno.measure.backend import (
    ClientsHost,
    HostLost,
    LoadOutcome,
    PointTestbed,
    Questions,
    ServersHost,
    SlotUsage,
    StartedVariant,
    Surroundings,
    TestbedOf,
    Tracing,
)
from webdyno.measure.folder import RunFolder
from webdyno.measure.planned import PlannedVariant, variants_of_all_points
from webdyno.measure.repeat import keep_for_repeating
from webdyno.servers.service_graph import Placement, resolve_stack

T = TypeVar("T")


def at_once(orders: Sequence[Callable[[], T]]) -> list[T]:
    """Give several orders at once; return what came of them, or raise the first refusal."""
    with ThreadPoolExecutor(max(len(orders), 1)) as pool:
        given = [pool.submit(order) for order in orders]
    return [future.result() for future in given]


class RemoteServers(ServersHost):
    """The hosts with the servers of a point's variants."""

    def __init__(
        self,
        agents: Mapping[str, RemoteAgent],
        addresses: Mapping[str, str],
        plan: PointPlan,
        variants: Sequence[PlannedVariant],
    ) -> None:
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
        agents = [self._agents[host] for host in _each_once(self._where)]
        return all(at_once([partial(agent.waits_for_rest, most_s) for agent in agents]))

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
            with suppress(HostLost):  # which the next order reports
                self._agents[host].end()
                for folder in (self._folders[name] for name in where if host in where[name]):
                    keep_files(self._agents[host].files(Path(folder.name)), folder)

    def _agents_of(self, variant: str) -> list[RemoteAgent]:
        return [self._agents[host] for host in self._where.get(variant, [])]

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
        """In the order in which they start; the front's host last."""
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
        """Find where each service listens; return each host's view of that."""
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
    """Write down what came from a host. Raise OperationError for what lies elsewhere."""
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
        """Who is named may change from round to round."""
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
        """Log in, from each of them, the users whose load it will make."""
        shares = self._shares(order)
        at_once([partial(client.log_in, variant, part) for client, part in shares])

    def load(self, variant: str, order: LoadOrder) -> LoadOutcome:
        """Load it from each of them with its share of timetable and connections."""
        shares = self._shares(order)
        loaded = at_once([partial(client.load, variant, part) for client, part in shares])
        uses = [outcome.use for outcome in loaded if outcome.use is not None]
        return LoadOutcome(
            merged_results([outcome.result for outcome in loaded]), merged_uses(uses)
        )

    def end(self) -> None:
        ready, self._ready = self._ready, ()
        for name in ready:
            if name in self._agents:
                with suppress(HostLost):
                    self._agents[name].end()

    def _shares(self, order: LoadOrder) -> list[tuple[RemoteAgent, LoadOrder]]:
        parts = split_order(order, len(self._names))
        orders = (replace(part, allow_remote=True) for part in parts)
        return list(zip(self._all(), orders, strict=True))

    def _all(self) -> list[RemoteAgent]:
        return [self._agents[name] for name in self._names]

    def _go_to_point(self) -> None:
        if self._ready != tuple(self._names):
            self._ready = tuple(self._names)
            number = self._plan.point.number
            at_once([partial(client.at_point, number) for client in self._all()])


class ClusterBackend:
    """Hosts of a cluster in their roles, until it is left."""

    def __init__(self, hosts: Sequence[RoleHost], *, yes: bool) -> None:
        """Hosts that come first are taken first."""
        self._hosts = {host.name: host for host in hosts}
        self._yes = yes
        self._agents: dict[str, RemoteAgent] = {}
        self._clients: list[str] = []
        self._parcel = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for name in self._agents:
            self._hosts[name].release()
        self._agents.clear()

    def with_hosts(self, experiment: Experiment) -> Experiment:
        """Return an experiment with a host for each role, or raise UserError."""
        testbed = experiment.testbed
        named = [*testbed.serving, *testbed.hosts.clients]
        for name in named:
            if name not in self._hosts:
                raise UserError(f"testbed: there is no host {name}; there are {self._there()}")
        left = iter(name for name in self._hosts if name not in named)
        servers = testbed.hosts.servers or next(left, None)
        clients = testbed.hosts.clients or [name for name in [next(left, None)] if name]
        if servers is None or not clients:
            raise UserError(
                "--testbed cluster: it needs a host for the servers and another for the client; "
                f"there are {self._there()}"
            )
        hosts = RoleHosts(servers=servers, clients=clients)
        return experiment.replace(testbed=testbed.replace(hosts=hosts))

    def look(self, experiment: Experiment, catalogue: Catalogue) -> Surroundings:
        """Look at all hosts that take part, and see that they can."""
        variants = variants_of_all_points(experiment, catalogue)
        _check(experiment, variants)
        with tempfile.TemporaryDirectory(prefix="webdyno-") as packed:
            keep_for_repeating(Path(packed), experiment, catalogue)
            self._parcel = parcel_of(Path(packed), None)
        testbed = experiment.testbed
        servers = testbed.serving[0]
        self._clients = list(testbed.hosts.clients)
        names = [*testbed.serving, *self._clients]
        for name in names:
            self._begin(name)
        looks = at_once([self._agents[name].look for name in names])
        looked = dict(zip(names, looks, strict=True))
        return Surroundings(
            machine=looked[servers].machine,
            versions={
                variant: {
                    role: looked[testbed.host_of(role)].versions[variant][role]
                    for role in looked[servers].versions[variant]
                }
                for variant in looked[servers].versions
            },
            load_generator=looked[self._clients[0]].load_generator,
            hosts={name: host.machine for name, host in looked.items()},
        )

    def open(
        self,
        folder: RunFolder,
        exits: ExitStack,  # noqa: ARG002 (agents end when the backend is left)
    ) -> TestbedOf:
        """Introduce hosts to each other; their agents are there since `look`."""
        servers = folder.head.experiment.testbed.serving[0]
        self._heartbeat = self._agents[servers].answer_heartbeats()
        for name in self._clients:
            self._agents[name].expect_heartbeats(*self._heartbeat)

        def testbed_of(plan: PointPlan, variants: Sequence[PlannedVariant]) -> PointTestbed:
            addresses = {name: host.address for name, host in self._hosts.items()}
            return PointTestbed(
                RemoteServers(self._agents, addresses, plan, variants),
                RemoteClients(self._agents, self._clients, plan),
            )

        return testbed_of

    def recovers(self, lost: HostLost) -> str | None:
        """Put a host that stands by in the place of a lost client; None where that can't be.

        Servers stay where they are: rounds on two machines can't be compared.
        """
        if lost.host not in self._clients:
            return None
        del self._agents[lost.host]
        self._hosts.pop(lost.host).release()
        spare = next((name for name in self._hosts if name not in self._agents), None)
        if spare is None:
            return None
        self._begin(spare)
        self._agents[spare].look()
        self._agents[spare].expect_heartbeats(*self._heartbeat)
        self._clients[self._clients.index(lost.host)] = spare
        return f"{spare} makes load in its place"

    def _begin(self, name: str) -> None:
        if name not in self._agents:
            peers = [host.address for host in self._hosts.values()]
            self._agents[name] = self._hosts[name].agent(self._parcel, peers, yes=self._yes)

    def _there(self) -> str:
        return ", ".join(self._hosts) or "none"


def _check(experiment: Experiment, variants: Sequence[PlannedVariant]) -> None:
    """Refuse what can't be done on several hosts."""
    if any(variant.secrets for variant in variants):
        raise UserError(
            "secrets (${env:…}) aren't sent to hosts of a cluster, as what goes there isn't "
            "encrypted: leave them out, or run it on one host (--testbed this-machine)"
        )
    if experiment.generator != "loadgen":
        raise UserError(f"--testbed cluster: {experiment.generator} loads this machine only")
    if experiment.state.before_round or experiment.state.after_round:
        raise UserError(
            "--testbed cluster: before_round and after_round would run here, not where the servers "
            "are: leave them out"
        )
    for variant in variants:
        if variant.stack.runs_already or variant.stack.has_containers:
            raise OperationError(
                f"variant {variant.name}: what runs already, and containers, can't be on a host"
            )
        for name in experiment.testbed.services:
            there = {**variant.stack.services, **variant.site.services}
            if name not in there:
                raise UserError(
                    f"testbed.services.{name}: variant {variant.name} has no such service; it has "
                    f"{', '.join(there)}"
                )
