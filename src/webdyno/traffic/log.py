"""A log's requests in columns, 31 bytes a request whatever its lines hold, and how these grow."""

import re
from array import array
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from webdyno.core.errors import UserError
from webdyno.core.format import count, number
from webdyno.traffic.access import AT_EDGE, CASE_BLIND, FORWARDED, Access
from webdyno.traffic.privacy import Privacy

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
LONGEST_TARGET = 2_048
MOST_NAMED = 5
MOST_PATHS = 200_000
"""Most distinct paths; further ones are excluded, and counted."""
MOST_CLIENTS = 5_000_000
UNREADABLE = "lines that are no request"
SWITCHING, UPGRADED = 101, "that became WebSockets or another protocol"
METHOD, BEFORE, AFTER = "of other methods", "before --from", "after --to"
FAILED, NO_PATH, TOO_MANY = (
    "answered with 5xx, or not at all",
    "for what is no path",
    f"for further paths than {MOST_PATHS:,}",
)
NO_RESPONSE = frozenset({408, 444, 460, 499})
"""Statuses that servers write where no response was sent: nobody can meet them."""
PROBE, BODY = "health check", "has a body"
BODIES = "with a body, which --bodies keep writes down"
FEWEST = 20
"""Fewest requests for a note about clients."""
_PROBES = re.compile(
    rb"kube-probe|GoogleHC|ELB-HealthChecker|Consul Health Check|UptimeRobot|Pingdom"
    rb"|Blackbox Exporter|Envoy/HC",
    re.IGNORECASE,
)


class Bad(NamedTuple):
    """A line that couldn't be read."""

    file: str
    line: int
    why: str


@dataclass(frozen=True)
class LogSelection:
    """Which requests of a log."""

    methods: Collection[str] = ("GET", "HEAD")
    from_s: float = 0.0
    to_s: float = float("inf")
    """Since 1970; exclusive."""


class RequestKey(NamedTuple):
    """Key of a distinct request: method, path and body."""

    method: str
    path: str
    body: bytes = b""
    """What it sent, where that is known: only HAR files have it."""
    content_type: str = ""


@dataclass(frozen=True)
class Log:
    """A log's requests in order of time, and what isn't among them."""

    name: str
    asked: list[RequestKey]
    time_s: Floats
    asked_id: Whole
    client_id: Whole
    body_bytes: Floats
    """NaN where the log doesn't say."""
    status: Whole
    connection: Whole
    """1: first on its connection; 0: a later one; -1: the log doesn't say."""
    took_s: Floats
    """Until it was answered; NaN where the log doesn't say."""
    lines: int
    bad: list[Bad]
    """The first ones."""
    excluded: dict[str, int]
    hidden: dict[str, int]
    variables: list[str]
    """Of the environment, in the place of what is personal."""
    notes: list[str] = field(default_factory=list)
    """What a reader of the results has to know."""

    def __len__(self) -> int:
        return len(self.time_s)

    def by_asked(self) -> Iterator[tuple[RequestKey, Whole]]:
        """Return all that was requested, each with the numbers of its requests."""
        order = np.argsort(self.asked_id, kind="stable")
        bounds = np.searchsorted(self.asked_id[order], np.arange(len(self.asked) + 1))
        for nth, asked in enumerate(self.asked):
            yield asked, order[bounds[nth] : bounds[nth + 1]]


