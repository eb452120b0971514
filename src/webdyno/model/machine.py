"""The machine a run was made on, as recorded with it."""

from webdyno.model.base import Model


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
    """Settings of the kernel that servers and load feel; those that it doesn't tell are left out.
    """
    network: str | None = None
    """What joins client and servers, and by which means; None: the loopback interface."""
    identity: str | None = None
    """Tells machines of one make apart; nothing else can be learnt from it."""
