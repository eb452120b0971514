"""A workload: what a log says of the traffic that a server had."""

from typing import Annotated, Literal

from pydantic import Field

from webdyno.core.base import Amount, Count, Model
from webdyno.core.text import OneLine

Share = Annotated[float, Field(ge=0, le=1)]


class Popularity(Model):
    """How requests are spread over paths."""

    paths: Count
    """Different ones."""
    kind: Literal["zipf", "top"]
    """zipf: by Zipf's law, the paths in their order. top: the first paths by their own shares, the
    rest in equal shares."""
    zipf: Amount
    """Zipf's exponent, by maximum likelihood over the ranks."""
    zipf_error: Amount
    """Its standard error, from the Fisher information."""
    zipf_loss_nats: float
    """What Zipf's law says worse than the shares do, per request of the half of the log that
    neither was fitted to, as a difference of log likelihoods."""


class Spread(Model):
    """Where the values of something lie."""

    mean: Amount
    p50: Amount
    p90: Amount
    p99: Amount


class Sessions(Model):
    """What one client asks for in one go: until it says nothing for half an hour."""

    clients: Count
    """Different addresses and agents together."""
    sessions: Count
    requests: Spread
    """In a session."""
    pause_s: Spread | None = None
    """Between two requests of a session; None where each session has one."""


class Arrivals(Model):
    """When requests came."""

    span_s: Amount
    """From the first to the last."""
    rate_per_s: Amount
    """Mean over the span."""
    hours: Annotated[list[Share], Field(min_length=24, max_length=24)]
    """Share of each hour of the day (UTC)."""
    dispersion: dict[Literal["1s", "10s", "60s"], Amount]
    """Index of dispersion for counts, by the windows' length: the variance of their counts over
    the mean. 1 for arrivals that are independent of each other (Poisson), more for bursts."""


class ConnectionUse(Model):
    """How connections were used, where a log says."""

    kept_share: Share
    """Of the requests, those on a connection that had answered one before."""
    requests_each: Amount
    """Mean on a connection."""


class Pages(Model):
    """What of a twin isn't files: pages that take CPU time, as responses in the log took time."""

    paths: Count
    share: Share
    """Of the requests."""
    cpu_s: Amount
    """Mean of what such a request takes."""
    busy_cpus: Amount
    """What all of them keep busy at the load's rate."""


class Agreement(Model):
    """A line of the fidelity table: something of the log, and of the load that was made of it."""

    what: OneLine
    log: float | None = None
    """None where the log can't say."""
    load: float | None = None
    """None where there is no such thing in the load."""
    tolerance: Amount
    """They agree where they differ by at most this share of the log's."""

    @property
    def difference(self) -> float | None:
        """By which share of the log's the load's is another."""
        if self.log is None or self.load is None:
            return None
        return abs(self.load - self.log) / self.log if self.log else abs(self.load)

    @property
    def agrees(self) -> bool | None:
        return None if self.difference is None else self.difference <= self.tolerance


class Workload(Model):
    """What `webdyno traffic` found in a log."""

    log: OneLine
    """Name of the file."""
    requests: Count
    """What the rest is about."""
    excluded: dict[OneLine, Count]
    """Lines and requests that aren't in it, by why."""
    hidden: dict[OneLine, Count]
    """What was dropped or hashed of those that are, by what it was."""
    methods: dict[OneLine, Share]
    popularity: Popularity
    response_bytes: Spread | None = None
    """Of those whose size the log has; None where it has none."""
    sessions: Sessions
    arrivals: Arrivals
    connections: ConnectionUse | None = None
    """None where the log doesn't say."""
    pages: Pages | None = None
    """None without a twin that has such."""
    fidelity: list[Agreement] = []
    """How well the load agrees with the log."""
