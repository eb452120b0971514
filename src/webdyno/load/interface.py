"""What webdyno asks of any load generator: one slot of load, and an account of what happened.

All of them are known by name: whatever a file of this package has as its PROGRAM, and what packages
add that are installed next to webdyno.
"""

import pkgutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from typing import Any, Literal, Protocol, Self, runtime_checkable

from webdyno.core.errors import OperationError, UserError
from webdyno.core.experiment import OWN_GENERATOR, Experiment
from webdyno.core.load import Load
from webdyno.core.load_result import LoadResult
from webdyno.core.metrics import METRICS
from webdyno.core.registry import GENERATORS, load_extensions
from webdyno.core.replay import Stretch
from webdyno.core.request import EventFormat, MessageKind, WrittenRequest, may_be_compressed
from webdyno.core.service import Need


class GeneratorError(OperationError):
    """The load generator itself failed; the message is for people."""


class LoginError(GeneratorError):
    """A user was not let in at a step of the login, both counted from 1."""

    variant = ""
    """Whose servers it was."""

    def __init__(self, user: int, step: int, why: str) -> None:
        super().__init__(user, step, why)  # as it is pickled
        self.user, self.step, self.why = user, step, why

    def __str__(self) -> str:
        return f"login of user {self.user}, step {self.step}: {self.why}"


@dataclass(frozen=True)
class Expectation:
    """The valid response to a request."""

    status: int | None = None
    """None where any from 200 to 299 is right; 101 of messages."""
    body_bytes: int | None = None
    """None where the length may differ from one response to the next."""
    body_sha256: str | None = None
    """None where the body may differ from one response to the next."""
    contains: str | None = None
    """Text of the body, in which users' values are filled in; looked for under load where
    connections are users, else by the pre-flight check alone."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """By name: a pattern of the header, which the pre-flight check alone looks at."""
    reads: int = 0
    """Rows of a database that the response is made of, by its site."""
    has_rules: bool = False
    """Whether the site's rules say what is right, whatever else responses hold."""


@dataclass(frozen=True)
class Request:
    """One entry of a load, as it is sent, with its valid response."""

    path: str
    """Below the order's URL, with query. Where a user's value stands alone in its place
    (`{{next}}`), that is a link."""
    expect: Expectation = field(default_factory=Expectation)
    label: str = ""
    """What reports call it; its path unless given."""
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    """All that are sent, the load's among them."""
    body: bytes | None = None
    message: MessageKind | None = None
    """How the body is sent over WebSocket; None where it is a request of HTTP."""
    is_call: bool = False
    """Whether it is a call of gRPC."""
    json: str | None = None
    """What a call sends, unless that is its body."""
    weight: float = 1.0
    """How often it is sent, relative to the others, unless their order says that (Zipf's law)."""
    endpoint: str | None = None
    """Requests of one endpoint are reported apart from the others, where the generator can."""
    events: EventFormat | None = None
    """The response is a stream of these, which are timed each."""
    flow: str | None = None
    """Requests of one flow that stand together follow each other, by one user."""
    capture: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By name: what of its response a user's later requests get, in the form of the engine's
    contract."""
    think_s: float | None = None
    """Mean pause of its user after it, in its flow."""

    @property
    def expect_on_wire(self) -> Expectation:
        """What can be expected of responses as they come.

        Length and sum are the page's: where bodies may come compressed, only the pre-flight check,
        which decodes them, can compare them with the page.
        """
        if not may_be_compressed(self.headers):
            return self.expect
        return replace(self.expect, body_bytes=None, body_sha256=None)


@dataclass(frozen=True)
class Users:
    """Connections are users, who log in and keep what they are given."""

    login: tuple[Request, ...]
    """What each of them requests once, unmeasured."""
    values: Mapping[str, Any]
    """In the form of the engine's contract."""
    key: str = ""
    """Names the servers' start, after which users log in once."""


Trouble = Literal[
    "connect", "untrusted", "tls", "untaken", "closed", "cut", "malformed", "reset", "late", "long"
]
"""Why there is no whole response, by the engine's contract: nobody accepts a connection; its
certificate isn't valid, or TLS fails otherwise; the server ended the connection before it had the
request, before a byte of its response, or before the end of that; it can't be read; the server
reset the request's stream; time was up; it is too long."""


