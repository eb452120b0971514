"""Where an experiment runs: this machine as it is, a network of our own on it, or a cluster."""

from ipaddress import ip_address, ip_network
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import Field, model_validator

from webdyno.core.base import Model
from webdyno.core.units import RATE, SHARE, TIME, Quantity

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
    """The host that serves; the first that can measure by default."""
    clients: list[str] = []
    """The hosts that make load; the next one by default."""


class ServiceHost(Model):
    """Where one service of the stacks runs."""

    host: str
    """Its host, instead of that of the other servers."""


class TestbedSettings(Model):
    """The testbed and, where it has a network of its own, what that is like."""

    kind: Literal["this-machine", "netns", "cluster"] = "this-machine"
    """The loopback interface, network namespaces joined by a virtual link, or hosts of a Ray
    cluster."""
    hosts: RoleHosts = RoleHosts()
    """Cluster: the hosts that serve, and those that make load."""
    services: dict[str, ServiceHost] = {}
    """Cluster: services with a host of their own."""
    server_cores: Annotated[int, Field(ge=1, le=4096)] | None = None
    """Cores of the servers, about half by default; the client has the others."""
    client_cpus: Annotated[float, Field(ge=0.05, le=4096)] | None = None
    """How many of its CPUs the client gets, all by default; 0.8 is 80% of one."""
    keep_awake: bool = False
    """Keep CPUs out of deep idle, for all variants: in virtual machines a sleep costs an open loop
    less then, and ends on time."""
    link: Annotated[float, Quantity(RATE, 1_000, 1e12)] | None = None
    """What the link carries each way; Ethernet headers count. Unlimited by default."""
    delay: Annotated[float, Quantity(TIME, 0, 10)] = 0.0
    """Added to a round trip, half of it each way."""
    loss: Annotated[float, Quantity(SHARE, 0, 0.5)] = 0.0
    """Share of packets lost each way."""

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
            if self.keep_awake:
                raise ValueError("keep_awake is about this machine; a cluster's hosts have none")
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
