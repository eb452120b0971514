"""The clients: how each is asked for the same load, with one thread, and how it is understood."""

from base64 import b64decode
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO
from urllib.parse import urlsplit

from rig import counts
from rig.cases import BUDGETS, EARLIER, Case
from rig.counts import Counts
from webdyno.load.proto import compiled

AB_REQUESTS_PER_S = 1_000_000
"""More than any server answers: ab wants a number next to the time, and memory for each of them."""


TEXT = "Hello, World!"
PROTO = Path(__file__).parents[2] / "src/webdyno/systems/catalog/sites/grpc-greeter/greeter.proto"
MESSAGE = '{"name": "world"}'


class CannotMakeLoadError(Exception):
    """The client has no such kind of load; the message says what it lacks."""


@dataclass(frozen=True)
class Client:
    """A load generator."""

    name: str
    program: str
    """What it is called on the PATH, or which of our own programs it is."""
    arguments: Callable[[Case, str, float], list[str]]
    """Its arguments for a case, a URL and a duration in seconds; raises CannotMakeLoadError."""
    counts: Callable[[str], Counts]
    """Reads its standard output."""
    good_exits: tuple[int, ...] = (0,)

    def command(self, path: Path, case: Case, url: str, duration_s: float) -> list[str]:
        """Give the whole command, or raise CannotMakeLoadError."""
        return [str(path), *self.arguments(case, url, duration_s)]


def _only_closed(case: Case) -> None:
    if case.rate_rps:
        raise CannotMakeLoadError("it has no open loop")


def _only_http1(case: Case) -> None:
    if case.http2:
        raise CannotMakeLoadError("it can't be told connections and streams of HTTP/2")


def _no_grpc(case: Case) -> None:
    if case.grpc:
        raise CannotMakeLoadError("it makes no calls of gRPC")


def _no_websocket(case: Case) -> None:
    if case.websocket:
        raise CannotMakeLoadError("it speaks no WebSocket")


def _whole_seconds(duration_s: float) -> int:
    return max(1, round(duration_s))


def _loadgen(case: Case, url: str, duration_s: float, budget: str = "") -> list[str]:
    if budget and not case.rate_rps:
        raise CannotMakeLoadError("in a closed loop nothing is due")
    if case.grpc:
        url = url.replace("http", "grpc", 1)
    if case.websocket:
        url = url.replace("http", "ws", 1)
    return [
        *("run", url, "--threads", "1", "--json"),
        *("--connections", str(case.connections), "--time", f"{duration_s:g}s"),
        *(["--rate", str(case.rate_rps)] if case.rate_rps else []),
        *(["--send-delay-budget", budget] if budget else []),
        *([] if case.keepalive else ["--keepalive", "never"]),
        *(["--http2", "--streams", str(case.streams)] if case.http2 else []),
        *(["--protoset", _protoset().name, "--message", MESSAGE] if case.grpc else []),
        *(["--message", TEXT] if case.websocket else []),
        *(["--tls-verify", "off"] if case.tls else []),
    ]


@cache
def _protoset() -> IO[bytes]:
    """Return a file that says what the service is, as the engine reads it; it goes with us."""
    file = NamedTemporaryFile(suffix=".protoset")  # noqa: SIM115
    file.write(b64decode(compiled(PROTO, PROTO.parent, "the bench")))
    file.flush()
    return file


def _floor(case: Case, url: str, duration_s: float) -> list[str]:
    if case.tls or case.http2:
        raise CannotMakeLoadError("it has neither TLS nor HTTP/2")
    parts = urlsplit(url)
    return [
        *(parts.netloc, parts.path),
        *("--connections", str(case.connections), "--duration", f"{duration_s:g}"),
        *([] if case.keepalive else ["--new-connections"]),
        *(["--message", TEXT] if case.websocket else []),
        *(["--rate", str(case.rate_rps)] if case.rate_rps else []),
    ]


def _floor_drop(case: Case, url: str, duration_s: float) -> list[str]:
    if not case.drops_bodies:
        raise CannotMakeLoadError("responses are too small to drop")
    return [*_floor(case, url, duration_s), "--drop"]


def _floor_grpc(case: Case, url: str, duration_s: float) -> list[str]:
    if not case.grpc or case.tls:
        raise CannotMakeLoadError("it makes calls of gRPC only, in clear")
    parts = urlsplit(url)
    return [
        *(parts.netloc, parts.path),
        *("--connections", str(case.connections), "--streams", str(case.streams)),
        *("--duration", f"{duration_s:g}"),
    ]


