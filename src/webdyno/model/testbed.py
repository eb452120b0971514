"""Where an experiment runs: this machine as it is, a network of our own on it, or a cluster."""

from ipaddress import ip_address, ip_network
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import Field, model_validator

from webdyno.model.base import Model
from webdyno.model.quantities import RATE, SHARE, TIME, Quantity

OWN_NETWORKS = ip_network("198.18.0.0/15")
"""Where the addresses in networks of ours are from: RFC 2544 sets them aside for benchmarks."""


def is_in_own_network(url: str) -> bool:
    """Whether a URL leads into a network of ours: no user can name one that does."""
    try:
        return ip_address(urlsplit(url).hostname or "") in OWN_NETWORKS
    except ValueError:
        return False


class RoleHosts(Model):
    """Which hosts of a cluster serve and make load."""

    servers: str | None = None
    """The host that the servers are on; unless given, the first that can measure."""
    clients: list[str] = []
    """The hosts that make load: they share one timetable, and the connections. Unless given, the
    next one that can measure."""


class ServiceHost(Model):
    """Where one service of the stacks runs."""

    host: str
    """Its host, instead of that of the other servers."""


class TestbedSettings(Model):
    """The testbed and, where it has a network of its own, what that is like."""

    kind: Literal["this-machine", "netns", "cluster"] = "this-machine"
    """this-machine: client and servers meet on the loopback interface.
    netns: each side has a network namespace of its own; a virtual link joins them.
    cluster: servers and clients are on hosts of a Ray cluster (docs/how-to/several-machines.md)."""
    hosts: RoleHosts = RoleHosts()
    """Of a cluster: the hosts that serve, and those that make load."""
    services: dict[str, ServiceHost] = {}
    """Of a cluster: services with a host of their own, by their name in the stack."""
    server_cores: Annotated[int, Field(ge=1, le=4096)] | None = None
    """How many of the machine's cores the servers get; the client has the others. About half of
    them by default; choose fewer where a fast server saturates the client."""
    client_cpus: Annotated[float, Field(ge=0.05, le=4096)] | None = None
    """How many of its CPUs the client gets, all by default; 0.8 is 80% of one CPU. Shows whether
    the client is the limit."""
    link: Annotated[float, Quantity(RATE, 1_000, 1e12)] | None = None
    """What the link carries each way in bits per second, as text such as "100mbit"; Ethernet
    headers count. No limit unless given."""
    delay: Annotated[float, Quantity(TIME, 0, 10)] = 0.0
    """What the link adds to a round trip in seconds, as text such as "20ms": half of it each
    way."""
    loss: Annotated[float, Quantity(SHARE, 0, 0.5)] = 0.0
    """Share of the packets that get lost each way, as text such as "0.1%"."""

    @model_validator(mode="after")
    def _a_link_needs_namespaces(self) -> "TestbedSettings":
        if self.kind != "netns" and (self.link or self.delay or self.loss):
            raise ValueError(
                'link, delay and loss need the testbed with a network of its own: kind = "netns" '
                "under [testbed], or --testbed netns"
            )
        return self

    @model_validator(mode="after")
    def _hosts_need_a_cluster(self) -> "TestbedSettings":
        has_hosts = bool(self.hosts.servers or self.hosts.clients or self.services)
        if has_hosts and self.kind != "cluster":
            raise ValueError('hosts and services need kind = "cluster" under [testbed]')
        if self.kind == "cluster":
            if both := set(self.serving).intersection(self.hosts.clients):
                raise ValueError(
                    f"{both.pop()} can't serve and make load: each takes from the other's CPUs"
                )
            if len(set(self.hosts.clients)) < len(self.hosts.clients):
                raise ValueError("hosts.clients names a host twice")
        return self

    def __hash__(self) -> int:
        """Settings are kept by; tables in them have no hash."""
        return hash(self.model_dump_json())

    @property
    def serving(self) -> list[str]:
        """The hosts of a cluster that serve, as far as they are named: that of most servers first.

        In a run all are; see `ClusterBackend.resolved`.
        """
        hosts = [self.hosts.servers, *(service.host for service in self.services.values())]
        return list(dict.fromkeys(filter(None, hosts)))

    def host_of(self, role: str) -> str:
        """Name the host of a run's cluster that a service is on."""
        service = self.services.get(role)
        return service.host if service else self.serving[0]

    @property
    def link_bytes_per_s(self) -> float | None:
        return self.link / 8 if self.link else None
