"""Orders in the form of the engine's contract."""

import base64
from dataclasses import asdict
from typing import Any

from webdyno.generator.interface import Expectation, LoadOrder, Request
from webdyno.model.load import Load
from webdyno.model.load_result import SCHEMA

SHORTEST_WINDOW_S, LONGEST_WINDOW_S = 0.1, 3600.0
"""Windows of these lengths are requested as thirds of a slot; the engine takes them from 0.01 s."""
ROUNDING_S = 1e-6
"""Added to a third's length, so that rounding doesn't leave a fourth window of a nanosecond."""


def order_json(order: LoadOrder) -> dict[str, Any]:
    """Give the order in the form of the engine's contract."""
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
    if order.ramp_up_s:
        asked["ramp_up_s"] = order.ramp_up_s
    if order.connection_ramp_s:
        asked["load"]["connection_ramp_s"] = order.connection_ramp_s
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
    expect = request.expect_on_wire
    asked: dict[str, Any] = {"url": order.url + request.path, "expect": _expect_json(expect)}
    if request.method != "GET":
        asked["method"] = request.method
    if request.headers:
        asked["headers"] = dict(request.headers)
    if request.body is not None:
        asked["body"] = _body_json(request.body)
    if order.load.zipf is None and order.replay is None and request.weight != 1.0:
        asked["weight"] = request.weight
    if request.endpoint is not None:
        asked["endpoint"] = request.endpoint
    if request.events is not None:
        asked["events"] = request.events
    if order.users is not None:
        asked |= _step_json(request)
        if expect.contains is not None:
            asked["expect"]["contains"] = [expect.contains]
    return asked


def _step_json(request: Request) -> dict[str, Any]:
    """What a request is to a user."""
    asked: dict[str, Any] = {}
    if request.flow is not None:
        asked["flow"] = request.flow
    if request.capture:
        asked["capture"] = {name: dict(source) for name, source in request.capture.items()}
    if request.think_s is not None:
        asked["think"] = {"mean_s": request.think_s, "distribution": "exponential"}
    return asked


def _body_json(body: bytes) -> str | dict[str, str]:
    try:
        return body.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(body).decode()}


def _expect_json(expect: Expectation) -> dict[str, Any]:
    known = {
        "status": None if expect.status is None else [expect.status],
        "body_bytes": expect.body_bytes,
        "body_sha256": expect.body_sha256,
    }
    return {name: value for name, value in known.items() if value is not None}


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
    if load.protocol in {"h2", "h2c"}:
        asked["protocol"] = "http2"
        if load.streams > 1:
            asked["streams"] = load.streams
    if load.protocol in {"https", "h2"}:
        # Here the certificate is our own, made for the run: there is nobody to vouch for it.
        asked["tls"] = {"verify": bool(load.tls_verify), "resumption": load.tls_resumption}
    if load.slow_readers is not None:
        asked["slow_readers"] = load.slow_readers.model_dump()
    return asked
