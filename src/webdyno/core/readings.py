"""What the probes read at a slot's edges: how servers, network and host were used during it.

Counts are differences over the slot, the drain of its last responses included; states (memory,
processes) are as found at its end.
"""

from typing import Literal

from pydantic import ConfigDict, Field

from webdyno.core.base import Amount, Count, Model
from webdyno.core.testbed import Ceiling


class ServiceUse(Model):
    """One service of the loaded variant: all its processes."""

    cpu_user_s: Amount
    cpu_sys_s: Amount
    switches_voluntary: Count
    """Context switches because a thread waited for something."""
    switches_involuntary: Count
    """Context switches because something else was to run."""
    waited_for_cpu_s: Amount | None = None
    """How long its threads could have run while their CPU, or a quota, was taken; all added up."""
    faults_minor: Count
    """Page faults for which nothing was read from a disk."""
    faults_major: Count
    """Page faults for which something was."""
    disk_read_bytes: Count | None
    """None where we may not see it."""
    disk_written_bytes: Count | None
    processes: Count
    threads: Count
    started: Count
    """Processes that were not there at the slot's beginning."""
    ended: Count
    """Processes that were gone at its end; their counts are missing above, CPU time excepted."""
    pss_bytes: Count | None
    """Memory, pages shared by n processes counted as 1/n of a page each."""
    peak_rss_bytes: Count
    """Sum of each process's largest resident set so far; shared pages count several times."""

    @property
    def cpu_s(self) -> float:
        return self.cpu_user_s + self.cpu_sys_s


class ServerStatus(Model):
    """What a service counted itself, without our questions; None where it doesn't say.

    The first five are counts of the slot, the others are as found at its end.
    """

    requests: Count | None = None
    connections: Count | None = None
    """Connections that it accepted."""
    dropped: Count | None = None
    """Connections that it closed at once, because it had as many as it may have."""
    hits: Count | None = None
    """Keys that were requested and found."""
    misses: Count | None = None
    """Keys that were requested and not found."""
    busy: Count | None = None
    """Workers (processes or threads) with a request; in Apache's prefork and worker MPMs also those
    with a connection that is kept."""
    workers: Count | None = None
    """All its workers."""
    most_busy: Count | None = None
    """Most workers that had a request at the same time, since its start."""
    most_waiting: Count | None = None
    """Longest listen queue since its start, as far as it looked: php-fpm once a second."""


class StatementUse(Model):
    """A statement of a database's clients in a slot, its values left out."""

    text: str
    calls: Count
    rows: Count | None = None
    """That it gave or changed; None where the database doesn't say."""
    time_s: Amount | None = None
    """That it took in the database."""


class DatabaseUse(Model):
    """What a database did for its clients in a slot."""

    calls: Count
    """Statements."""
    time_s: Amount | None = None
    """That all of them took in the database; None where it doesn't say."""
    rows_written: Count | None = None
    """Inserted, changed and deleted."""
    statements: list[StatementUse] = []
    """The most frequent ones and those that took longest."""
    bytes_before: Count
    """Of all tables, indexes included, at the slot's beginning."""
    bytes_after: Count
    grown: dict[str, Count] = {}
    """Bytes by which tables grew in the slot, those that grew most."""


class MemoryLimitUse(Model):
    """A memory limit of the loaded variant, and how near it came to that."""

    limit_bytes: Count
    peak_bytes: Count
    """Largest use since the servers' start."""
    oom_kills: Count
    """Processes killed in this slot because the limit was reached."""
    reclaims: Count
    """How often in this slot the limit was hit and memory had to be taken back."""


class NetworkUse(Model):
    """The servers' network namespace: other programs in it count as well, but for `dropped`."""

    received_bytes: Count
    received_packets: Count
    sent_bytes: Count
    sent_packets: Count
    dropped: Count | None = None
    """Connection attempts that the listeners of the loaded variant's own services dropped, as when
    their queues were full; None where the kernel doesn't say."""
    own_namespace: bool = False
    """True where nobody but servers and load is in it."""
    listen_overflows: Count
    """Connections that found a full accept queue."""
    listen_drops: Count
    """Connection attempts that a listener dropped for any reason, overflows included."""
    retransmits: Count
    """TCP segments sent again, SYNs included."""
    syn_retransmits: Count
    link_bytes_per_s: Amount | None = None
    """What the link between client and servers carries at most; None where it has no limit."""
    time_wait: Count
    """Sockets in TIME_WAIT at the slot's end."""
    ephemeral_ports: Count
    """How many local ports outgoing connections to one address can use."""