@dataclass
class LogBuilder:
    """What was read so far."""

    wanted: LogSelection
    privacy: Privacy
    lines: int = 0
    bad: list[Bad] = field(default_factory=list)
    excluded: Counter[str] = field(default_factory=Counter)
    remarks: Counter[str] = field(default_factory=Counter)
    addresses: set[bytes] = field(default_factory=set)
    """Hashed; two at the most, which say whether there are several."""
    times: "array[float]" = field(default_factory=lambda: array("d"))
    asked_ids: "array[int]" = field(default_factory=lambda: array("I"))
    clients: "array[int]" = field(default_factory=lambda: array("I"))
    sizes: "array[float]" = field(default_factory=lambda: array("d"))
    statuses: "array[int]" = field(default_factory=lambda: array("H"))
    connections: "array[int]" = field(default_factory=lambda: array("b"))
    took_s: "array[float]" = field(default_factory=lambda: array("f"))

    def __post_init__(self) -> None:
        self._methods = {method.encode() for method in self.wanted.methods}
        self._as_logged: dict[tuple[bytes, bytes, bytes, str], int | None] = {}
        self._asked: dict[RequestKey, int] = {}
        self._client_ids: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self.times)

    def note_bad(self, file: str, line: int, why: str) -> None:
        """Count a line that is no request."""
        self.excluded[UNREADABLE] += 1
        if len(self.bad) < MOST_NAMED:
            self.bad.append(Bad(file, line, why))

    def take(self, access: Access) -> None:
        """Add a request, if it is wanted."""
        if access.method not in self._methods:
            self.excluded[METHOD] += 1
        elif access.time_s < self.wanted.from_s:
            self.excluded[BEFORE] += 1
        elif access.time_s >= self.wanted.to_s:
            self.excluded[AFTER] += 1
        elif access.status == SWITCHING:
            self.excluded[UPGRADED] += 1
        elif not 200 <= access.status < 500 or access.status in NO_RESPONSE:
            self.excluded[FAILED] += 1
        elif access.body and not self.privacy.keeps_bodies:
            self.excluded[BODIES] += 1
        elif (asked := self._id(access)) is not None:
            self.times.append(access.time_s)
            self.asked_ids.append(asked)
            self.clients.append(self._client(access))
            self.sizes.append(float("nan") if access.body_bytes is None else access.body_bytes)
            self.statuses.append(access.status)
            first = access.first_on_connection
            self.connections.append(-1 if first is None else first)
            self.took_s.append(float("nan") if access.took_s is None else access.took_s)
            if access.remarks:
                self.remarks.update(access.remarks)
            if _is_probe(access.agent):
                self.remarks[PROBE] += 1
            if access.body:
                self.remarks[BODY] += 1
            if len(self.addresses) < 2:
                self.addresses.add(self.privacy.client(access.address))

    def _client(self, access: Access) -> int:
        short = self.privacy.client(access.address + b" " + access.agent)
        if (known := self._client_ids.get(short)) is not None:
            return known
        if len(self._client_ids) < MOST_CLIENTS:
            self._client_ids[short] = len(self._client_ids)
            return len(self._client_ids) - 1
        return MOST_CLIENTS  # all further ones together: memory stays bounded

    def _id(self, access: Access) -> int | None:
        """Return the number of what was requested; None, and count it, where that can't be."""
        target = self.privacy.distinct_target(access.target)
        logged = access.method, target, access.body, access.content_type
        if logged in self._as_logged:
            number = self._as_logged[logged]
            if number is None:
                self.excluded[NO_PATH] += 1
            return number
        if len(self._as_logged) >= MOST_PATHS:
            self.excluded[TOO_MANY] += 1
            return None
        if len(target) > LONGEST_TARGET:
            self.excluded[NO_PATH] += 1
            return None
        try:
            path = self.privacy.path(target)
            body = self.privacy.body(access.body, access.content_type) if access.body else b""
            asked = RequestKey(access.method.decode(), path, body, access.content_type)
        except (ValueError, UserError):
            self._as_logged[logged] = None
            self.excluded[NO_PATH] += 1
            return None
        number = self._as_logged[logged] = self._asked.setdefault(asked, len(self._asked))
        return number

    def log(self, name: str, found_out: Sequence[str]) -> Log:
        """Return what was read, of which there has to be something.

        `found_out`: notes about the files themselves.
        """
        times = np.frombuffer(self.times, dtype=np.float64)
        order = np.argsort(times, kind="stable")
        asked, clients, statuses, connections = (
            np.frombuffer(column, dtype=column.typecode)[order].astype(np.int64)
            for column in (self.asked_ids, self.clients, self.statuses, self.connections)
        )
        return Log(
            name,
            list(self._asked),
            times[order],
            asked,
            clients,
            np.frombuffer(self.sizes, dtype=np.float64)[order],
            statuses,
            connections,
            np.frombuffer(self.took_s, dtype=np.float32)[order].astype(np.float64),
            self.lines,
            self.bad,
            {why: number for why, number in self.excluded.items() if number},
            dict(self.privacy.hidden),
            self.privacy.variables,
            [*found_out, *self._notes()],
        )

    def _notes(self) -> Iterator[str]:
        """Whether clients can be separated, and which requests no visitor made."""
        requests, remarks, variables = len(self), self.remarks, self.privacy.variables
        if by_proxy := remarks[FORWARDED]:
            yield (
                f"{count(by_proxy, 'request')} came through a proxy: X-Forwarded-For names the "
                "client"
            )
        if requests >= FEWEST and len(self.addresses) == 1:
            yield (
                f"all {number(requests)} requests come from one address, so sessions and pauses "
                "are unknown: is there a proxy in front? Let the log have X-Forwarded-For "
                '("$http_x_forwarded_for" in nginx, "%{X-Forwarded-For}i" in Apache)'
            )
        elif requests >= FEWEST and len(self._client_ids) == requests:
            yield (
                f"each of the {number(requests)} requests has a client of its own, so sessions and "
                "pauses are unknown: does the log name clients?"
            )
        if probes := remarks[PROBE]:
            are = "is a health check" if probes == 1 else "are health checks"
            yield f"{count(probes, 'request')} {are}, which no visitor makes"
        if bodies := remarks[BODY]:
            of_file = "with a body, which the load's file holds: look it over"
            yield f"{count(bodies, 'request')} {of_file}"
        if variables:
            words = " ".join(f"{name}=…" for name in variables)
            yield f"personal fields are variables: export {words} before a run"
        if at_edge := remarks[AT_EDGE]:
            yield (
                f"CloudFront answered {number(at_edge)} of {number(requests)} requests itself; "
                f"your server saw {number(requests - at_edge)}. For these alone: "
                r"zgrep -vP '\tHit\t' LOG | webdyno traffic -"
            )
        if remarks[CASE_BLIND] and (alike := _alike([request.path for request in self._asked])):
            yield f"for IIS {' and '.join(alike)} are one page; other servers distinguish them"


@lru_cache(maxsize=4096)
def _is_probe(agent: bytes) -> bool:
    """Whether an agent is a program that asks whether the server lives."""
    return _PROBES.search(agent) is not None


def _alike(paths: Sequence[str]) -> list[str]:
    """Return the first paths that differ in capitals alone."""
    seen: dict[str, str] = {}
    for path in paths:
        if (other := seen.setdefault(path.lower(), path)) != path:
            return [other, path]
    return []
