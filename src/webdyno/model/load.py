"""The load: what the clients do during a slot, at a rate, in turns, or by a log's own timetable.

What is said of each key here is what `docs/reference/experiment-file.md` says.
"""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, Strict, model_validator

from webdyno.model.base import Model
from webdyno.model.quantities import SIZE, Lag, Pause, Quantity, Seconds
from webdyno.model.replay import unpacked
from webdyno.model.request import Headers, WrittenPaths

MOST_CONNECTIONS = 1_000_000

Connections = Annotated[int, Strict(), Field(ge=1, le=MOST_CONNECTIONS)]
Requests = Annotated[int, Field(ge=1, le=1_000_000_000)]

KeepAlive = Literal["always", "never"] | Requests
"""Whether connections are reused; a number closes each connection after that many requests."""


def _replay(text: str) -> str:
    unpacked(text)
    return text


class SlowReaders(Model):
    """Clients in addition to the load that read their responses slowly, as mobile phones do."""

    connections: Connections
    """How many."""
    bytes_per_s: Annotated[int, Quantity(SIZE, 1, 4 * 10**9)]
    """What each of them reads per second."""


class Load(Model):
    """What the clients do during a slot."""

    paths: WrittenPaths = ["/"]
    """Requested in equal shares; `/many/{1..2000}.txt` stands for many."""
    zipf: Annotated[float, Field(ge=0, le=10)] | None = None
    """Request the paths by Zipf's law with this exponent, the first most often."""
    headers: Headers = {}
    """Sent with each request; `${env:NAME}` is a secret. With `Accept-Encoding` bodies are checked
    before the load only."""
    loop: Literal["closed", "open"] = "closed"
    """closed: a connection sends its next request after the last response. open: requests are
    scheduled at a rate."""
    rate_per_s: Annotated[float, Field(ge=0.001, le=100_000_000)] | None = None
    """Open loop: the arrival rate, in units of `due`."""
    due: Literal["request", "connection"] = "request"
    """Open loop: a connection is a new one, with `keepalive` requests."""
    arrivals: Literal["poisson", "constant", "replay"] = "poisson"
    """Open loop: random, evenly, or at the times of `replay_file` (pilot runs and warm-ups have
    its rate only)."""
    replay_file: str | None = None
    """What `webdyno traffic --replay` wrote, played at a speed that gives `rate_per_s`."""
    replay: Annotated[str, AfterValidator(_replay)] | None = None
    """Its content, as a run keeps it."""
    send_lag_budget: Lag = 0.0
    """Open loop: requests may be sent so much later, several at a time, which costs the client
    less. 0 is exact."""
    kernel_times: bool = False
    """Time responses by when the kernel got them, as with a budget. The client reads them a wake-up
    later."""
    think_s: Pause = 0.0
    """Closed loop: mean pause before a connection's next request."""
    connections: Connections = 64
    """Over all client threads; in an open loop the most in use."""
    keepalive: KeepAlive = "always"
    """Whether connections are reused; a number closes each after that many requests."""
    protocol: Literal["http", "https", "h2", "h2c"] = "http"
    """HTTP/1.1, the same over TLS, HTTP/2 over TLS, HTTP/2 without TLS (prior knowledge)."""
    streams: Annotated[int, Field(ge=1, le=100)] = 1
    """HTTP/2: requests at a time on each connection."""
    tls_resumption: bool = True
    """Whether new connections resume earlier TLS sessions."""
    tls_verify: bool | None = None
    """Whether a certificate has to be valid; unless given, that of another machine has to."""
    timeout_s: Seconds = 5.0
    """A request without a response by then is a failure."""
    requests: Requests | None = None
    """Closed loop: a slot ends after so many responses, as with `ab -n`, or after `measure.slot_s`
    (60 s)."""
    idle_connections: Annotated[int, Field(ge=0, le=MOST_CONNECTIONS)] = 0
    """Connections held open in addition, without a request."""
    slow_readers: SlowReaders | None = None
    """Clients in addition that read their responses slowly."""

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
        """Give how often each of so many paths is requested, as shares that add up to 1."""
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
