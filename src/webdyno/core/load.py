"""The load: what the clients do during a slot, at a rate, in turns, or by a log's own timetable.

Its connections may be users, who log in and go through flows (`check_users`).

What is said of each key here is what `docs/reference/experiment-file.md` says.
"""

from collections.abc import Mapping, Sequence, Set
from typing import Annotated, Literal

from pydantic import Field, Strict, model_validator

from webdyno.core.base import SIZE, Delay, Model, Pause, Quantity, Seconds
from webdyno.core.paths import WrittenPaths
from webdyno.core.replay import unpack_replay
from webdyno.core.request import Headers, WrittenRequest, parts_of
from webdyno.core.session import Values, places, unknown_place
from webdyno.core.streams import GoodputLimits
from webdyno.core.text import readable_by

MOST_CONNECTIONS = 1_000_000

MOST_AT_ONCE = 1_000_000
RAREST_BURSTS_S = 5.0
"""With bursts that come more seldom, windows would take minutes."""

Rate = Annotated[float, Field(ge=0.001, le=100_000_000)]
"""A number per second."""
Connections = Annotated[int, Strict(), Field(ge=1, le=MOST_CONNECTIONS)]
Requests = Annotated[int, Field(ge=1, le=1_000_000_000)]

HttpProtocol = Literal["http", "https", "h2", "h2c", "h3"]
"""HTTP/1.1, the same over TLS, HTTP/2 over TLS or without (prior knowledge), HTTP/3."""
SECURE = frozenset({"https", "h2", "h3"})
"""Protocols that are spoken over TLS."""
SHARING = frozenset({"h2", "h2c", "h3"})
"""Protocols by which several requests at a time go over one connection."""

KeepAlive = Literal["always", "never"] | Requests
"""Whether connections are reused; a number closes each connection after that many requests."""


class SlowReaders(Model):
    """Clients in addition to the load that read their responses slowly, as mobile phones do."""

    connections: Connections
    """How many."""
    bytes_per_s: Annotated[int, Quantity(SIZE, 1, 4 * 10**9)]
    """What each of them reads per second."""


