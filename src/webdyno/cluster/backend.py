"""A cluster as where a run takes place: hosts that serve, and others that make load."""

import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from webdyno.cluster.agent import parcel_of
from webdyno.cluster.host import RemoteAgent, RoleHost
from webdyno.cluster.remote_hosts import RemoteClients, RemoteServers, at_once
from webdyno.config import Catalogue
from webdyno.core.errors import OperationError, UserError
from webdyno.core.experiment import Experiment
from webdyno.core.point import PointPlan
from webdyno.core.testbed import RoleHosts
from webdyno.measure.backend import HostLost, PointTestbed, Surroundings, TestbedOf
from webdyno.measure.folder import RunFolder
from webdyno.measure.planned import PlannedVariant, variants_of_all_points
from webdyno.measure.repeat import keep_for_repeating


class ClusterBackend:
    """Hosts of a cluster in their roles, until it is left."""

    def __init__(self, hosts: Sequence[RoleHost], *, yes: bool) -> None:
        """Have these hosts; those that come first are taken first."""
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

    def resolved(self, experiment: Experiment) -> Experiment:
        """Name a host for each role. Raises UserError where one isn't there, or none is left."""
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
        """Have hosts know of each other; their agents are there since `look`."""
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
