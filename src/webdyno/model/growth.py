"""What grew: in what a request of a gate's head costs more than one of its baseline."""

from webdyno.model.base import Count, Model
from webdyno.model.explain import Explanation


class OtherCount(Model):
    """Something that is counted per request, where both revisions differ for sure."""

    what: str
    """Such as `database statements per request`."""
    baseline: float
    head: float


class CostGrowth(Model):
    """What grew at an endpoint where the gate fails."""

    endpoint: str
    counted: Explanation | None
    """CPU per request by the kernel's counters, from the gate's own rounds: programs, kernel,
    interrupts. None where two valid rounds don't tell both revisions."""
    sampled: Explanation | None = None
    """The same by function, from profile rounds; None where there are none."""
    rounds: Count = 0
    """Profile rounds that count."""
    others: list[OtherCount] = []
    lacking: str = ""
    """Why functions aren't known, or have no names; empty where they have."""