class Load(Model):
    """What the clients do during a slot."""

    paths: WrittenPaths = ["/"]
    """Requested in equal shares; `/many/{1..2000}.txt` is many."""
    zipf: Annotated[float, Field(ge=0, le=10)] | None = None
    """Request paths by Zipf's law with this exponent, the first most often."""
    headers: Headers = {}
    """Sent with each request; `${env:NAME}` is a secret. `Accept-Encoding`: bodies are checked
    before the load only."""
    loop: Literal["closed", "open"] = "closed"
    """closed: the next request after the last response. open: requests are scheduled at a rate."""
    rate_per_s: Rate | None = None
    """Open loop: the arrival rate."""
    rate_per_connection: Rate | None = None
    """Open loop, instead: the rate of each connection, which sends only its own."""
    arrival_unit: Literal["request", "connection"] = "request"
    """Open loop: what is scheduled; new connections have `keepalive` requests each."""
    arrivals: Literal["poisson", "constant", "replay"] = "poisson"
    """Open loop: random, evenly, or at the times of `replay_file`."""
    replay_file: str | None = None
    """What `webdyno traffic --replay` wrote, played at a speed that gives `rate_per_s`."""
    replay: Annotated[str, readable_by(unpack_replay)] | None = None
    """Its content, as a run keeps it."""
    proto_file: str | None = None
    """gRPC: the service's `.proto` file; servers are asked by reflection unless given."""
    descriptors: str | None = None
    """Its content, as a run keeps it."""
    burst: Annotated[int, Field(ge=1, le=MOST_AT_ONCE)] = 1
    """Open loop: so many at once, as much less often."""
    send_delay_budget_s: Delay = 0.0
    """Open loop: requests may be sent so much later, several at once: cheaper for the client."""
    kernel_times: bool = False
    """Time responses by when the kernel got them, as with a budget."""
    think_s: Pause = 0.0
    """Closed loop: mean pause before a connection's next request."""
    connections: Connections = 64
    """Over all client threads; in an open loop the most in use."""
    connection_ramp_s: Pause = 0.0
    """Closed loop: in which connections begin one by one, before each ramp-up."""
    keepalive: KeepAlive = "always"
    """Whether connections are reused; a number closes each after that many requests."""
    protocol: HttpProtocol = "http"
    """HTTP/1.1, the same over TLS, HTTP/2 over TLS or without (prior knowledge), HTTP/3."""
    streams: Annotated[int, Field(ge=1, le=100)] = 1
    """HTTP/2 and 3: requests at a time on each connection."""
    tls_resumption: bool = True
    """Whether new connections resume earlier TLS sessions."""
    tls_verify: bool | None = None
    """Whether a certificate has to be valid; by default that of another machine."""
    timeout_s: Seconds = 5.0
    """A request whose response isn't whole by then fails. Of streams 60 s by default."""
    goodput: GoodputLimits = []
    """Of streams: report responses per second that keep all of these: `ttft<500ms`, `tpot<50ms`,
    `latency<5s`."""
    count: Requests | None = None
    """Closed loop: ends a slot after so many responses, or `measure.slot_s` (60 s)."""
    broadcast: bool = False
    """WebSocket: one connection more sends, and what each of the others receives is a response."""
    idle_connections: Annotated[int, Field(ge=0, le=MOST_CONNECTIONS)] = 0
    """Connections held open besides, without a request."""
    slow_readers: SlowReaders | None = None
    """Clients in addition that read their responses slowly."""

    @model_validator(mode="after")
    def _loop_fits(self) -> "Load":
        is_open, is_closed = self.loop == "open", self.loop == "closed"
        rates = {"rate_per_s": self.rate_per_s, "rate_per_connection": self.rate_per_connection}
        given = [key for key, rate in rates.items() if rate is not None]
        extra = self.idle_connections or self.slow_readers
        replays, by_connection = self.arrivals == "replay", self.arrival_unit == "connection"
        faults: dict[str, object] = {
            "an open loop needs rate_per_s, what is due per second": is_open and not given,
            f'{"".join(given[:1])} needs loop = "open"; a closed loop has no rate of its own': (
                is_closed and given
            ),
            "rate_per_s and rate_per_connection both give the rate; omit one": len(given) > 1,
            'send_delay_budget_s needs loop = "open"; in a closed loop nothing is due': (
                is_closed and self.send_delay_budget_s
            ),
            'think_s needs loop = "closed"; an open loop has its timetable': (
                is_open and self.think_s
            ),
            'count needs loop = "closed"; an open loop has its timetable': is_open and self.count,
            'connection_ramp_s needs loop = "closed"; in an open one give rates': (
                is_open and self.connection_ramp_s
            ),
            "connection_ramp_s: slots with a count may end before it; omit one": (
                self.count and self.connection_ramp_s
            ),
            'arrivals = "replay" needs a replay_file, and arrival_unit = "request"': (
                replays and (self.replay is None or by_connection)
            ),
            'arrival_unit = "connection" needs keepalive = N, the requests on each': (
                by_connection and not isinstance(self.keepalive, int)
            ),
            "idle_connections and slow_readers are there for plain HTTP/1.1 only; leave them out, "
            'or protocol = "http"': extra and self.protocol != "http",
            'streams needs HTTP/2 or 3: protocol = "h2", "h2c" or "h3"': (
                self.streams > 1 and self.protocol not in SHARING
            ),
            "kernel_times: over HTTP/3 responses are timed when they are read; omit it": (
                self.kernel_times and self.protocol == "h3"
            ),
        }
        for fault, is_there in faults.items():
            if is_there:
                raise ValueError(fault)
        return self

    @model_validator(mode="after")
    def _bursts_fit(self) -> "Load":
        if self.burst == 1:
            return self
        if self.loop == "closed":
            raise ValueError('burst needs loop = "open"; in a closed loop nothing is due')
        if self.arrivals == "replay":
            raise ValueError('burst and arrivals = "replay": a log has its own bursts; omit one')
        if self.burst_gap_s > RAREST_BURSTS_S:
            raise ValueError(
                f"bursts of {self.burst:,} come every {self.burst_gap_s:,.0f} s at this rate; give "
                f"a higher rate or smaller bursts, so that one comes every {RAREST_BURSTS_S:g} s"
            )
        return self

    @model_validator(mode="after")
    def _broadcast_fits(self) -> "Load":
        besides = {
            "idle_connections, which would receive messages": self.idle_connections > 0,
            "keepalive: connections stay, to receive": self.keepalive != "always",
            "burst: one message is sent at a time": self.burst > 1,
            'arrivals = "replay": give a rate': self.arrivals == "replay",
            "send_delay_budget_s: messages leave when due": self.send_delay_budget_s > 0,
            f"count, or give a multiple of {self.connections}, who each receive a message": (
                (self.count or 0) % self.connections > 0
            ),
        }
        if self.broadcast and (also := [what for what, is_given in besides.items() if is_given]):
            raise ValueError(f"broadcast: omit {also[0]}")
        return self

    @model_validator(mode="after")
    def _rate_of_connections_fits(self) -> "Load":
        if self.rate_per_connection is None:
            return self
        besides = {
            'arrivals = "replay"': self.arrivals == "replay",
            'arrival_unit = "connection"': self.arrival_unit == "connection",
            "streams": self.streams > 1,
            "send_delay_budget_s": bool(self.send_delay_budget_s),
        }
        if also := [key for key, is_given in besides.items() if is_given]:
            raise ValueError(
                f"rate_per_connection has each connection send one request at a time, on time: "
                f"omit {also[0]}, or give rate_per_s"
            )
        return self

    def shares(self, paths: int) -> list[float]:
        """Return how often each of so many paths is requested, as shares that add up to 1."""
        weights = [rank ** -(self.zipf or 0.0) for rank in range(1, paths + 1)]
        total = sum(weights)
        return [weight / total for weight in weights]

    @property
    def offered_rps(self) -> float | None:
        """Requests due per second; None in a closed loop."""
        if self.rate_per_connection is not None:
            return self.rate_per_connection * self.connections
        if self.rate_per_s is None:
            return None
        per_connection = self.arrival_unit == "connection" and isinstance(self.keepalive, int)
        return self.rate_per_s * (int(self.keepalive) if per_connection else 1)

    @property
    def of_one_user(self) -> "Load":
        """That of one user who doesn't pause: it is the same requests, one after the other."""
        at_once = {"loop": "closed", "rate_per_s": None, "rate_per_connection": None, "burst": 1}
        no_waits = {"send_delay_budget_s": 0.0, "think_s": 0.0, "connection_ramp_s": 0.0}
        alone = {"connections": 1, "streams": 1, "idle_connections": 0, "slow_readers": None}
        plain = {"zipf": None, "replay": None, "arrivals": "poisson", "count": None}
        return self.replace(**at_once, **no_waits, **alone, **plain, kernel_times=False)

    @property
    def one_by_one(self) -> "Load":
        """The load without bursts, to see how servers change in time."""
        return self.replace(burst=1)

    @property
    def burst_gap_s(self) -> float:
        """Mean time from one burst to the next; 0 where requests come one by one."""
        rate_per_s = self.offered_rps if self.rate_per_s is None else self.rate_per_s
        return self.burst / rate_per_s if rate_per_s and self.burst > 1 else 0.0