class CpuUse(Model):
    """A set of CPUs: seconds of CPU time by kind, all CPUs added up."""

    user_s: Amount
    system_s: Amount
    interrupts_s: Amount
    """Hard and soft interrupts: most of it is the network's work for the running program."""
    idle_s: Amount
    """Waiting for disks included."""
    steal_s: Amount
    """Time that the hypervisor gave to others."""

    @property
    def total_s(self) -> float:
        return self.user_s + self.system_s + self.interrupts_s + self.idle_s + self.steal_s

    @property
    def busy_s(self) -> float:
        return self.user_s + self.system_s + self.interrupts_s


class PressureUse(Model):
    """Seconds in which at least one task on the host waited for a resource (PSI, `some`)."""

    cpu_s: Amount
    memory_s: Amount
    io_s: Amount


class StoppedUse(Model):
    """Seconds in which somebody had stopped processes, by a signal or a debugger."""

    client_s: Amount = 0.0
    servers_s: Amount = 0.0
    """In which at least one process of the loaded variant that was looked at stalled."""


class HostSample(Model):
    """The host at a moment inside the slot, as vmstat shows it."""

    at_s: Amount
    """Since the slot's beginning."""
    running: Count
    """Tasks that run or could run: the run queue."""
    servers_busy: Amount
    """Share of the servers' CPUs that wasn't idle since the last sample, 0 to 1."""
    client_busy: Amount


class HostUse(Model):
    """The host during the slot."""

    took_s: Amount
    """Between the two readings."""
    servers: CpuUse
    """The CPUs that servers may use."""
    busiest_server_cpu: Amount | None = None
    """Share of the time, 0 to 1, that the busiest one of the servers' CPUs wasn't idle."""
    client: CpuUse
    context_switches: Count
    """On all CPUs."""
    load_1m: Amount
    """Tasks that run or wait, averaged over the last minute."""
    pressure: PressureUse | None
    """None where the kernel doesn't say."""
    steal_apart: bool = False
    """Whether the kernel keeps stolen time apart from the CPU time of programs, and says so."""
    samples: list[HostSample] = []


BlockedBy = Literal["locks", "disks", "pauses", "backends"]
"""What a thread waits for that has something to do."""


class Readings(Model):
    """Everything that the probes read of one slot: a part for each probe.

    Parts that have no field here come from probes that this version doesn't know, or that add no
    more than figures; `part` gives them.
    """

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, dict[str, Amount | Count | str | None]] = Field(init=False)

    services: dict[str, ServiceUse]
    """Of the loaded variant, by role."""
    network: NetworkUse
    host: HostUse
    status: dict[str, ServerStatus] = {}
    """By role: what the services of the loaded variant counted themselves; those that don't are
    missing."""
    databases: dict[str, DatabaseUse] = {}
    """By role: what databases of the loaded variant did, as far as they say."""
    front: str | None = None
    """The role that clients talk to."""
    blocked: dict[BlockedBy, Amount] | None = None
    """How many threads of the servers were blocked on average, by what; None where that wasn't
    looked at."""
    other_variants_cpu_s: dict[str, Amount] = {}
    """CPU time of the variants that should have been idle, by variant."""
    memory: MemoryLimitUse | None = None
    """None without a limit."""
    stopped: StoppedUse | None = None
    """None where that wasn't looked at."""
    shared_cpus: bool = False
    """True when client and servers had to share CPUs."""
    ceiling: Ceiling | None = None
    """What the client reached against the null server with such a load; None where unknown."""
    client_waiting: Amount | None = None
    """Largest share of the slot, 0 to 1, in which a thread of the load generator could have run but
    its CPU (or quota) was taken; None where that isn't known."""
    silent_s: Amount | None = None
    """Longest time in which hosts with load generators had no sign of life from the servers' host;
    None where both are one."""

    def part(self, name: str) -> dict[str, float | int | str | None]:
        """Return the figures of a probe that has no field of its own here; none where it wasn't."""
        return (self.__pydantic_extra__ or {}).get(name, {})
