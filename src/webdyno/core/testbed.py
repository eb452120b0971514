"""Where an experiment runs: its testbed, the machine, and what a client can do there at most.

A testbed is this machine as it is, a network of our own on it, or a cluster.
"""

from datetime import datetime
from ipaddress import ip_address, ip_network
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import Field, model_validator

from webdyno.core.base import RATE, SHARE, TIME, Amount, Count, Model, Quantity

OWN_NETWORKS = ip_network("198.18.0.0/15")
"""Where the addresses in networks of ours are from: RFC 2544 sets them aside for benchmarks."""
ADDRESSES_EACH = 32
"""So many of these has a variant with a network of its own."""


def is_in_own_network(url: str) -> bool:
    """Whether a URL leads into a network of ours: no user can name one that does."""
    try:
        return ip_address(urlsplit(url).hostname or "") in OWN_NETWORKS
    except ValueError:
        return False


class RoleHosts(Model):
    """Which hosts of a cluster serve and make load."""

    servers: str | None = None
    """Who serves; by default the first that can measure."""
    clients: list[str] = []
    """Who makes load; the next one by default."""


class ServiceHost(Model):
    """Where one service of the stacks runs."""

    host: str
    """Its host, instead of that of the other servers."""


class TestbedSettings(Model):
    """The testbed and, where it has a network of its own, what that is like."""

    kind: Literal["this-machine", "netns", "cluster"] = "this-machine"
    """Loopback, network namespaces joined by a virtual link, hosts of a Ray cluster."""
    hosts: RoleHosts = RoleHosts()
    """Cluster: the hosts that serve, and those that make load."""
    services: dict[str, ServiceHost] = {}
    """Cluster: services with a host of their own."""
    server_cores: Annotated[int, Field(ge=1, le=4096)] | None = None
    """Of the servers, about half by default; the client has the others."""
    client_cpus: Annotated[float, Field(ge=0.05, le=4096)] | None = None
    """How many of its CPUs the client gets, all by default; 0.8 is 80% of one."""
    keep_awake: bool = False
    """Keep CPUs out of deep idle: cheaper, more exact open loops in virtual machines."""
    link: Annotated[float, Quantity(RATE, 1_000, 1e12)] | None = None
    """What it carries each way, Ethernet headers included. Unlimited by default."""
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
        """Return the host of a run's cluster that a service is on."""
        service = self.services.get(role)
        return service.host if service else self.serving[0]

    @property
    def link_bytes_per_s(self) -> float | None:
        return self.link / 8 if self.link else None


class CpuSplit(Model):
    """Which CPUs do what; the sets are disjoint unless the machine is too small."""

    servers: list[int]
    client: list[int]
    rest: list[int]
    shared: bool
    """True when servers and client had to share a CPU: results are then only indicative."""


class Machine(Model):
    """What can change a result and isn't part of the experiment."""

    cpu_model: str
    cpus: list[int]
    """CPUs that this process may use."""
    physical_cores: int | None
    memory_bytes: int
    kernel: str
    distribution: str
    virtualisation: str | None
    governor: str | None
    open_files_limit: int
    listen_backlog_limit: int | None
    split: CpuSplit
    sysctls: dict[str, str] = {}
    """Settings of the kernel that servers and load feel; those that it doesn't say are excluded.
    """
    network: str | None = None
    """What joins client and servers, and by which means; None: the loopback interface."""
    awake: str | None = None
    """By which means CPUs are kept out of deep idle; None: they aren't."""
    identity: str | None = None
    """Distinguishes machines of one make; nothing else can be learnt from it."""


FORMAT: Literal[2] = 2
SIMILAR_CONNECTIONS = 2.0
"""A ceiling says nothing about loads with this many times more or fewer connections."""

Limit = Literal["client", "link", "server", "unknown"]
"""What limited the throughput; unknown: nothing was busy all the time."""


class Ceiling(Model):
    """What the client reached against the null server."""

    throughput_rps: Amount
    limited_by: Limit


class MeasuredCeiling(Ceiling):
    """A ceiling, with the load that it was measured with."""

    body_bytes: Count
    connections: Count
    keepalive: Literal["always", "never"]
    client_busy: Amount
    """Share of its time that the client's busiest thread was on the CPU."""

    @property
    def body_bytes_per_s(self) -> float:
        return self.throughput_rps * self.body_bytes


class Delay(Model):
    """How late something happened, in microseconds."""

    p50_us: Amount
    p99_us: Amount
    max_us: Amount


class Noise(Model):
    """By how much two equal variants differ here, on one metric."""

    metric: str
    rounds: Count
    round_sd: Amount
    """Standard deviation of ln(A/A) between rounds."""
    round_s: Amount
    """How long a round of an ordinary run of two variants takes."""
    visible: dict[str, Amount]
    """By length of the run ("1 min"): half-width of the 95% interval of a ratio, as a share;
    extrapolated from `round_sd` by t(n - 1) · sd / √n for the n rounds that fit."""


class Calibration(Model):
    """A file of the user's state folder; each run keeps a copy of the one that it used."""

    format: Literal[2] = FORMAT
    made_at: datetime
    webdyno_version: str
    load_generator: str
    machine: Machine
    testbed: TestbedSettings
    ceilings: list[MeasuredCeiling]
    timer_delay: Delay
    """How late a sleeping thread of the client's CPUs wakes up."""
    send_delay: Delay
    """How late requests of an open loop leave, on an idle client."""
    noise: list[Noise]

    def ceiling(self, body_bytes: float, connections: int, keepalive: str | int) -> Ceiling | None:
        """Return the ceiling for bodies of some length; None where nothing like it was measured.

        The time per response grows linearly with the body's length between two measured lengths.
        Beyond the largest it grows in proportion, below the smallest it stays.
        """
        alike = sorted(
            (
                ceiling
                for ceiling in self.ceilings
                if ceiling.keepalive == keepalive
                and 1 / SIMILAR_CONNECTIONS
                <= ceiling.connections / connections
                <= SIMILAR_CONNECTIONS
            ),
            key=lambda ceiling: ceiling.body_bytes,
        )
        shorter = [ceiling for ceiling in alike if ceiling.body_bytes <= body_bytes]
        longer = [ceiling for ceiling in alike if ceiling.body_bytes > body_bytes]
        if not shorter:
            return _plain(longer[0]) if longer else None
        near = shorter[-1]
        if near.body_bytes == body_bytes:
            return _plain(near)
        if not longer:
            per_byte = near.body_bytes_per_s / max(body_bytes, 1)
            return Ceiling(
                throughput_rps=min(near.throughput_rps, per_byte), limited_by=near.limited_by
            )
        far = longer[0]
        way = (body_bytes - near.body_bytes) / (far.body_bytes - near.body_bytes)
        response_s = (1 - way) / near.throughput_rps + way / far.throughput_rps
        both = near.limited_by if near.limited_by == far.limited_by else "unknown"
        return Ceiling(throughput_rps=1 / response_s, limited_by=both)


def _plain(measured: MeasuredCeiling) -> Ceiling:
    return Ceiling(throughput_rps=measured.throughput_rps, limited_by=measured.limited_by)