def check_requests(
    requests: Sequence[WrittenRequest],
    load: Load,
    endpoint: str | None,
    *,
    own_paths: Sequence[str],
) -> None:
    """Raise ValueError where requests don't go with a load, or with what variants have of one.

    `own_paths`: the variants that have paths of their own.
    """
    if requests and (load.paths != Load().paths or own_paths):
        where = f"the paths of variant {own_paths[0]}" if own_paths else "load.paths"
        raise ValueError(f"[[requests]] say what is requested, and so do {where}; leave one out")
    if load.goodput and not any(request.events for request in requests):
        raise ValueError('load.goodput counts streams: give a request events = "sse", or omit it')
    if load.zipf is not None and len({request.weight for request in requests}) > 1:
        raise ValueError("load.zipf and the requests' weights both say how often; leave one out")
    if any(request.message_kind for request in requests):
        _check_messages(requests, load)
    elif load.broadcast:
        raise ValueError("load.broadcast sends a message of a WebSocket: give [[requests]] one")
    if any(request.is_call for request in requests) and load.protocol not in {"h2", "h2c"}:
        raise ValueError('gRPC is spoken over HTTP/2: load.protocol = "h2c", or "h2" for TLS')
    if load.replay is not None:
        _check_replay(load.replay, requests, endpoint)
    if endpoint is not None and endpoint not in (names := parts_of(requests)):
        known = ", ".join(dict.fromkeys(filter(None, names)))
        raise ValueError(
            f"endpoint: no request is called {endpoint!r}; there are {known or 'none'}"
        )


