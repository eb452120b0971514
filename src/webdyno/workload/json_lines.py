"""JSON, an object a line: nginx, Caddy, Traefik, Envoy, Google, Cloudflare, and envelopes."""

import json
from collections.abc import Callable
from typing import Any

from webdyno.workload.access import (
    Access,
    NoRequest,
    client,
    moment,
    request_line,
    stamp,
    took_of_caddy,
    took_of_json,
)

_ENVELOPES = {"log": "time", "MESSAGE": "", "message": "@timestamp", "line": "timestamp"}
"""Keys under which docker, journald, Filebeat and Loki keep a line, and the key of its time."""
_METHOD = ("request_method", "method", "http_method", "RequestMethod", "requestMethod")
_METHOD_AND_TARGET = "request"
_TARGET = ("request_uri", "uri", "path", "url", "RequestPath", "requestUrl", "ClientRequestURI")
_STATUS = ("status", "status_code", "DownstreamStatus", "response_code", "EdgeResponseStatus")
_TIME = (
    *("StartUTC", "StartLocal", "start_time", "EdgeStartTimestamp"),
    *("msec", "time_iso8601", "time_local", "@timestamp", "timestamp", "time", "ts"),
)
_BYTES = (
    *("body_bytes_sent", "bytes_sent", "DownstreamContentSize", "responseSize", "bytes", "size"),
    "EdgeResponseBytes",
)
_ADDRESS = (
    *("remote_addr", "remote_ip", "client_ip", "clientip", "client", "ip", "ClientHost"),
    *("remoteIp", "ClientIP", "downstream_remote_address"),
)
_AGENT = ("http_user_agent", "user_agent", "agent", "userAgent", "request_User-Agent")
_FORWARDED = ("http_x_forwarded_for", "x_forwarded_for", "request_X-Forwarded-For", "xff")


def read_json(text: bytes, before: bytes, inner: Callable[[bytes], Access]) -> Access:
    """Read an object, before which something else may stand; raise NoRequest.

    `inner` reads the line that an envelope holds.
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise NoRequest("is no JSON") from None
    if not isinstance(found, dict):
        raise NoRequest("is no JSON object")
    for key, time in _ENVELOPES.items():
        if isinstance(line := found.get(key), str) and "status" not in found:
            begins = f"{found.get(time)} " if time in found else ""
            return inner(f"{begins}{line}".encode(errors="replace"))
    try:
        if isinstance(found.get("request"), dict):
            return _caddy(found, before)
        nested = found.get("httpRequest")
        return _named(found | nested if isinstance(nested, dict) else found, before)
    except (KeyError, ValueError, TypeError, OverflowError):
        raise NoRequest("lacks time, method, path or status, or has a wrong one") from None


def _caddy(found: dict[str, Any], before: bytes) -> Access:
    """Read Caddy's JSON, or its console format, whose time and logger stand before the object."""
    if str(found.get("logger", "")).startswith("http.log.error") or b"http.log.error" in before:
        raise NoRequest("reports an error, whose request has a line of its own")
    request = found["request"]
    headers = request.get("headers")
    address = request.get("client_ip") or request.get("remote_ip") or request.get("remote_addr")
    behind = request.get("client_ip") not in {None, request.get("remote_ip")}
    who, remarks = client(
        _plain(address), b"" if behind else _plain(_header(headers, "X-Forwarded-For"))
    )
    return Access(
        moment(found["ts"]) if "ts" in found else _stamped(before),
        who,
        _plain(_header(headers, "User-Agent")),
        _text(request["method"]),
        _text(request["uri"]),
        int(found["status"]),
        _length(found.get("size")),
        took_s=took_of_caddy(found.get("duration")),
        remarks=remarks,
    )


def _named(found: dict[str, Any], before: bytes) -> Access:
    """Read the names that nginx, Traefik, Envoy and others have for the same things."""
    method, target = _first(found, _METHOD), _first(found, _TARGET)
    if method is None:
        request_words = request_line(_text(found[_METHOD_AND_TARGET]))
    else:
        request_words = _text(method), _text(target)
    address, remarks = client(_plain(_first(found, _ADDRESS)), _plain(_first(found, _FORWARDED)))
    nth = found.get("connection_requests")
    time = _first(found, _TIME)
    return Access(
        _stamped(before) if time is None else moment(time),
        address,
        _plain(_first(found, _AGENT)),
        *request_words,
        int(_first(found, _STATUS)),
        _length(_first(found, _BYTES)),
        None if nth in {None, ""} else int(nth) == 1,
        took_of_json(found),
        remarks,
    )


def _first(found: dict[str, Any], names: tuple[str, ...]) -> Any:  # noqa: ANN401 (what JSON has)
    return next((found[name] for name in names if name in found), None)


def _header(headers: object, name: str) -> object:
    values = headers.get(name) if isinstance(headers, dict) else None
    return values[0] if isinstance(values, list) and values else values


def _stamped(before: bytes) -> float:
    time_s = stamp(before)
    if time_s is None:
        raise ValueError
    return time_s


def _plain(value: object) -> bytes:
    return b"" if value in (None, "-") else str(value).encode(errors="replace")


def _text(value: object) -> bytes:
    if not isinstance(value, str) or not value:
        raise ValueError
    return value.encode(errors="replace")


def _length(value: object) -> int:
    number = int(str(value)) if value not in {None, "", "-"} else 0
    if not 0 <= number < 2**62:
        raise ValueError
    return number
