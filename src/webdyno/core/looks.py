"""What is seen of a variant alone: its pilot before the rounds, and the long look after them."""

from math import ceil
from typing import Annotated, Literal

from pydantic import Field

from webdyno.core.base import Amount, Count, Interval, Model
from webdyno.core.capacity import Trial
from webdyno.core.text import Prose

BURST_S = BURST_PAUSE_S = 0.5
"""A warm-up in bursts: load for so long, then none for so long, again and again."""
BURSTS_TAKE = 1 + BURST_PAUSE_S / BURST_S
"""How many times as long as its load a warm-up in bursts takes."""
WAKE_AFTER_S, WAKE_S = 3.0, 0.5
"""What nobody loaded for so long is loaded so long before a slot that counts.

Programs close what is idle, such as connections of pools (node-postgres after 10 s): Koa, which had
warmed up for 5 s, began its first slot after the other variants' warm-ups with 16 new connections
to PostgreSQL, and served 5,600/s in it, 8,900/s in the second."""


class Pilot(Model):
    """Times that a variant needs, found from that variant alone."""

    warmup_s: float
    """Load after a fresh start until throughput and CPU per request are steady."""
    in_bursts: bool = False
    """Whether that load comes in bursts, with a pause after each."""
    ramp_up_s: float
    """Load at the beginning of each slot that doesn't count."""
    window_s: float
    """The part of a slot that counts."""
    period_s: float | None
    """Period of a cycle of the throughput; None where none was found."""
    steady: bool
    """False when it wasn't steady yet where the pilot ended, or a cap cut warm-up or ramp-up."""
    why: Prose
    """What the times rest on, in a sentence or two."""

    @property
    def warmup_takes_s(self) -> float:
        """How long the warm-up takes, pauses between bursts and all."""
        return self.warmup_s * (BURSTS_TAKE if self.in_bursts else 1)

    def warmup_within(self, takes_s: float) -> float:
        """Return the warm-up, or as much of it as takes no longer than that."""
        if self.warmup_takes_s <= takes_s:
            return self.warmup_s
        return self.warmup_s * takes_s / self.warmup_takes_s


class FreshStart(Model):
    """What was seen of a variant under load from a fresh start on, by window."""

    responses: list[Count]
    cpu_s: list[Amount] = []
    """The servers' CPU time; empty where it can't be read that often."""


class BurstsLook(Model):
    """A variant that was started again to be warmed up in bursts, and what that was worth."""

    bursts: list[list[Count]]
    """Responses by window, of each burst."""
    after: list[Count]
    """The same of load without a break after them."""
    after_cpu_s: list[Amount] = []
    """The servers' CPU time in the same windows; empty where it can't be read that often."""
    continuous: list[Count] = []
    """The same from another fresh start on, for as long as bursts, pauses and that load took
    together, without a break; empty where the pilot's other looks had shown enough."""
    continuous_cpu_s: list[Amount] = []
    summary: Prose = ""
    """What is worth saying, in a sentence; empty where pauses made no difference."""


class ColdFigures(Model):
    """How a variant begins: a fresh start, and load from its first valid response on."""

    first_response_s: Amount
    """From the start of its servers to the first valid response."""
    full_throughput_s: Amount | None
    """From the start of its servers until its throughput first reached 90% of the steady one,
    without the time in which it waited for the load; None where it wasn't steady."""
    cpu_s: Amount | None
    """CPU time of the servers until then; None where it can't be read often enough."""


class SlotSettings(Model):
    """The times with which rounds are measured."""

    warmup_s: dict[str, Amount]
    """By variant: load after a fresh start, before what counts of its first slot. It takes a slot
    of its own where the variant's ramp-up is shorter."""
    ramp_up_s: dict[str, Amount]
    """By variant: load at the beginning of each slot that doesn't count."""
    in_bursts: list[str] = []
    """Variants whose warm-up comes in bursts, with a pause after each."""
    window_s: Amount
    """The part of each slot that counts; the same for all variants."""
    phase_s: dict[str, Amount] = {}
    """By variant: each ramp-up is longer by a random time up to this, so that windows begin
    anywhere in the cycles of a variant that answers in batches."""
    rest_s: Amount = 0.0
    """Longest wait in a round, times its variants, until all servers rest before slots begin."""
    slots_per_variant: int | None = None
    """Slots of each variant in a round; None where it is chosen from the noise."""

    def warmup_loads_s(self, variant: str) -> list[float]:
        """Return the stretches of load of a variant's warm-up: one, or its bursts, all as long."""
        load_s = self.warmup_s[variant]
        stretches = ceil(load_s / BURST_S - 1e-9) if variant in self.in_bursts else int(load_s > 0)
        return [load_s / stretches] * stretches if stretches else []

    def pause_s(self, variant: str) -> float:
        """Return the pause after each stretch of a variant's warm-up."""
        return BURST_PAUSE_S if variant in self.in_bursts else 0.0

    def warmup_takes_s(self, variant: str) -> float:
        """Return how long a variant's warm-up takes, pauses and all."""
        loads_s = self.warmup_loads_s(variant)
        return sum(loads_s) + len(loads_s) * self.pause_s(variant)


StallCause = Literal["client", "hypervisor", "stopped", "other-programs"]
"""Who else can have stopped the responses: the load generator's own pause, the hypervisor, a signal
that stopped the servers, or other programs on their CPUs."""


LookEnd = Literal["time", "precision", "died"]
"""Why a long look ended: its time was over, what was left of it could have changed nothing by much,
or the servers died."""


Unseen = Literal["stalls", "drift", "leak"]
"""What a look can't show: it is too short, or there were too few responses or readings."""