def _check_messages(requests: Sequence[WrittenRequest], load: Load) -> None:
    if not all(request.message_kind for request in requests):
        raise ValueError("[[requests]] are all messages of a WebSocket, or none of them")
    if load.protocol not in {"http", "https"}:
        raise ValueError('messages go over WebSocket: load.protocol = "http", or "https" for TLS')
    if load.broadcast and len(requests) > 1:
        raise ValueError("load.broadcast sends one message to all; give one of the [[requests]]")
    if load.slow_readers:
        raise ValueError("slow_readers read responses of HTTP; omit them, or the messages")


def _check_replay(replay: str, requests: Sequence[WrittenRequest], endpoint: str | None) -> None:
    if endpoint is not None or any(request.stands_for > 1 for request in requests):
        raise ValueError("a replay asks for all of the [[requests]], each with one path")
    if unpack_replay(replay).last_number >= len(requests):
        raise ValueError(
            f"the replay asks for more than the {len(requests)} [[requests]]; they are in the file "
            "that was written with it"
        )


def has_users(
    login: Sequence[WrittenRequest],
    requests: Sequence[WrittenRequest],
    values: Mapping[str, Values],
) -> bool:
    """Whether connections are users with cookies and values of their own.

    Values of calls alone make messages, which any connection sends.
    """
    only_calls = bool(requests) and all(request.is_call for request in requests)
    keeping = any(request.flow or request.capture for request in requests)
    return bool(login or keeping or (values and not only_calls))


def check_users(
    login: Sequence[WrittenRequest],
    requests: Sequence[WrittenRequest],
    values: Mapping[str, Values],
    load: Load,
) -> None:
    """Raise ValueError where users can't do what is asked of them."""
    if has_users(login, requests, values):
        if load.protocol in SHARING:
            raise ValueError("[[login]], values, flows and captures are there over HTTP/1.1 only")
        if any(request.message_kind for request in requests):
            raise ValueError("[[login]] and values are there over HTTP/1.1, not for messages")
        if load.idle_connections or load.slow_readers:
            raise ValueError("idle_connections and slow_readers are no users; omit them")
        orders = load.zipf is not None or load.replay or load.arrival_unit != "request"
        if orders and any(request.flow for request in requests):
            raise ValueError(
                "a flow says which request follows; omit zipf, replay and arrival_unit"
            )
    elif values and load.replay:
        raise ValueError("a replay sends each call as it is; omit [values]")
    if any(request.flow for request in login):
        raise ValueError("[[login]] is one flow already; omit flow there")
    for request in (*login, *(request for request in requests if request.flow)):
        if request.stands_for > 1:
            raise ValueError(f"{request.path} stands for many; give a value from [values] instead")
    _check_places(login, requests, values)


def _check_places(
    login: Sequence[WrittenRequest],
    requests: Sequence[WrittenRequest],
    values: Mapping[str, Values],
) -> None:
    """Raise ValueError where a request needs what nothing before it gives."""
    of_login, of_flow, flow = set[str](), set[str](), None
    for request in login:
        _check_place(request, values, of_login)
        of_login.update(request.capture)
    are_users = has_users(login, requests, values)
    for request in requests:
        if request.flow is None or request.flow != flow:
            of_flow, flow = set(), request.flow
        is_filled = are_users or (values and request.is_call)
        if is_filled or request.path.startswith("{{"):
            _check_place(request, values, of_login, of_flow)
        of_flow.update(request.capture)


def _check_place(
    request: WrittenRequest, values: Mapping[str, Values], *captured: Set[str]
) -> None:
    unknown = unknown_place(places(request.texts), values, *captured)
    if unknown is None:
        return
    table = unknown.partition(".")[0]
    if table in values:
        columns = list((values[table].rows or [{}])[0])
        know = f"[values.{table}] has {', '.join(columns)}" if columns else "name a column of it"
        raise ValueError(f"{request.label}: {{{{{unknown}}}}} is no value; {know}")
    raise ValueError(
        f"{request.label}: nothing gives {{{{{unknown}}}}}: no capture of a request before it in "
        f"[[login]] or its flow, and no [values.{table}]"
    )