def _wrk(case: Case, url: str, duration_s: float) -> list[str]:
    _only_closed(case)
    return _wrk_family(case, url, duration_s)


def _wrk2(case: Case, url: str, duration_s: float) -> list[str]:
    if not case.rate_rps:
        raise CannotMakeLoadError("it has no closed loop")
    return [f"-R{case.rate_rps}", *_wrk_family(case, url, duration_s)]


def _wrk_family(case: Case, url: str, duration_s: float) -> list[str]:
    _only_http1(case)
    _no_websocket(case)
    close = [] if case.keepalive else ["-H", "Connection: close"]
    return ["-t1", f"-c{case.connections}", f"-d{_whole_seconds(duration_s)}s", *close, url]


def _ab(case: Case, url: str, duration_s: float) -> list[str]:
    _only_closed(case)
    _only_http1(case)
    _no_websocket(case)
    time_s = _whole_seconds(duration_s)
    return [
        *("-q", "-c", str(case.connections)),
        *("-t", str(time_s), "-n", str(time_s * AB_REQUESTS_PER_S)),
        *(["-k"] if case.keepalive else []),
        url,
    ]


def _h2load(case: Case, url: str, duration_s: float) -> list[str]:
    _only_closed(case)
    _no_grpc(case)
    _no_websocket(case)
    if not case.keepalive:
        raise CannotMakeLoadError("it can't open a new connection per request")
    return [
        *(f"-m{case.streams}" if case.http2 else "--h1", "-t1", f"-c{case.connections}"),
        *(f"-D{_whole_seconds(duration_s)}", url),
    ]


def _hey(case: Case, url: str, duration_s: float) -> list[str]:
    _only_http1(case)
    _no_websocket(case)
    return [
        *("-cpus", "1", "-z", f"{duration_s:g}s", "-c", str(case.connections)),
        *(["-q", f"{case.rate_rps / case.connections:g}"] if case.rate_rps else []),
        *([] if case.keepalive else ["-disable-keepalive"]),
        url,
    ]


def _ghz(case: Case, url: str, duration_s: float) -> list[str]:
    if not case.grpc:
        raise CannotMakeLoadError("it makes calls of gRPC only")
    parts = urlsplit(url)
    return [
        *("--proto", str(PROTO), "--call", parts.path[1:], "--data", MESSAGE, "--format", "json"),
        *("--connections", str(case.connections), "--concurrency", str(case.in_flight)),
        *("--cpus", "1", "--duration", f"{duration_s:g}s", "--duration-stop", "wait"),
        *(["--skipTLS"] if case.tls else ["--insecure"]),
        parts.netloc,
    ]


def _oha(case: Case, url: str, duration_s: float) -> list[str]:
    _no_grpc(case)
    _no_websocket(case)
    return [
        *("--no-tui", "--output-format", "json", "--worker-threads", "1"),
        *("-z", f"{round(duration_s * 1000)}ms", "-c", str(case.connections)),
        *(["-q", str(case.rate_rps), "--latency-correction"] if case.rate_rps else []),
        *([] if case.keepalive else ["--disable-keepalive"]),
        *(["--http2", "-p", str(case.streams)] if case.http2 else []),
        *(["--insecure"] if case.tls else []),
        url,
    ]


CLIENT_WAS_THE_LIMIT = 3
"""loadgen's exit code when its core was the limit: what these benchmarks want."""

CLIENTS = {
    client.name: client
    for client in (
        Client("loadgen", "loadgen", _loadgen, counts.loadgen, (0, CLIENT_WAS_THE_LIMIT)),
        *(
            Client(
                f"loadgen-{budget}",
                "loadgen",
                partial(_loadgen, budget=budget),
                counts.loadgen,
                (0, CLIENT_WAS_THE_LIMIT),
            )
            for budget in BUDGETS
        ),
        Client(EARLIER, EARLIER, _loadgen, counts.loadgen, (0, CLIENT_WAS_THE_LIMIT)),
        Client("floor", "floor", _floor, counts.floor),
        Client("floor-drop", "floor", _floor_drop, counts.floor),
        Client("floor-grpc", "floor_grpc", _floor_grpc, counts.floor),
        Client("wrk", "wrk", _wrk, counts.wrk),
        Client("wrk2", "wrk2", _wrk2, counts.wrk),
        Client("ab", "ab", _ab, counts.ab),
        Client("h2load", "h2load", _h2load, counts.h2load),
        Client("hey", "hey", _hey, counts.hey),
        Client("oha", "oha", _oha, counts.oha),
        Client("ghz", "ghz", _ghz, counts.ghz),
    )
}
