"""Why variants are as fast as they are, and what their servers cost: what was found."""

import operator
from collections.abc import Sequence
from statistics import median
from typing import Annotated, Literal

from pydantic import Field

from webdyno.core.base import Amount, Count, Interval, Model
from webdyno.core.readings import BlockedBy
from webdyno.core.setting import FixableRule, SettingValue
from webdyno.core.text import Prose

Resource = Literal["servers' CPU", "client's CPU", "link", "memory", "workers", "connections"]


class Elasticity(Model):
    """By how many per cent throughput falls when there is one per cent less of a resource."""

    variant: str
    """The baseline, which is what this is said of."""
    resource: Resource
    setting: str | None = None
    share: float
    """What was left of it where that was tried, above 1 where there was more."""
    found: Interval
    """Near 1: that is the limit. Near 0: there is more of it than is needed."""


class Effect(Model):
    """What a setting does to the deciding metric, or two of them together beyond what each does."""

    settings: list[str]
    """One; two where it is their interaction."""
    ratio: Interval
    """How many times the metric's value, averaged over the other settings (geometric mean)."""
    is_sure: bool
    """Whether all effects' intervals together allow to say that there is one."""


class Advice(Model):
    """That another value of one setting may be better for a variant."""

    setting: str
    """As users name it."""
    now: SettingValue
    """As the baseline has it."""
    tried: SettingValue
    """As this variant has it."""
    says: Prose
    """What the servers do as it is now."""
    vendor: str
    """Address of the vendor's documentation of the setting."""
    fixes: FixableRule | None = None
    """The rule of validity that the variant breaks for its sake."""


class Gain(Model):
    """What a piece of advice was found to be worth, on the deciding metric."""

    variant: str
    """As it was without it."""
    advice: Advice
    is_sure: bool
    """Whether the variant is better with it (95% confidence) by more than the threshold, or keeps
    the rule that it breaks without it."""
    fixed_rounds: Count = 0
    """Rounds in which it broke that rule without it; with it there was none."""
    ratio: Interval
    """With it against without it; above 1 is better."""


class CpuPart(Model):
    """A part of the CPU per request of two variants, in microseconds."""

    what: Prose
    a_us: float
    b_us: float
    more_us: Interval
    """What a has more of it than b; below zero where it has less."""

    @property
    def is_sure(self) -> bool:
        """Whether there surely is a difference."""
        return self.more_us.low > 0 or self.more_us.high < 0


class Explanation(Model):
    """The difference of two variants' CPU per request, taken apart."""

    a: str
    b: str
    by_samples: bool = False
    """Whether samples of the servers' CPUs say it, instead of the kernel's counters."""
    whole: CpuPart
    parts: list[CpuPart]
    """They add up to the whole, in each round and so in the mean."""

    def sure_parts(self, least_share: float) -> list[CpuPart]:
        """Return the parts that surely differ, by at least a share of what the whole does."""
        least_us = least_share * abs(self.whole.more_us.estimate)
        return [
            part for part in self.parts if part.is_sure and abs(part.more_us.estimate) >= least_us
        ]


class Waiting(Model):
    """A variant's mean latency in a closed loop, in parts that add up; microseconds."""

    variant: str
    connections: int
    whole_us: Interval
    """Connections divided by the throughput (Little's law)."""
    work_us: Interval
    """Of the servers' CPUs."""
    cpu_us: Interval
    """In which a thread could have run and its CPU was taken."""
    queue_us: Interval | None
    """In front of workers all of which were taken; None where no service says of such."""
    queue_at: str | None = None
    """The role of the service whose workers these are."""
    workers: int | None = None
    blocked_us: Annotated[dict[BlockedBy, Interval], Field(exclude_if=operator.not_)] = {}
    """By what threads waited for meanwhile, where that was looked at."""
    rest_us: Interval
    """In sockets and event loops, on the way, in the client."""


CountedResource = Literal[
    "servers-cpus",
    "busiest-cpu",
    "cpu-quota",
    "workers",
    "connections",
    "memory",
    "link",
    "client",
]


OF_THE_LOAD = {"connections", "client"}
"""Resources that aren't the servers'."""


class ResourceUse(Model):
    """How much of one thing was in use; medians over trials."""

    resource: CountedResource
    role: str | None = None
    """Of the service whose workers these are."""
    share: Amount
    """Of all of it, 0 to 1."""
    whole: Amount | None = None
    """What all of it is, where that is a number: CPUs of the quota, workers, connections, bytes of
    memory."""
    at_limit: bool
    """Whether there was no more of it in most trials."""


class OverRounds(Model):
    """The same of some rounds: the least, the middle one, the most."""

    least: float
    median: float
    most: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "OverRounds | None":
        """Return them of the values of some rounds; None of none."""
        if not values:
            return None
        return cls(least=min(values), median=median(values), most=max(values))


class Overload(Model):
    """What a variant did when a multiple of its capacity was asked of it."""

    variant: str
    times: float
    """The multiple."""
    rounds: Count
    """In which that was tried."""
    offered_rps: Amount
    goodput_rps: OverRounds | None
    """Requests per second that were beyond no objective."""
    of_capacity: OverRounds | None
    """The same as a share of the round's capacity."""
    failed: OverRounds | None
    """Share of the requests, 0 to 1."""
    p50_us: OverRounds | None
    p99_us: OverRounds | None
    back: Count
    """Rounds in which half of the capacity was carried again within ten seconds."""
    back_s: OverRounds | None
    """How long that took from the end of the overload, in these rounds; at least the moment that
    passes from one load to the next, or until the overload's last responses came."""
    died: Count = 0
    """Rounds in which a server ended; it was started again."""


class Saturation(Model):
    """What a variant used just below its capacity, or at it."""

    variant: str
    trials: Count
    """So many, of all rounds together, had such a throughput."""
    uses: list[ResourceUse]

    @property
    def limits(self) -> list[ResourceUse]:
        """What was used up."""
        return [use for use in self.uses if use.at_limit]

    @property
    def is_lower_bound(self) -> bool:
        """Whether only the load was used up, not the servers: they can take at least that much."""
        return bool(self.limits) and all(use.resource in OF_THE_LOAD for use in self.limits)

    @property
    def nearest(self) -> ResourceUse:
        """What came nearest to its limit."""
        return max(self.uses, key=lambda use: use.share)


THOUSAND_RPS = 1_000.0


class CostAtRate(Model):
    """What a variant's servers cost at an arrival rate."""

    variant: str
    rate_rps: Amount
    cores_per_1000_rps: Interval
    """CPUs that they keep busy for each 1,000 requests per second: CPU per request, in
    milliseconds."""
    instructions: OverRounds | None = None
    """That CPUs execute for a request in user space; None where nobody counted."""
    uncounted: Prose = ""
    """Why nobody could; empty where they were counted, or not asked for."""

    @property
    def requests_per_core_s(self) -> Interval:
        """The requests for which they need a second of CPU time."""
        return self.cores_per_1000_rps.map(lambda cores: THOUSAND_RPS / cores)


class CostAtRest(Model):
    """What a variant's servers use while nobody asks them anything, after the load."""

    variant: str
    rounds: Count
    cpu_share: OverRounds
    """Of one CPU, 0 to 1."""
    wake_ups_per_s: OverRounds
    """How often a thread of theirs waited and went on; one that ended meanwhile isn't counted."""
    memory_mib: OverRounds | None = None
    """Resident memory; None where it can't be read."""
    connection_kib: OverRounds | None = None
    """What each open connection takes of it; None where too few could be held to report."""
