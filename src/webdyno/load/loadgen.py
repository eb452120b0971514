"""webdyno's own engine behind `loadgen serve`: a JSON line in, a JSON line out, per slot."""

import base64
import json
import logging
import os
import re
import selectors
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Self

from pydantic import ValidationError

from webdyno.core.experiment import OWN_GENERATOR
from webdyno.core.hiding import hidden
from webdyno.core.load import SECURE, SHARING, Load
from webdyno.core.load_result import SCHEMA, LoadResult
from webdyno.core.request import WrittenRequest
from webdyno.core.streams import engine_limits
from webdyno.core.testbed import is_in_own_network
from webdyno.load.engine import find_loadgen, loadgen_version
from webdyno.load.interface import GeneratorError, LoadOrder, LoginError, Request, ServerResponse

logger = logging.getLogger(__name__)

PATIENCE_S = 15.0
"""How long the engine may overstay a slot's duration and its time-out before it counts as hung."""

LOGIN = re.compile(r"login of user (\d+), step (\d+) of \d+: (.*)", re.DOTALL)
"""How the engine begins when a server didn't let a user in."""
LOGIN_PATIENCE_S = 600.0
"""How long all users together may take to log in: checking passwords takes servers long on purpose.
"""
LOGIN_TIMEOUT_S = 60.0
"""A response to a login at least has so long: a server with one worker checks one at a time."""

SHORTEST_WINDOW_S, LONGEST_WINDOW_S = 0.1, 3600.0
"""Windows of these lengths are requested as thirds of a slot; the engine takes them from 0.01 s."""
ROUNDING_S = 1e-6
"""Added to a third's length, so that rounding doesn't leave a fourth window of a nanosecond."""


