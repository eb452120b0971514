"""What a load generator reports of one slot: the engine's contract, version 2.

`loadgen/schema/result.v2.schema.json` is the same contract for readers in other languages.
Other generators report less: what they don't report is None, which is not zero.
"""

from typing import Literal

from pydantic import Field, model_validator

from webdyno.core.base import Amount, Count, Foreign
from webdyno.core.tables import is_table

SCHEMA: Literal[2] = 2
"""Version of the contract."""


class Requests(Foreign):
    """Where the requests went; sent + carried = completed + failures after sending + unanswered."""

    sent: Count | None = None
    completed: Count
    """Answered in time and validly, inside the slot."""
    unanswered: Count | None = None
    """Still in flight at the slot's end."""
    drained: Count = 0
    """Of the unanswered, those that were answered validly after the slot's end."""
    carried: Count = 0
    """On their way when the window began; none without a ramp-up."""
    retried: Count | None = None
    """Sent once more, because the kept connection ended without a byte of the response; each is
    sent once in the other counts. Of webdyno's own generator only."""


class Failures(Foreign):
    """Requests that went wrong, by what went wrong first; None where it would go unnoticed."""

    connect: Count | None = None
    timeout: Count | None = None
    reset: Count | None = None
    truncated: Count | None = None
    malformed: Count | None = None
    status: Count | None = None
    body: Count | None = None

    @property
    def total(self) -> int:
        return sum(self.by_kind().values())

    def by_kind(self) -> dict[str, int]:
        """Counts by name, zeros included, what would go unnoticed as 0."""
        return {kind: getattr(self, kind) or 0 for kind in type(self).model_fields}


class Bytes(Foreign):
    """Bytes of responses received, TCP and IP headers not counted."""

    head: Count | None = None
    body: Count | None = None


class Connections(Foreign):
    """How connections were used."""

    opened: Count | None = None
    reused_requests: Count | None = None
    """Requests that were not the first on their connection."""
    without_port: Count | None = None
    """Attempts that failed because the client had no local port left. Of webdyno's own generator
    only."""


class IdleConnections(Foreign):
    """Connections next to the load that send one request and then rest."""

    requested: Count
    held: Count
    """Answered, and open at the slot's end."""


class KeepAliveResult(Foreign):
    """Keep-alive as requested and as obtained."""

    requested: str | Count
    server_closed: Count | None = None
    """Connections that the server closed although they were to be kept."""


class Times(Foreign):
    """A distribution of times in microseconds; null where nothing was measured."""

    min: Amount | None = None
    mean: Amount | None = None
    p50: Amount | None = None
    p90: Amount | None = None
    p99: Amount | None = None
    p99_9: Amount | None = None
    max: Amount | None = None
    histogram: str | None = None
    """HDR V2 encoding, base64."""

    @model_validator(mode="before")
    @classmethod
    def _no_figures_of_no_sample(cls, read: object) -> object:
        """Leave out the zeros that webdyno's own generator writes where it has no sample."""
        if is_table(read) and read.get("count") == 0:
            return {"histogram": read.get("histogram")}
        return read


class SendDelay(Foreign):
    """How late requests were sent after they were due, in microseconds."""

    budget: Amount = 0.0
    """How late they may be sent."""
    p50: Amount | None = None
    p99: Amount | None = None
    max: Amount | None = None


class Client(Foreign):
    """What the load generator itself used."""

    threads: Count
    cpu_user_s: Amount
    cpu_sys_s: Amount
    busy: Amount
    """Share of its threads' time spent on the CPU with work, 0 to 1: the busiest thread's."""
    stalled_s: Amount = 0.0
    """Seconds in which a thread stalled: stopped, without a CPU, or its machine was paused; 0
    where the load generator can't say."""
    stalled_windows: Count = 0
    """Windows in which that was so long that they measure nothing: they are excluded from rate and
    times."""
    excluded_windows: Count = 0
    """Windows excluded from throughput and latency; 0 where that would have left none."""
    wake_ups: Count | None = None
    """How often its threads waited and went on; of webdyno's own generator only."""
    busy_waits: bool = False
    """True when it asks the kernel over and over, so that `busy` doesn't say how hard it works."""


class Window(Foreign):
    """A part of the slot."""

    at_s: Amount
    """Since the slot's beginning."""
    length_s: Amount
    completed: Count
    """Answered in time and validly."""
    failed: Count = 0
    """Connections that couldn't be opened included."""
    ramp_up: bool = False
    """Before the window that throughput and latency are about."""
    cpu_s: Amount | None = None
    """CPU time of the client's threads."""
    stalled: bool = False
    """A thread of the client stalled for so long that this measures nothing."""


class TlsUse(Foreign):
    """Handshakes of TLS."""

    full_handshakes: Count
    resumed_handshakes: Count


class EndpointResult(Foreign):
    """What came of one endpoint's requests, in the windows that count."""

    endpoint: str
    completed: Count
    """Answered in time and validly."""
    failed: Count
    throughput_rps: Amount
    latency_us: Times = Times()


class EventTimes(Foreign):
    """When the events of streamed responses came."""

    responses: Count
    """Valid responses that came to their end."""
    per_response: Amount
    """Events of each of these, on average."""
    time_to_first_us: Times = Times()
    """From when a request was due (closed loop: sent) to its response's first event."""
    gap_us: Times = Times()
    """From each event to the next one of the same response."""
    per_event_us: Times = Times()
    """Mean time from an event to the next, of each valid response that has several."""
    per_s: Amount | None = None
    """Events per second, of all responses."""
    goodput_rps: Amount | None = None
    """Valid responses per second that kept the limits of `load.goodput`, where it has any."""