@dataclass(frozen=True)
class ServerResponse:
    """One response, whole, or what came instead."""

    status: int
    """0 where there was none."""
    version: str = ""
    """`HTTP/1.1`, `HTTP/2`."""
    headers: Sequence[tuple[str, str]] = ()
    head_bytes: int = 0
    """Length of its head on the wire; of HTTP/2 as if it were not compressed."""
    body: bytes = b""
    tls: str = ""
    """What was agreed upon, such as `TLSv1.3, TLS_AES_256_GCM_SHA384`; empty without TLS."""
    failure: str | None = None
    """What is wrong with it, for people."""
    trouble: Trouble | None = None
    """Why it isn't whole; None where it is, and for users."""
    came_bytes: int = 0
    """How much of it came, also where it isn't whole."""
    took_s: float = 0.0
    is_login: bool = False
    number: int = 0
    """Of the login's requests, or of the order's."""
    captured: Mapping[str, str] = field(default_factory=dict)
    """What a user took from it."""
    json: bytes | None = None
    """What a call was answered, as JSON; None where that isn't known."""


@dataclass(frozen=True)
class AbortRule:
    """When to end an open loop that has clearly failed, instead of waiting for all responses."""

    share: float
    """More than this share of all that was due in the window has to be late."""
    after_s: float
    """What has waited so long for its response is late."""


@dataclass(frozen=True)
class Share:
    """Which of several clients does the work, where they share a slot."""

    of: int
    """How many clients there are."""
    index: int
    """From 0."""


@dataclass(frozen=True)
class LoadOrder:
    """One slot's work."""

    id: str
    url: str
    """Base of the requests' paths: `http://127.0.0.1:8080`."""
    requests: tuple[Request, ...]
    load: Load
    duration_s: float
    """Length of the measurement window."""
    ramp_up_s: float = 0.0
    """Load before that window."""
    connection_ramp_s: float = 0.0
    """Closed loop: at its beginning connections begin one after the other for so long."""
    window_s: float | None = None
    """Length of the windows that the load generator reports apart, where it can; thirds of the
    measurement window unless given."""
    count: int | None = None
    """The slot ends when so many requests were answered; then `duration_s` is the longest."""
    seed: int = 0
    """Decides on all that is random in it: due times, which request comes next, pauses."""
    abort_rule: AbortRule | None = None
    """An open loop after a ramp-up waits until all that was due in its window is answered or times
    out, or until this rule ends it."""
    replay: Stretch | None = None
    """When which of the requests is due, instead of what the load says of it."""
    allow_remote: bool = False
    """Whether the servers may be on another machine: a host of the cluster, or one that you vouch
    for."""
    users: Users | None = None
    """None where connections ask alike."""
    share: Share | None = None
    """One of several clients has this order: its connections, replay and count are its own, but
    rate and count of an open loop are those of all clients, who share one timetable."""

    @property
    def load_s(self) -> float:
        """How long the load goes on, the last responses excluded."""
        return self.ramp_up_s + self.duration_s

    def flows(self) -> list[tuple[int, float]]:
        """Return what is chosen among, by the number of requests and the weight."""
        flows: list[tuple[int, float]] = []
        before = None
        for request in self.requests:
            flow = request.flow
            if flow is not None and flow == before:
                many, weight = flows[-1]
                flows[-1] = (many + 1, weight)
            else:
                flows.append((1, request.weight))
            before = flow
        return flows

    def offered_rps(self, last_s: float | None = None) -> float | None:
        """Return what is due per second of the window, or of its end; None in a closed loop.

        Of a timetable that is drawn it is the rate that it is drawn with.
        """
        if self.replay is not None:
            of_s = self.duration_s if last_s is None else last_s
            return self.replay.due_between(self.load_s - of_s, self.load_s) / of_s
        if self.load.offered_rps is None:
            return None
        flows = self.flows()
        total = sum(weight for _, weight in flows)
        requests_each = sum(many * weight for many, weight in flows) / total if total else 1.0
        share = self.share if self.load.rate_per_connection is None else None
        return self.load.offered_rps * requests_each / (share.of if share else 1)


