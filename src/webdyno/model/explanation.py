"""What a difference is made of."""

from webdyno.model.base import Model
from webdyno.model.interval import Interval


class CpuPart(Model):
    """A part of the CPU time per request of two arms, in microseconds."""

    what: str
    a_us: float
    b_us: float
    more_us: Interval
    """What a has more of it than b; below zero where it has less."""

    @property
    def is_sure(self) -> bool:
        """Whether there surely is a difference."""
        return self.more_us.low > 0 or self.more_us.high < 0


class Explanation(Model):
    """The difference of two arms' server CPU time per request, taken apart."""

    a: str
    b: str
    by_samples: bool = False
    """Whether samples of the servers' CPUs say it, instead of the kernel's counters."""
    whole: CpuPart
    parts: list[CpuPart]
    """They add up to the whole, in each block and so in the mean."""
