"""What an answer's time is made of: work, and waiting for what."""

from webdyno.model.base import Model
from webdyno.model.interval import Interval


class Waiting(Model):
    """The mean time of an arm's answers in a closed loop, in parts that add up; microseconds."""

    arm: str
    connections: int
    whole_us: Interval
    """Connections divided by the rate (Little's law)."""
    work_us: Interval
    """Of the servers' CPUs."""
    cpu_us: Interval
    """In which a thread could have run and its CPU was taken."""
    queue_us: Interval | None
    """In front of workers all of which were taken; None where no service tells of such."""
    queue_at: str | None = None
    """The role of the service whose workers these are."""
    workers: int | None = None
    rest_us: Interval
    """In sockets and event loops, on the way, in the client."""