class Generator(Protocol):
    """A load generator at work; it may keep connections open from one slot to the next."""

    name: str

    def slot(self, order: LoadOrder) -> LoadResult:
        """Load a server for one slot and give back what happened; raise GeneratorError."""

    def log_in(self, order: LoadOrder) -> None:
        """Have an order's users log in, where they haven't; raise GeneratorError."""

    def trace(self, order: LoadOrder) -> Iterator[ServerResponse]:
        """Have one user log in and go through all once; raise GeneratorError."""

    @property
    def pid(self) -> int | None:
        """The process that makes the load, to be watched; None when it isn't running."""

    def __enter__(self) -> Self:
        """Start the generator."""

    def __exit__(self, *_: object) -> None:
        """End the generator; safe to call twice."""


@runtime_checkable
class Program(Protocol):
    """A program that makes load: what it is, what it can do and what it can say.

    A file of this package with one, as `PROGRAM`, is all that a new generator takes.
    """

    @property
    def name(self) -> str:
        """What people call it in experiments and flags."""

    @property
    def protocol(self) -> str:
        """What it speaks to the stacks: http, or redis."""

    @property
    def reports_times(self) -> bool:
        """Whether it reports the distribution of latency, histograms and all."""

    @property
    def reports_windows(self) -> bool:
        """Whether it distinguishes parts of a slot and knows a ramp-up, as a pilot needs."""

    @property
    def need(self) -> Need | None:
        """What must be on the machine; None when webdyno brings it."""

    @property
    def biases(self) -> Sequence[str]:
        """What its figures leave out or add, whatever the server does: a sentence each."""

    def fault(self, load: Load, requests: Sequence[WrittenRequest]) -> str | None:
        """Return what of it it can't do, in words that follow its name; None if it can do it."""

    def version(self) -> str:
        """Return its name and version, as recorded; raise OperationError if it is missing."""

    def new(self, cpus: Sequence[int], entry: Sequence[str] = ()) -> Generator:
        """Return a generator on those CPUs, not started; `entry` are words before its command."""


def programs() -> Mapping[str, Program]:
    """Return every program that makes load by its name, webdyno's own first."""
    return _found_in(tuple(sys.modules[__package__].__path__))


@cache
def _found_in(folders: tuple[str, ...]) -> Mapping[str, Program]:
    modules = (
        import_module(f"{__package__}.{each.name}") for each in pkgutil.iter_modules(folders)
    )
    added = (each.value for each in load_extensions(GENERATORS, Program))  # type: ignore[type-abstract]
    ours = (module.PROGRAM for module in modules if hasattr(module, "PROGRAM"))
    by_name = {each.name: each for each in (*added, *ours)}
    order = sorted(by_name, key=lambda name: (name != OWN_GENERATOR, name))
    return {name: by_name[name] for name in order}


def program(name: str) -> Program:
    """Return a program by name; raise UserError when there is none of that name."""
    known = programs()
    if name not in known:
        raise UserError(
            f"there is no load generator named {name!r}; choose from {', '.join(known)}"
        )
    return known[name]


def generator_fault(experiment: Experiment) -> str | None:
    """Return why an experiment's generator can't make its load, or can't report what decides."""
    name = experiment.generator
    its = program(name)
    faults = {
        variant: its.fault(experiment.load_of(variant), experiment.requests_of(variant))
        for variant in experiment.variants
    }
    for variant, fault in faults.items():
        if fault is not None:
            of_variant = "" if len(set(faults.values())) == 1 else f"variant {variant}: "
            return (
                f"{of_variant}generator {name} {fault}; or use generator = {OWN_GENERATOR}, which "
                "can"
            )
    if experiment.has_users and name != OWN_GENERATOR:
        return (
            f"{name} knows no [[login]], values, flows or captures; use generator = {OWN_GENERATOR}"
        )
    if fault := _events_fault(experiment, name):
        return fault
    if experiment.measure.ramp_up_s and not its.reports_windows:
        return (
            f"{name} counts from its first request on, so ramp_up_s would change nothing; leave it "
            f'out, or use generator = "{OWN_GENERATOR}"'
        )
    decide_on = experiment.measure.decide_on
    if METRICS[decide_on].needs == "times" and not its.reports_times:
        return (
            f"{name} doesn't report the distribution of latency, which "
            f'decide_on = "{decide_on}" needs; use generator = "{OWN_GENERATOR}"'
        )
    return None


def _events_fault(experiment: Experiment, generator: str) -> str | None:
    for variant in experiment.variants:
        if not any(request.events for request in experiment.requests_of(variant)):
            continue
        if generator != OWN_GENERATOR:
            return f"{generator} times no events; use generator = {OWN_GENERATOR}"
    return None
