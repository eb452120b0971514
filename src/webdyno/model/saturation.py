"""What an arm used of everything that can run out, at the highest rates that it carried."""

from typing import Literal

from webdyno.model.base import Amount, Count, Model

Resource = Literal[
    "servers-cpus",
    "busiest-cpu",
    "cpu-quota",
    "workers",
    "connections",
    "memory",
    "link",
    "client",
]


class ResourceUse(Model):
    """How much of one thing was in use; medians over trials."""

    resource: Resource
    role: str | None = None
    """Of the service whose workers these are."""
    share: Amount
    """Of all of it, 0 to 1."""
    whole: Amount | None = None
    """What all of it is, where that is a number: CPUs of the quota, workers, connections, bytes of
    memory."""
    at_limit: bool
    """Whether there was no more of it in most trials."""


class Saturation(Model):
    """What an arm used just below its capacity, or at it."""

    arm: str
    trials: Count
    """So many, of all blocks together, had such a rate."""
    uses: list[ResourceUse]

    @property
    def limits(self) -> list[ResourceUse]:
        """What was used up."""
        return [use for use in self.uses if use.at_limit]

    @property
    def nearest(self) -> ResourceUse:
        """What came nearest to its limit."""
        return max(self.uses, key=lambda use: use.share)
