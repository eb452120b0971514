"""The machine that a run is made on, and what its client can do at most."""

from datetime import datetime
from typing import Literal

from webdyno.core.base import Amount, Count, Model
from webdyno.core.testbed import TestbedSettings


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
        """Give the ceiling for bodies of some length; None where nothing like it was measured.

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
