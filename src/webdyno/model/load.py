"""The load: what the clients do during a slot.

What is said of each key here is what `docs/experiment.md` says.
"""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, Strict, model_validator

from webdyno.model.base import Model
from webdyno.model.quantities import SIZE, Lag, Pause, Quantity, Seconds
from webdyno.model.replay import unpacked
from webdyno.model.request import Headers, WrittenPaths, accepted_encodings, may_be_compressed

MOST_CONNECTIONS = 1_000_000

Connections = Annotated[int, Strict(), Field(ge=1, le=MOST_CONNECTIONS)]
Requests = Annotated[int, Field(ge=1, le=1_000_000_000)]

KeepAlive = Literal["always", "never"] | Requests
"""Whether connections are reused; a number closes each connection after that many requests."""


def _replay(text: str) -> str:
    unpacked(text)
    return text


class SlowReaders(Model):
    """Clients beside the load that take their answers in slowly, as mobile phones do."""

    connections: Connections
    """How many."""
    bytes_per_s: Annotated[int, Quantity(SIZE, 1, 4 * 10**9)]
    """What each of them reads per second."""


class Load(Model):
    """What the clients do during a slot."""

    paths: WrittenPaths = ["/"]
    """Asked for in equal shares; `/many/{1..2000}.txt` stands for many. An arm may have its own."""
    zipf: Annotated[float, Field(ge=0, le=10)] | None = None
    """Ask for the paths by Zipf's law with this exponent instead, the first one most often."""
    headers: Headers = {}
    """Sent with each request; `${env:NAME}` stands for a secret. With `Accept-Encoding` answers may
    come compressed: bodies are then looked at before the load, decoded; under load only their
    status counts."""
    loop: Literal["closed", "open"] = "closed"
    """closed: each connection sends its next request when the last one was answered.
    open: requests are due at a rate, whether or not the server keeps up."""
    rate_per_s: Annotated[float, Field(ge=0.001, le=100_000_000)] | None = None
    """Open loop: what is due per second, in units of `due`."""
    due: Literal["request", "connection"] = "request"
    """Open loop: what the rate counts; a connection is a new one, with `keepalive` requests."""
    arrivals: Literal["poisson", "constant", "replay"] = "poisson"
    """Open loop: times between what is due, random as of independent users, all the same, or those
    of `replay_file`, which then says what is asked for as well. Its stretches are drawn, for all
    arms the same ones; warm-ups and pilots have its rate only."""
    replay_file: str | None = None
    """A file that `webdyno workload --replay` wrote: when which of the `[[requests]]` was asked
    for. It is played so fast that its mean rate is `rate_per_s`. Its content is kept with the run.
    """
    replay: Annotated[str, AfterValidator(_replay)] | None = None
    """The content of such a file, as a run keeps it."""
    send_lag_budget: Lag = 0.0
    """Open loop: requests may be sent so much later than they are due, several at a time, and
    answers are timed by when the kernel got them: that costs the client less. 0 is exact, as on
    Unix sockets always."""
    think_s: Pause = 0.0
    """Closed loop: mean pause between an answer and the connection's next request."""
    connections: Connections = 64
    """Connections over all client threads; in an open loop the most that may be in use."""
    keepalive: KeepAlive = "always"
    """Whether connections are reused; a number closes each after that many requests."""
    protocol: Literal["http", "https", "h2", "h2c"] = "http"
    """http: HTTP/1.1. https: the same over TLS. h2: HTTP/2 over TLS. h2c: HTTP/2 without TLS. The
    servers' certificate is made for the run."""
    streams: Annotated[int, Field(ge=1, le=100)] = 1
    """HTTP/2: requests at a time on each connection."""
    tls_resumption: bool = True
    """Whether new connections resume TLS sessions of earlier ones."""
    timeout_s: Seconds = 5.0
    """A request that isn't answered within this time is a failure."""
    requests: Requests | None = None
    """Closed loop: a slot ends when so many requests were answered, as with `ab -n`, instead of
    after its time. `measure.slot_s` is then the longest that it may take, 60 s unless given."""
    idle_connections: Annotated[int, Field(ge=0, le=MOST_CONNECTIONS)] = 0
    """Connections held open beside the load, without a request."""
    slow_readers: SlowReaders | None = None
    """Clients beside the load that take their answers in slowly, as mobile phones do."""

    @model_validator(mode="after")
    def _loop_fits(self) -> "Load":
        if self.loop == "open" and self.rate_per_s is None:
            raise ValueError("an open loop needs rate_per_s, what is due per second")
        if self.loop == "closed" and self.rate_per_s is not None:
            raise ValueError('rate_per_s needs loop = "open"; a closed loop has no rate of its own')
        if self.loop == "closed" and self.send_lag_budget:
            raise ValueError('send_lag_budget needs loop = "open"; in a closed loop nothing is due')
        if self.loop == "open" and self.think_s:
            raise ValueError('think_s needs loop = "closed"; an open loop has its timetable')
        if self.loop == "open" and self.requests:
            raise ValueError('requests needs loop = "closed"; an open loop has its timetable')
        if self.arrivals == "replay" and (self.replay is None or self.due == "connection"):
            raise ValueError('arrivals = "replay" needs a replay_file, and due = "request"')
        if self.due == "connection" and not isinstance(self.keepalive, int):
            raise ValueError('due = "connection" needs keepalive = N, the requests on each')
        beside = self.idle_connections or self.slow_readers
        if beside and self.protocol != "http":
            raise ValueError(
                "idle_connections and slow_readers are there for plain HTTP/1.1 only; leave them "
                'out, or protocol = "http"'
            )
        if self.streams > 1 and self.protocol not in {"h2", "h2c"}:
            raise ValueError('streams needs HTTP/2: protocol = "h2" or "h2c"')
        return self

    def shares(self, paths: int) -> list[float]:
        """Give how often each of so many paths is asked for, as shares that add up to 1."""
        weights = [rank ** -(self.zipf or 0.0) for rank in range(1, paths + 1)]
        total = sum(weights)
        return [weight / total for weight in weights]

    @property
    def offered_rps(self) -> float | None:
        """Requests due per second; None in a closed loop."""
        if self.rate_per_s is None:
            return None
        per_connection = self.due == "connection" and isinstance(self.keepalive, int)
        return self.rate_per_s * (int(self.keepalive) if per_connection else 1)

    @property
    def accepted_encodings(self) -> set[str]:
        """Encodings of bodies that requests accept; none unless a header says so."""
        return accepted_encodings(self.headers)

    @property
    def may_be_compressed(self) -> bool:
        """Whether answers may come compressed, so that bytes on the wire aren't the page's."""
        return may_be_compressed(self.headers)
