"""What the probes read at a slot's edges: how servers, network and host were used during it.

Counts are differences over the slot, the drain of its last answers included; states (memory,
processes) are as found at its end.
"""

from webdyno.model.base import Model
from webdyno.model.calibration import Ceiling


class ServiceUse(Model):
    """One service of the loaded arm: all its processes."""

    cpu_user_s: float
    cpu_sys_s: float
    switches_voluntary: int
    """Context switches because a thread waited for something."""
    switches_involuntary: int
    """Context switches because something else was to run."""
    faults_minor: int
    """Page faults without, and `faults_major` with reading from a disk."""
    faults_major: int
    disk_read_bytes: int | None
    """None where we may not see it."""
    disk_written_bytes: int | None
    processes: int
    threads: int
    started: int
    """Processes that were not there at the slot's beginning."""
    ended: int
    """Processes that were gone at its end; their counts are missing above, CPU time excepted."""
    pss_bytes: int | None
    """Memory, pages shared by n processes counted as 1/n of a page each."""
    peak_rss_bytes: int
    """Sum of each process's largest resident set so far; shared pages count several times."""


class ServerStatus(Model):
    """What a service counted itself, without our questions; None where it doesn't tell.

    The first five are counts of the slot, the others are as found at its end.
    """

    requests: int | None = None
    connections: int | None = None
    """Connections that it accepted."""
    dropped: int | None = None
    """Connections that it closed at once, because it had as many as it may have."""
    hits: int | None = None
    """Keys that were asked for and found, and `misses` not found."""
    misses: int | None = None
    busy: int | None = None
    """Workers (processes or threads) with a request; in Apache's prefork and worker MPMs also those
    with a connection that is kept."""
    workers: int | None = None
    """All its workers."""
    most_busy: int | None = None
    """Most workers that had a request at the same time, since its start."""
    most_waiting: int | None = None
    """Longest listen queue since its start, as far as it looked: php-fpm once a second."""


class MemoryLimitUse(Model):
    """A memory limit of the loaded arm, and how near it came to that."""

    limit_bytes: int
    peak_bytes: int
    """Largest use since the servers' start."""
    oom_kills: int
    """Processes killed in this slot because the limit was reached."""
    reclaims: int
    """How often in this slot the limit was hit and memory had to be taken back."""


class NetworkUse(Model):
    """The servers' network namespace: other programs in it count as well."""

    received_bytes: int
    received_packets: int
    sent_bytes: int
    sent_packets: int
    listen_overflows: int
    """Connections that found a full accept queue."""
    listen_drops: int
    """Connection attempts that a listener dropped for any reason, overflows included."""
    retransmits: int
    """TCP segments sent again, SYNs included."""
    syn_retransmits: int
    link_bytes_per_s: float | None = None
    """What the link between client and servers carries at most; None where it has no limit."""
    time_wait: int
    """Sockets in TIME_WAIT at the slot's end."""
    ephemeral_ports: int
    """How many local ports outgoing connections to one address can use."""


class CpuUse(Model):
    """A set of CPUs: seconds of CPU time by kind, all CPUs added up."""

    user_s: float
    system_s: float
    interrupts_s: float
    """Hard and soft interrupts: most of it is the network's work for the running program."""
    idle_s: float
    """Waiting for disks included."""
    steal_s: float
    """Time that the hypervisor gave to others."""

    @property
    def total_s(self) -> float:
        """CPUs times seconds."""
        return self.user_s + self.system_s + self.interrupts_s + self.idle_s + self.steal_s

    @property
    def busy_s(self) -> float:
        """Time in which programs or interrupts ran."""
        return self.user_s + self.system_s + self.interrupts_s


class PressureUse(Model):
    """Seconds in which at least one task on the host waited for a resource (PSI, `some`)."""

    cpu_s: float
    memory_s: float
    io_s: float


class HostSample(Model):
    """The host at a moment inside the slot, as vmstat shows it."""

    at_s: float
    """Since the slot's beginning."""
    running: int
    """Tasks that run or could run: the run queue."""
    servers_busy: float
    """Share of the servers' CPUs that wasn't idle since the last sample, 0 to 1."""
    client_busy: float


class HostUse(Model):
    """The host during the slot."""

    took_s: float
    """Between the two readings."""
    servers: CpuUse
    """The CPUs that servers may use."""
    client: CpuUse
    context_switches: int
    """On all CPUs."""
    load_1m: float
    """Tasks that run or wait, averaged over the last minute."""
    pressure: PressureUse | None
    """None where the kernel doesn't tell."""
    samples: list[HostSample] = []


class Readings(Model):
    """Everything that the probes read of one slot."""

    services: dict[str, ServiceUse]
    """Of the loaded arm, by role."""
    network: NetworkUse
    host: HostUse
    status: dict[str, ServerStatus] = {}
    """By role: what the services of the loaded arm counted themselves; those that don't are
    missing."""
    front: str | None = None
    """The role that clients talk to."""
    other_arms_cpu_s: dict[str, float] = {}
    """CPU time of the arms that should have been idle, by arm."""
    memory: MemoryLimitUse | None = None
    """None without a limit."""
    shared_cpus: bool = False
    """True when client and servers had to share CPUs."""
    ceiling: Ceiling | None = None
    """What the client reached against the null server with such a load; None where unknown."""
    client_waiting: float | None = None
    """Largest share of the slot, 0 to 1, in which a thread of the load generator could have run but
    its CPU (or quota) was taken; None where that isn't known."""
