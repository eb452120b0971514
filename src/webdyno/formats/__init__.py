"""What a load generator printed about one run, in one form for all of them; and HAR, of browsers.

A run reads outputs strictly (`read_run`), the auditor leniently and in any text.
"""

from dataclasses import dataclass, field
from typing import Literal

Loop = Literal["closed", "open"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A load generator's command line as somebody wrote it down."""

    tool: str
    line: int
    requests: int | None = None
    concurrency: int | None = None
    time_limit_s: float | None = None
    keepalive: bool = False
    demanded_rps: float | None = None
    open_loop: bool = False
    """Whether times count from when something was due; also for a placeholder, `--rate=X`."""
    connections: int | None = None
    calls_per_connection: int | None = None
    pipelining: int | None = None
    """Requests that are sent over a connection before the first response, where it says so."""
    pipelined_by: str | None = None
    """The option that says so, as it was written."""
    streams: int | None = None
    """Requests that may be under way over a connection at once, where it says so: in HTTP/2 they
    are streams, in HTTP/1.1 h2load pipelines them."""
    each_rps: float | None = None
    """Requests per second that each connection is held to."""
    reconnects: bool = False
    """Whether it asks for a connection per request."""
    whole: bool = True
    """Whether all of it was written down: nothing is left out, or filled in later."""
    unread: tuple[str, ...] = ()
    """Options whose meaning isn't known here."""
    host: str | None = None
    port: int | None = None
    path: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """One run as its tool reported it. What the tool did not say is None, which is not zero."""

    tool: str
    first_line: int
    last_line: int
    lines: dict[str, int] = field(default_factory=dict)
    """Where each figure stands: name of the attribute -> line."""
    command: Command | None = None
    other_command: Command | None = None
    """One right above it that asks for something else, so that it can't be its own."""

    server: str | None = None
    host: str | None = None
    port: int | None = None
    path: str | None = None
    """What was asked for; for Redis the command."""

    protocol: str | None = None
    """As h2load calls it: `h2`, `h2c`, `http/1.1`."""
    loop: Loop | None = None
    concurrency: int | None = None
    """Requests under way at the same time, as asked for."""
    connections: int | None = None
    """Connections opened one after another (httperf)."""
    most_connections: int | None = None
    """Connections that were open at the same time at most, as seen (httperf)."""
    demanded_rps: float | None = None
    time_limit_s: float | None = None
    """How long it was to run, as asked for."""
    pipelining: int | None = None
    """Requests that are sent over a connection before the first response."""
    streams: int | None = None
    """Requests that may be under way over a connection at once, as streams of HTTP/2."""
    uneven: bool = False
    """Whether connections may end before others, as each has a share of the requests of its own."""
    keepalive_requested: bool | None = None
    keepalive_requests: int | None = None

    requests: int | None = None
    """Requests that ended, failed ones included."""
    rated_requests: int | None = None
    """Requests that the rate counts, where these are others: all that succeeded, or were sent."""
    first_counted: int | None = None
    """Statuses and times are of so many first requests, where there were more."""
    never_started: int | None = None
    """Requests that were asked for and never sent."""
    dropped: int | None = None
    """Iterations that were due and not begun, because nobody was free (k6)."""
    under_way: float | None = None
    """Mean number of requests or iterations under way, where the tool gives what it follows from
    apart from `throughput_rps` and `mean_ms`."""
    duration_s: float | None = None
    ended_s: float | None = None
    """From the first request to the last response, where `duration_s` doesn't include the
    responses."""
    throughput_rps: float | None = None
    document_bytes: int | None = None
    body_bytes: int | None = None
    """Bytes of all bodies."""
    total_bytes: int | None = None
    """Bytes of all responses, heads included."""
    transfer_kib_s: float | None = None

    interrupted: bool = False
    """Whether somebody ended it, as `^C` in its lines shows."""
    gave_up: str | None = None
    """What the tool said when it ended before its time."""
    failed: int | None = None
    failed_connect: int | None = None
    failed_receive: int | None = None
    failed_length: int | None = None
    failed_exceptions: int | None = None
    failed_timeout: int | None = None
    out_of_descriptors: int | None = None
    errors: dict[str, int] = field(default_factory=dict)
    """What went wrong, in the tool's words -> how often; 0 where it doesn't say."""
    errors_percent: float | None = None
    checks: int | None = None
    """The script's own checks of responses (k6)."""
    failed_checks: int | None = None
    non_2xx: int | None = None
    by_status: dict[str, int] = field(default_factory=dict)

    min_ms: float | None = None
    mean_ms: float | None = None
    max_ms: float | None = None
    longest_above_ms: float | None = None
    """Where the highest bucket of a histogram begins in which there is a response."""
    percentiles_ms: dict[float, float] = field(default_factory=dict)
    connect_min_ms: float | None = None
    connect_median_ms: float | None = None
    connect_max_ms: float | None = None
    reply_rate_samples: int | None = None

    def where(self, *names: str) -> int:
        """Return the line of the first of these figures that was printed, else the first line."""
        return next((self.lines[name] for name in names if name in self.lines), self.first_line)

    @property
    def most_under_way(self) -> int:
        """Requests that can be under way at once; 0 where the connections aren't known."""
        return (self.concurrency or 0) * (self.streams or 1) * (self.pipelining or 1)

    @property
    def took_s(self) -> float | None:
        """How long it ran, responses included, from whichever figures there are."""
        if self.duration_s is not None:
            return max(self.duration_s, self.ended_s or 0)
        counted = self.requests if self.rated_requests is None else self.rated_requests
        return counted / self.throughput_rps if counted and self.throughput_rps else None

    @property
    def response_bytes(self) -> float | None:
        """Bytes of a response, its head included, from whichever figures there are."""
        if self.total_bytes is not None and self.requests:
            return self.total_bytes / self.requests
        if self.transfer_kib_s is not None and self.throughput_rps:
            return self.transfer_kib_s * 1024 / self.throughput_rps
        return None
