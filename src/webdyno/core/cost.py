"""What servers cost: CPUs for the requests of a given rate, and what they use while nobody asks."""

from webdyno.core.base import Amount, Count, Interval, Model
from webdyno.core.explain import OverRounds
from webdyno.core.text import Prose

THOUSAND_RPS = 1_000.0


class CostAtRate(Model):
    """What a variant's servers cost at an arrival rate."""

    variant: str
    rate_rps: Amount
    cores_per_1000_rps: Interval
    """CPUs that they keep busy for each 1,000 requests per second: server CPU per request, in
    milliseconds."""
    instructions: OverRounds | None = None
    """That CPUs execute for a request in user space; None where nobody counted."""
    uncounted: Prose = ""
    """Why nobody could; empty where they were counted, or not asked for."""

    @property
    def requests_per_core_s(self) -> Interval:
        """The requests for which they need a second of CPU time."""
        return self.cores_per_1000_rps.mapped(lambda cores: THOUSAND_RPS / cores)


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