class Loadgen:
    """A running `loadgen serve`, its threads pinned to `cpus`, one each."""

    name = OWN_GENERATOR

    def __init__(self, cpus: Sequence[int], entry: Sequence[str] = ()) -> None:
        """`entry` are words before the command that let it run in a network of our own.

        Without CPUs it has one thread, which runs anywhere.
        """
        self._cpus = cpus
        self._entry = entry
        self._process: subprocess.Popen[bytes] | None = None
        self._unread = bytearray()

    def __enter__(self) -> Self:
        """Start the engine in a session of its own, so that Ctrl-C reaches only webdyno."""
        cpus = ",".join(map(str, self._cpus))
        pinned = ["--cpus", cpus] if cpus else []
        self._process = subprocess.Popen(
            [*self._entry, find_loadgen(), "serve", *pinned],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        logger.debug("process %d is the load engine, on CPUs %s", self._process.pid, cpus or "any")
        return self

    def __exit__(self, *_: object) -> None:
        """Close the engine's input, which ends it; kill it if it doesn't hear."""
        process, self._process = self._process, None
        if process is None:
            return
        logger.debug("the load engine, process %d, is to end", process.pid)
        if process.stdin:
            process.stdin.close()
        try:
            process.wait(timeout=1.0)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout:
            process.stdout.close()

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def slot(self, order: LoadOrder) -> LoadResult:
        """Load a server for one slot."""
        patience_s = order.load_s + order.load.timeout_s + PATIENCE_S
        logger.debug("the load engine is given %s, for %g s at most", order.id, patience_s)
        answer = self._answer(order, self._order(order), patience_s)
        logger.debug("the load engine has answered")
        try:
            return LoadResult.model_validate(answer | _offered_load(order))
        except ValidationError as error:
            raise GeneratorError(
                f"the load engine's answer to slot {order.id} is not of the agreed form: {error}"
            ) from error

    def log_in(self, order: LoadOrder) -> None:
        """Have an order's users log in, where they haven't."""
        if order.users is not None and order.users.login:
            asked = self._order(order)
            asked["session"]["only_login"] = True
            asked["load"]["timeout_s"] = max(order.load.timeout_s, LOGIN_TIMEOUT_S)
            logger.debug("the load engine is given the logins of %s", order.id)
            self._answer(order, asked, LOGIN_PATIENCE_S)

    def trace(self, order: LoadOrder, *, accepts_within_s: float = 0.0) -> Iterator[ServerResponse]:
        """Ask for all once, over one connection; where connections are users, one logs in before.

        Where nobody accepts a connection, it is tried again for so long. The responses have to be
        taken to their end.
        """
        asked = self._order(order) | {"trace": {"accepts_within_s": accepts_within_s}}
        answer = self._answer(order, asked, LOGIN_PATIENCE_S)
        while "traced" not in answer:
            yield _response(answer, self._read(answer["body_bytes"], LOGIN_PATIENCE_S))
            answer = self._next_line(order, LOGIN_PATIENCE_S)

    @property
    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise GeneratorError("the load engine has not been started")
        return self._process

    def _answer(self, order: LoadOrder, asked: dict[str, Any], patience_s: float) -> dict[str, Any]:
        """Return what the engine answers to one line; raise GeneratorError for an error."""
        stdin = self._running.stdin
        assert stdin is not None  # noqa: S101 (requested in __enter__)
        line = memoryview(json.dumps(asked).encode() + b"\n")
        try:
            while line:
                line = line[stdin.write(line) :]
        except BrokenPipeError:
            raise self._end_error() from None
        return self._next_line(order, patience_s)

    def _next_line(self, order: LoadOrder, patience_s: float) -> dict[str, Any]:
        try:
            begin = 0
            while (end := self._unread.find(b"\n", begin)) < 0:
                begin = len(self._unread)
                self._receive(patience_s)
            answer: dict[str, Any] = json.loads(self._read(end + 1, patience_s))
        except (json.JSONDecodeError, RecursionError) as error:
            raise GeneratorError(
                f"the load engine's answer to slot {order.id} is not of the agreed form: {error}"
            ) from error
        if (spoken := answer.get("schema", SCHEMA)) != SCHEMA:
            raise GeneratorError(
                f"{find_loadgen()} speaks version {spoken!r:.20} of the engine's "
                f"contract, this webdyno version {SCHEMA}: build it again ('./dyno doctor' in a "
                "checkout), or set WEBDYNO_LOADGEN to a program of the same version"
            )
        if "error" in answer:
            why = str(answer["error"])
            if login := LOGIN.fullmatch(why):
                raise LoginError(int(login[1]), int(login[2]), hidden(login[3]))
            raise GeneratorError(f"the load engine refused {order.id}: {hidden(why)}")
        return answer

    def _order(self, order: LoadOrder) -> dict[str, Any]:
        # In a network of our own nobody else can be reached.
        is_ours = is_in_own_network(order.url)
        return order_json(order) | ({"allow_remote": True} if is_ours or order.allow_remote else {})

    def _read(self, count: int, patience_s: float) -> bytes:
        while len(self._unread) < count:
            self._receive(patience_s)
        taken = bytes(self._unread[:count])
        del self._unread[:count]
        return taken

    def _receive(self, patience_s: float) -> None:
        stdout = self._running.stdout
        assert stdout is not None  # noqa: S101 (requested in __enter__)
        with selectors.PollSelector() as selector:
            selector.register(stdout, selectors.EVENT_READ)
            if not selector.select(patience_s):
                raise GeneratorError(f"the load engine did not answer within {patience_s:.0f} s")
        if not (came := os.read(stdout.fileno(), 1 << 20)):
            raise self._end_error()
        self._unread += came

    def _end_error(self) -> GeneratorError:
        code = self._running.wait()
        return GeneratorError(f"the load engine ended unexpectedly (exit code {code})")


def _response(answer: Mapping[str, Any], body: bytes) -> ServerResponse:
    return ServerResponse(
        status=answer["status"],
        version=answer["version"],
        headers=[(name, value) for name, value in answer["headers"]],
        head_bytes=answer["head_bytes"],
        body=body,
        tls=answer.get("tls", ""),
        failure=None if (failure := answer.get("failure")) is None else hidden(failure),
        trouble=answer.get("trouble"),
        came_bytes=answer.get("came_bytes", 0),
        took_s=answer.get("took_s", 0.0),
        is_login=answer["login"],
        number=answer["request"],
        captured=answer["captured"],
        json=None if (said := answer.get("json")) is None else _json_bytes(said),
    )


def _json_bytes(said: object) -> bytes:
    return json.dumps(said, ensure_ascii=False).encode("utf-8", "surrogatepass")


def _offered_load(order: LoadOrder) -> dict[str, float | None]:
    load = order.load
    receive_one = load.connections if load.broadcast else 1
    together = load.burst * receive_one * max(many for many, _ in order.flows())
    return {
        "offered_rps": order.offered_rps(),
        "due_together": together if together > 1 else None,
        "last_offered_rps": order.offered_rps(order.duration_s / 3) if order.replay else None,
    }


def order_json(order: LoadOrder) -> dict[str, Any]:
    """Return the order in the form of the engine's contract."""
    asked: dict[str, Any] = {
        "schema": SCHEMA,
        "id": order.id,
        "requests": [_request_json(order, request) for request in order.requests],
        "load": _load_json(order.load),
        "duration_s": order.duration_s,
        "seed": order.seed,
    }
    if order.count is not None:
        asked["count"] = order.count
    if any(request.message for request in order.requests):
        asked["load"]["protocol"] = "websocket"
    if order.load.descriptors is not None:
        asked["descriptors"] = order.load.descriptors
    if order.ramp_up_s:
        asked["ramp_up_s"] = order.ramp_up_s
    if order.connection_ramp_s:
        asked["load"]["connection_ramp_s"] = order.connection_ramp_s
    if order.load.goodput and any(request.events for request in order.requests):
        asked["goodput"] = engine_limits(order.load.goodput)
    if order.abort_rule is not None:
        asked["abort_rule"] = asdict(order.abort_rule)
    third_s = order.duration_s / 3 + ROUNDING_S
    if order.window_s is not None:
        asked["window_s"] = order.window_s
    elif order.count is None and SHORTEST_WINDOW_S <= third_s <= LONGEST_WINDOW_S:
        asked["window_s"] = third_s
    if order.replay is not None:
        asked["sequence"] = order.replay.numbers
        asked["load"]["arrivals"] = {"times_s": order.replay.times_s}
    elif order.load.zipf is not None:
        asked["zipf"] = order.load.zipf
    if order.users is not None:
        asked["session"] = {
            "login": [_request_json(order, request) for request in order.users.login],
            "values": dict(order.users.values),
            "key": order.users.key,
        }
    if order.share is not None:
        # Clients with the same seed would make the same random choices at the same time, and a
        # connection's own timetable is drawn from the seed and its number among its client's.
        own_timetables = order.load.rate_per_connection is not None
        asked["seed"] += order.share.index * (order.load.connections + 1 if own_timetables else 1)
        if order.load.loop == "open" and order.replay is None and not own_timetables:
            asked["load"]["arrivals"]["share"] = asdict(order.share) | {"seed": order.seed}
    return asked


def _request_json(order: LoadOrder, request: Request) -> dict[str, Any]:
    expect, is_users = request.expect_on_wire, order.users is not None
    is_weighted = order.load.zipf is None and order.replay is None and request.weight != 1.0
    think = {"mean_s": request.think_s, "distribution": "exponential"}
    valid = {
        "status": None if expect.status is None else [expect.status],
        "body_bytes": expect.body_bytes,
        "body_sha256": expect.body_sha256,
        "contains": None if expect.contains is None or not is_users else [expect.contains],
    }
    return _without_none(
        {
            "url": _url(order, request),
            "expect": _without_none(valid),
            "method": None if request.method == "GET" else request.method,
            "json": None if request.json is None else json.loads(request.json),
            "headers": dict(request.headers) or None,
            "body": None if request.body is None else _body_json(request.body),
            "binary": True if request.message == "binary" else None,
            "weight": request.weight if is_weighted else None,
            "endpoint": request.endpoint,
            "events": request.events,
            "flow": request.flow if is_users else None,
            "capture": (dict(request.capture) or None) if is_users else None,
            "think": None if request.think_s is None or not is_users else think,
        }
    )


def _url(order: LoadOrder, request: Request) -> str:
    scheme = "ws" if request.message else "grpc" if request.is_call else "http"
    return order.url.replace("http", scheme, 1) + request.path


def _without_none(table: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in table.items() if value is not None}


def _body_json(body: bytes) -> str | dict[str, str]:
    try:
        return body.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(body).decode()}


