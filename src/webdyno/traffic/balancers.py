"""Lines of proxies and load balancers that write formats of their own."""

import re

from webdyno.traffic.access import (
    QUOTED,
    Access,
    NoRequest,
    common_time,
    moment_of,
    request_line,
    took_in_bounds,
    took_of_number,
)

_PROXY_MANAGER = re.compile(
    rb'\[(\d\d/[^\]]{15,36})\] (?:[^"\[\]]{1,60} )?(\d{3}) - ([A-Z]{1,20}) \S+ \S+ '
    + QUOTED
    + rb" \[Client ([^\]\s]+)\] \[Length (\d{1,18}|-)\] \[Gzip [^\]]*\] (?:\[Sent-to [^\]]*\] )?"
    + QUOTED
)
_HAPROXY = re.compile(
    rb"(\S+):\d+ \[(\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d\.\d{1,6})\] \S+ \S+ "
    rb"(?:-?\d+/){3}(-?\d{1,9})/\+?-?\d+ (-?\d{1,3}) \+?(\d{1,18}) \S+ \S+ \S{4} \S+ \S+ "
    rb'([^"]*)"([^"\r\n]*)"?'
)
_ALB = re.compile(
    rb"(?:[a-z0-9]{2,5} )?(\d{4}-\d\d-\d\dT\S{8,24}) \S+ (\S+):\d+ \S+ -?[\d.]+ (-?[\d.]{1,12}) "
    rb"-?[\d.]+ (\d{3}|-) (?:\d{3}|-) \d+ (\d{1,18}) " + QUOTED + rb" " + QUOTED
)


def iso_time(text: bytes) -> float:
    """Read a time in ISO 8601; raise NoRequest where it is none."""
    try:
        return moment_of(text.decode())
    except (ValueError, OverflowError):
        raise NoRequest("has a time that there never was") from None


def read_nginx_proxy_manager(line: bytes) -> Access | None:
    """Read a line of Nginx Proxy Manager's `proxy` or `standard` format."""
    match = _PROXY_MANAGER.search(line)
    if match is None:
        return None
    time, status, method, target, address, length, agent = match.groups()
    body_bytes = 0 if length == b"-" else int(length)
    return Access(common_time(time), address, agent, method, target, int(status), body_bytes)


def read_haproxy(line: bytes) -> Access | None:
    """Read HAProxy's `option httplog`, with or without what syslog puts before it."""
    match = _HAPROXY.search(line)
    if match is None:
        return None
    address, time, server_ms, status, length, captured, request = match.groups()
    request_words = request_line(request)
    # The server's own time is -1 where none was asked.
    took_s = took_in_bounds(int(server_ms) / 1e3)
    return Access(
        common_time(time), address, captured, *request_words, int(status), int(length), None, took_s
    )


def read_load_balancer(line: bytes) -> Access | None:
    """Read a line of Amazon's Application or Classic Load Balancer."""
    match = _ALB.match(line)
    if match is None:
        return None
    time, address, target_s, status, length, request, agent = match.groups()
    request_words = request_line(request)
    return Access(
        iso_time(time),
        address,
        agent,
        *request_words,
        0 if status == b"-" else int(status),
        int(length),
        took_s=took_of_number(target_s.decode()),
    )