class Whole(Foreign):
    """Ramp-up, window and drain together: what costs are divided by, and what has to be valid."""

    length_s: Amount
    sent: Count | None = None
    completed: Count
    """Answered validly, whenever that was."""
    by_status: dict[str, Count]
    failures: Failures
    failure_samples: list[str] = []
    bytes: Bytes = Bytes()
    connections: Connections = Connections()
    server_closed: Count | None = None
    """As in `keepalive`."""
    retried: Count | None = None
    """As in `requests`."""

    @property
    def responses(self) -> int:
        """What the servers worked on to the end: valid, late and wrong responses."""
        return self.completed + (self.failures.status or 0) + (self.failures.body or 0)


class LoadResult(Foreign):
    """One slot as the load generator saw it."""

    schema_version: Literal[2] = Field(SCHEMA, alias="schema")
    target: str
    loop: Literal["closed", "open"]
    ended_by: str | None = None
    """What ended it; `late`: enough of what was due in the window was late. Of webdyno's own
    generator only."""
    ramp_up_s: Amount = 0.0
    """Seconds of load before the window."""
    measured_s: Amount
    """Length of the window that throughput and latency are about."""
    tail_s: Amount = 0.0
    """Seconds of load after the window, until all that was due in it was answered or had failed. Of
    webdyno's own generator only."""
    drain_s: Amount = 0.0
    """Seconds from the window's end to the last response."""
    requests: Requests
    by_status: dict[str, Count]
    failures: Failures
    failure_samples: list[str] = []
    bytes: Bytes = Bytes()
    connections: Connections = Connections()
    idle_connections: IdleConnections | None = None
    keepalive: KeepAliveResult
    throughput_rps: Amount
    """Completed and valid responses per second."""
    offered_rps: Amount | None = None
    """The rate that was requested; None in a closed loop."""
    due_together: Count | None = None
    """The most requests that come together, as a burst or a flow; None where each comes alone."""
    last_offered_rps: Amount | None = None
    """That of the slot's last third, where a replay says what was due."""
    latency_us: Times = Times()
    service_time_us: Times = Times()
    connect_time_us: Times = Times()
    send_delay_us: SendDelay = SendDelay()
    client: Client
    windows: list[Window] = []
    """The slot in thirds, where it isn't too short for that; of webdyno's own generator only."""
    whole: Whole | None = None
    """Of webdyno's own generator only."""
    tls: TlsUse | None = None
    """Of webdyno's own generator, over TLS."""
    endpoints: list[EndpointResult] = []
    """Where several were named; of webdyno's own generator only."""
    events: EventTimes | None = None
    """Where responses are streams; of webdyno's own generator only."""
    printed: str | None = None
    """The output of a generator that is a command for people; None of webdyno's own."""

    @property
    def gave_up(self) -> bool:
        """Whether it ended early, because enough of what was due was late already."""
        return self.ended_by == "late"

    @property
    def failed_late(self) -> int:
        """Requests of the window that failed after its end."""
        return max((self.requests.unanswered or 0) - self.requests.drained, 0)

    @property
    def all_of_it(self) -> Whole:
        """Ramp-up, window and drain together; without a ramp-up the window's own counts are all.

        Its parts were validated when they were read: it is not validated again.
        """
        return self.whole or Whole.model_construct(
            length_s=self.measured_s + self.drain_s,
            sent=self.requests.sent,
            completed=self.requests.completed + self.requests.drained,
            by_status=self.by_status,
            failures=self.failures,
            failure_samples=self.failure_samples,
            bytes=self.bytes,
            connections=self.connections,
            server_closed=self.keepalive.server_closed,
            retried=self.requests.retried,
        )

    @property
    def counted_windows(self) -> list[Window]:
        return [window for window in self.windows if not window.ramp_up]

    @property
    def counted_responses(self) -> tuple[int, float]:
        """Valid responses that the slot's throughput rests on, and the seconds that they took.

        After a ramp-up the load goes on at both edges of the window: what was on its way at its
        beginning makes up for what is at its end. Windows in which the client stalled measure
        nothing and are excluded, where others are left. Pages that take longer than the window have
        the whole slot for throughput.
        """
        if not self.ramp_up_s:
            return self._counted_without_ramp_up()
        if not self.requests.completed:
            return self.all_of_it.completed, self.all_of_it.length_s
        kept = [window for window in self.counted_windows if not window.stalled]
        if self.client.excluded_windows and kept:
            return sum(each.completed for each in kept), sum(each.length_s for each in kept)
        return self.requests.completed, self.measured_s

    def _counted_without_ramp_up(self) -> tuple[int, float]:
        """Return responses and seconds of a slot that begins with no request on its way.

        It ends with some, half done: counted without its drain it makes slow pages look slower than
        they are, the more so the more of them the servers work on at once. While requests in flight
        keep the servers busy, all responses over slot and drain is the throughput without that
        bias. Where the drain went slower than the slot, some of the servers had nothing left to do,
        or one answer was late; then the slot alone says more.

        In an open loop the timetable says how many are due in a slot, and all that were answered
        count.
        """
        completed = self.requests.completed
        answered = completed + self.requests.drained
        if self.loop == "open":
            return answered, self.measured_s
        with_drain_s = self.measured_s + self.drain_s
        if answered * self.measured_s > completed * with_drain_s:
            return answered, with_drain_s
        return completed, self.measured_s