def _load_json(load: Load) -> dict[str, Any]:
    asked: dict[str, Any] = {
        "loop": load.loop,
        "connections": load.connections,
        "keepalive": load.keepalive,
        "timeout_s": load.timeout_s,
        "idle_connections": load.idle_connections,
    }
    if load.loop == "open":
        asked["arrivals"] = {
            "process": "constant" if load.arrivals == "constant" else "poisson",
            "stages": [{"rate_per_s": load.rate_per_connection or load.rate_per_s}],
            "unit": load.arrival_unit,
        }
        if load.rate_per_connection is not None:
            asked["arrivals"]["each_connection"] = True
        if load.burst > 1:
            asked["arrivals"]["burst"] = load.burst
        asked["send_delay_budget_s"] = load.send_delay_budget_s
    if load.kernel_times:
        asked["kernel_times"] = True
    if load.think_s:
        asked["think"] = {"mean_s": load.think_s, "distribution": "exponential"}
    if load.protocol in SHARING:
        asked["protocol"] = "http3" if load.protocol == "h3" else "http2"
        if load.streams > 1:
            asked["streams"] = load.streams
    if load.protocol in SECURE:
        # Here the certificate is our own, made for the run: there is nobody to vouch for it.
        asked["tls"] = {"verify": bool(load.tls_verify), "resumption": load.tls_resumption}
    if load.broadcast:
        asked["broadcast"] = True
    if load.slow_readers is not None:
        asked["slow_readers"] = load.slow_readers.model_dump()
    return asked


class Engine:
    """webdyno's own engine as one of the programs that make load: it can do and reports all."""

    name = OWN_GENERATOR
    protocol = "http"
    reports_times = True
    reports_windows = True
    need = None
    biases = ()

    def fault(self, load: Load, requests: Sequence[WrittenRequest]) -> None:
        """Nothing that a load can ask for is beyond it."""

    def version(self) -> str:
        return loadgen_version()

    def new(self, cpus: Sequence[int], entry: Sequence[str] = ()) -> Loadgen:
        return Loadgen(cpus, entry)


PROGRAM = Engine()
