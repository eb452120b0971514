"""What the pilot of a variant found: the settings with which its steady state is measured."""

from math import ceil

from webdyno.core.base import Amount, Count, Model
from webdyno.core.text import Prose

BURST_S = BURST_PAUSE_S = 0.5
"""A warm-up in bursts: load for so long, then none for so long, again and again."""


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
        return self.warmup_s * (1 + BURST_PAUSE_S / BURST_S * self.in_bursts)

    def warmup_within(self, takes_s: float) -> float:
        """Give the warm-up, or as much of it as takes no longer than that."""
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
        """Give the stretches of load of a variant's warm-up: one, or its bursts, all as long."""
        load_s = self.warmup_s[variant]
        stretches = ceil(load_s / BURST_S - 1e-9) if variant in self.in_bursts else int(load_s > 0)
        return [load_s / stretches] * stretches if stretches else []

    def pause_s(self, variant: str) -> float:
        """Give the pause after each stretch of a variant's warm-up."""
        return BURST_PAUSE_S if variant in self.in_bursts else 0.0

    def warmup_takes_s(self, variant: str) -> float:
        """Give how long a variant's warm-up takes, pauses and all."""
        loads_s = self.warmup_loads_s(variant)
        return sum(loads_s) + len(loads_s) * self.pause_s(variant)