class ServerSample(Model):
    """The servers and their CPUs at a moment; times are sums since the beginning of the stretch."""

    at_s: Amount
    cpu_s: Amount
    """CPU time of the servers."""
    busy_s: Amount = 0.0
    """Time in which their CPUs ran anything, added up over the CPUs."""
    stolen_s: Amount = 0.0
    """Time that the hypervisor took from their CPUs."""
    waited_s: Amount = 0.0
    """Time for which threads of theirs could have run and had no CPU, of those looked at."""
    client_waited_s: Amount = 0.0
    """The same of the load generator's thread that waited most."""
    stopped: bool = False
    """Whether one of their processes was stopped by a signal."""
    memory_bytes: Count | None = None
    """Resident memory of all their processes; None where it wasn't read."""
    descriptors: Count | None = None
    """Open files and connections of all their processes; None where they weren't read."""


class Stall(Model):
    """A stretch of time in which next to nothing was answered, though it was before and after."""

    at_s: Amount
    length_s: Amount
    cause: StallCause | None
    """None: the servers' own."""


class Stalls(Model):
    """The servers' own stalls, as far as the stretch can say."""

    count: Count
    length_s: Amount
    """On average."""
    every_s: Interval | None
    """From the beginning of one to that of the next; None unless there were three."""
    share: Interval
    """Of the time."""


class Growth(Model):
    """Memory that grew all through the stretch."""

    bytes_per_s: Interval
    bytes_per_request: Interval


class MoreOpen(Model):
    """Open files and connections, which became more all through the stretch."""

    per_s: Interval
    per_request: Interval


class Failing(Model):
    """A stretch of time in which requests failed."""

    at_s: Amount
    length_s: Amount
    failed: Count
    share: Amount
    """Of the requests in that time."""
    answered_before: Count
    """Valid responses, since the stretch of load began."""
    to_the_end: bool
    """Whether they still failed when the load ended."""
    by_client: bool = False
    """Whether the load generator itself couldn't open connections."""
    said: Prose = ""
    """Why, in the words of the servers' log or of who saw it."""


class Slow(Model):
    """Stretches of time in which a variant answered much slower than usual, and still answered."""

    level: Amount
    """Throughput in them, as a share of the usual one."""
    stretches: Stalls


class Drift(Model):
    """A quantity that was not the same at the end of the stretch as at its beginning."""

    metric: Literal["throughput_rps", "server_cpu_us"]
    change: Interval
    """Factor from the first level to the last one."""
    at_s: Amount | None
    """When it stepped; None where it went slowly."""


class Held(Model):
    """Resident memory of the servers in a part, in bytes."""

    least: Count
    median: Count
    most: Count

    def span(self, unit: int = 1) -> Interval:
        """Return the median between the least and the most, in a unit of so many bytes."""
        return Interval(low=self.least / unit, estimate=self.median / unit, high=self.most / unit)


class LookPart(Model):
    """A part of a long look by itself."""

    stretch: Count
    """The servers were started again before each."""
    at_s: Amount
    """Under load, since the look's beginning."""
    length_s: Amount
    throughput_rps: Interval
    p50_us: Interval | None
    p99_us: Interval | None
    """Percentiles of the latency; None where there are too few responses."""
    server_cpu_us: Interval | None
    """The servers' CPU time per response."""
    memory: Held | None
    jumps_bytes: int = 0
    """Memory that was taken between parts so far, when connections were opened again: it doesn't
    count as growth."""
    stalls: Count
    """The servers' own that began in it."""
    stalled_s: Amount


SlopeMetric = Literal["throughput_rps", "server_cpu_us", "memory_bytes"]


class Slope(Model):
    """How fast something changes in the longest stretch of a look."""

    metric: SlopeMetric
    per_hour: Interval
    """Share of its mean: 0.01 is 1% more each hour."""


class Break(Model):
    """An interruption of a look; its servers were started again after it."""

    at_s: Amount
    """Under load, since the look's beginning."""
    pause_s: Amount
    """How long nothing was measured."""


class LongLook(Model):
    """What the long look at a variant found."""

    variant: str
    looked_s: Amount
    """Length of the stretch, without what was not the servers' own doing."""
    shortest_s: Amount
    """Stalls that are shorter can't be seen."""
    ended_by: LookEnd | None = "time"
    """None: it was interrupted, and can go on."""
    breaks: list[Break] = []
    parts: list[LookPart] = []
    """In the course of time; empty for short looks, which have one part."""
    unseen: list[Unseen] = []
    """What it couldn't have shown: that it found none of these doesn't mean that there are none."""
    slopes: list[Slope] = []
    """Empty where there are too few parts."""
    stalls: Stalls | None = None
    excused: list[Stall] = []
    """Stalls that the servers didn't cause."""
    slow: Slow | None = None
    drifts: list[Drift] = []
    growth: Growth | None = None
    more_open: MoreOpen | None = None
    failing: list[Failing] = []
    died: Prose = ""
    """How the servers ended meanwhile; empty where they lived."""
    longest_latency_s: Amount | None = None
    trial: Trial | None = None
    """Just below the capacity that was found: whether the objectives hold for as long."""
    times: Annotated[str | None, Field(exclude=True)] = None
    """Latency of the whole stretch: an HDR histogram, encoded."""

    @property
    def unbroken_s(self) -> float:
        """How long the longest stretch was: drifts and growth are sought in it."""
        lengths_s: dict[int, float] = {}
        for part in self.parts if self.breaks else []:
            lengths_s[part.stretch] = lengths_s.get(part.stretch, 0.0) + part.length_s
        return max(lengths_s.values(), default=self.looked_s)
