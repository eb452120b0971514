"""Formats of single programs: HAProxy, Amazon's load balancers, uvicorn."""

import re

from webdyno.workload.formats import took
from webdyno.workload.formats.access import QUOTED, Access, Unreadable, request_line
from webdyno.workload.formats.times import common_time, moment_of, stamp

_HAPROXY = re.compile(
    rb"(\S+):\d+ \[(\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d\.\d{1,6})\] \S+ \S+ "
    rb"(?:-?\d+/){3}(-?\d{1,9})/\+?-?\d+ (-?\d{1,3}) \+?(\d{1,18}) \S+ \S+ \S{4} \S+ \S+ "
    rb'([^"]*)"([^"\r\n]*)"?'
)
_ALB = re.compile(
    rb"(?:[a-z0-9]{2,5} )?(\d{4}-\d\d-\d\dT\S{8,24}) \S+ (\S+):\d+ \S+ -?[\d.]+ (-?[\d.]{1,12}) "
    rb"-?[\d.]+ (\d{3}|-) (?:\d{3}|-) \d+ (\d{1,18}) " + QUOTED + rb" " + QUOTED
)
_UVICORN = re.compile(rb"(\S+):\d+ - " + QUOTED + rb" (\d{3})\b")


def read_haproxy(line: bytes) -> Access | None:
    """Read HAProxy's `option httplog`, with or without what syslog puts before it."""
    found = _HAPROXY.search(line)
    if found is None:
        return None
    address, time, server_ms, status, length, captured, request = found.groups()
    method, target = request_line(request)
    # The server's own time is -1 where none was asked.
    took_s = took.in_bounds(int(server_ms) / 1e3)
    return Access(
        common_time(time),
        address,
        captured,
        method,
        target,
        int(status),
        int(length),
        None,
        took_s,
    )


def read_load_balancer(line: bytes) -> Access | None:
    """Read a line of Amazon's Application or Classic Load Balancer."""
    found = _ALB.match(line)
    if found is None:
        return None
    time, address, target_s, status, length, request, agent = found.groups()
    method, target = request_line(request)
    try:
        time_s = moment_of(time.decode())
    except (ValueError, OverflowError):
        raise Unreadable("has a time that there never was") from None
    return Access(
        time_s,
        address,
        agent,
        method,
        target,
        0 if status == b"-" else int(status),
        int(length),
        None,
        took.of_number(target_s.decode()),
    )


def read_uvicorn(line: bytes) -> Access | None:
    """Read uvicorn's line, where something before it has the time."""
    found = _UVICORN.search(line)
    if found is None:
        return None
    address, request, status = found.groups()
    method, target = request_line(request)
    time_s = stamp(line[: found.start()])
    if time_s is None:
        raise Unreadable("has no time")
    return Access(time_s, address, b"", method, target, int(status), 0)
