"""The kinds of load that peers are compared on, and what loadgen has to reach on each."""

from dataclasses import dataclass, field, replace

EARLIER = "loadgen-before"
"""An earlier build of loadgen, put on the PATH under this name: did a change cost anything?"""
EARLIER_GOAL = 1.03
BUDGETS = ("50us", "200us", "1ms")
"""Send-delay budgets that loadgen is tried with in open loops, as `loadgen-50us` and so on."""


@dataclass(frozen=True)
class Case:
    """One kind of load."""

    name: str
    title: str
    path: str
    connections: int
    keepalive: bool = True
    streams: int | None = None
    """Requests at a time on each connection of HTTP/2; None for HTTP/1.1."""
    grpc: bool = False
    """Whether its requests are calls of gRPC."""
    websocket: bool = False
    """Whether its requests are messages of a WebSocket, which come back."""
    tls: bool = False
    rate_rps: int | None = None
    """Requests per second of an open loop; None for a closed loop."""
    reference: str = "wrk"
    """The peer that ratios are taken to."""
    floor: str | None = "floor"
    """The bare loop that ratios are taken to, where there is one for this case."""
    goals: dict[str, float] = field(default_factory=dict)
    """Highest ratio of loadgen's CPU per request to a client's, by its name."""
    budget_goals: dict[str, float] = field(default_factory=dict)
    """The same of loadgen with a send-delay budget to the reference, by the budget."""

    @property
    def http2(self) -> bool:
        """Whether HTTP/2 is spoken, in clear with prior knowledge."""
        return self.streams is not None

    @property
    def in_flight(self) -> int:
        """How many requests may be on their way at a time."""
        return self.connections * (self.streams or 1)

    @property
    def drops_bodies(self) -> bool:
        """Whether bodies are so large that dropping them in the kernel pays."""
        return self.floor == "floor-drop"


def over_tls(case: Case) -> Case:
    """Make the same load over TLS, which the bare loop can't, and for which no goal is set."""
    return replace(
        case, title=f"{case.title}, TLS", tls=True, floor=None, goals={}, budget_goals={}
    )


CASES = {
    case.name: case
    for case in (
        Case(
            "small",
            "100 bytes, keep-alive, 64 connections",
            "/100b",
            connections=64,
            goals={"wrk": 0.80, "floor": 1.10},
        ),
        Case(
            "100kb",
            "100 KB, keep-alive, 16 connections",
            "/100kb",
            connections=16,
            floor="floor-drop",
            goals={"wrk": 0.30},
        ),
        Case(
            "1mb",
            "1 MB, keep-alive, 16 connections",
            "/1mb",
            connections=16,
            floor="floor-drop",
            goals={"wrk": 0.40},
        ),
        Case(
            "connect",
            "100 bytes, a new connection per request, 64 at a time",
            "/100b",
            connections=64,
            keepalive=False,
            goals={"wrk": 1.0},
        ),
        Case(
            "open",
            "100 bytes, open loop at 20 000/s, 64 connections",
            "/100b",
            connections=64,
            rate_rps=20_000,
            reference="wrk2",
            budget_goals={"200us": 0.65, "1ms": 0.5},
        ),
        Case(
            "http2",
            "100 bytes, HTTP/2, 8 connections of 10 streams",
            "/100b",
            connections=8,
            streams=10,
            reference="h2load",
            floor=None,
        ),
        Case(
            "http2-100kb",
            "100 KB, HTTP/2, 8 connections of 2 streams",
            "/100kb",
            connections=8,
            streams=2,
            reference="h2load",
            floor=None,
        ),
        Case(
            "grpc",
            "unary calls of gRPC, 8 connections of 10 streams",
            "/helloworld.Greeter/SayHello",
            connections=8,
            streams=10,
            grpc=True,
            reference="ghz",
            floor="floor-grpc",
            goals={"ghz": 0.5},
        ),
        Case(
            "websocket",
            "messages of 13 bytes over WebSocket, 64 connections",
            "/echo",
            connections=64,
            websocket=True,
            reference="floor",
            floor=None,
        ),
    )
}
