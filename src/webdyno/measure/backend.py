"""Interfaces between a run and its hosts, local or remote: one runs servers, one generates load.

All that goes in and out are values, and variants go by their names, so that a host may be this
process or another machine. `local_backend.py` does the work on the host itself.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

from webdyno.config import Catalogue
from webdyno.core.errors import OperationError
from webdyno.core.experiment import Experiment
from webdyno.core.load import Load
from webdyno.core.load_result import LoadResult
from webdyno.core.looks import ServerSample
from webdyno.core.readings import CpuUse, Readings, StoppedUse
from webdyno.core.records import Response, ServerUse
from webdyno.core.sweep import PointPlan
from webdyno.core.testbed import Machine
from webdyno.load.interface import GeneratorError, LoadOrder, LoginError, Request, Users
from webdyno.measure.folder import RunFolder
from webdyno.measure.planned import PlannedVariant
from webdyno.probes.instructions import Counted
from webdyno.probes.stacks import Profile


class CourseTracing(NamedTuple):
    """The servers' own figures are read in the course of the load, every so many seconds."""

    every_s: float


Tracing = Literal["samples", "calls", "instructions", "blocked"] | CourseTracing
"""What is read besides the counters: stacks of calls ("samples"), how often the kernel is called
("calls"), what CPUs execute for the servers ("instructions"), what threads wait for ("blocked"), or
the servers' own figures in the course of the load."""


class StartedVariant(NamedTuple):
    """A variant whose servers answer."""

    url: str
    """Where clients find the site, such as `http://127.0.0.1:8080`."""
    ready_s: float
    """Seconds from the first service's start to the site's first response."""
    cpu_s: float
    """CPU time until then."""
    is_counted: bool
    """Whether its CPU time can be read often without interference."""
    facts: Mapping[str, str]
    """What the pre-flight check says of its services."""
    round_trip_s: float | None = None
    """To the machine that it runs on, where that is another one, which you vouch for."""

    @property
    def is_elsewhere(self) -> bool:
        """Whether it runs on such a machine."""
        return self.round_trip_s is not None


class SlotUsage(NamedTuple):
    """What a variant's servers used in a slot, by all that was read of them."""

    servers: ServerUse
    readings: Readings
    profile: Profile | None
    system_calls: dict[str, int] | None
    instructions: Counted | None = None
    """None where they weren't asked for."""
    course: list[ServerSample] = []
    server_cpus: int = 1
    """How many CPUs the servers may use."""


class ClientUse(NamedTuple):
    """What was read of a host that made load in a slot and serves nothing."""

    cpu: CpuUse
    waiting: float | None
    """As `Readings.client_waiting`."""
    stopped_s: float
    silent_s: float | None
    """The longest time in which the servers' host gave no sign of life; None where nobody asked."""


class LoadOutcome(NamedTuple):
    """What came of a host's share of a slot's load."""

    result: LoadResult
    use: ClientUse | None
    """None where the servers' readings cover the client as well: they are on one host."""


class Questions(NamedTuple):
    """What a variant is asked before the load."""

    requests: Sequence[Request]
    load: Load
    ignored: Sequence[str]
    """What may differ in the bodies of responses."""
    users: Users | None = None
    """Who asks; None where connections ask alike."""
    allow_remote: bool = False
    """Whether the variant may be on another machine, one that you vouch for."""


class HostLost(OperationError):  # noqa: N818
    """A host, or the way to it, is gone; the message says what is known of it."""

    def __init__(self, what: str, host: str | None = None) -> None:
        super().__init__(what)
        self.host = host
        """Which one, where it isn't just the way to it."""


class LinkCut(OperationError):  # noqa: N818
    """The network between hosts was cut under load: what was measured then says of nothing."""


class ServersHost(Protocol):
    """A host, or several, that run the servers of variants."""

    def start(self, variant: str, folder: Path) -> StartedVariant:
        """Start a variant's servers again, with logs in `folder`; raise OperationError."""

    def stop(self, variant: str) -> None:
        """Stop a variant's servers, and leave nothing of them."""

    def broken_rule(self, variant: str) -> str | None:
        """Return what breaks a rule of a variant's site; None where nothing does."""

    def check_alive(self, variant: str) -> None:
        """Raise StackDied where a service of a variant has ended."""

    def waits_for_rest(self, most_s: float) -> bool:
        """Wait until all servers rest together; False where they don't in time."""

    def put_back(self, variant: str) -> None:
        """Restore what a variant's services held at its start, where that was requested."""

    def slot_begins(self, variant: str, tracing: Tracing | None) -> None:
        """Read the counters of a variant that is to come under load."""

    def slot_ends(self) -> SlotUsage:
        """Read them again, when the load is over."""

    def slot_fails(self) -> None:
        """Read nothing more of a slot that failed; safe to call without one."""

    def sampling_begins(self, variant: str, every_s: float) -> None:
        """Begin to read a variant's CPU time every so many seconds."""

    def sampling_ends(self) -> Sequence[tuple[float, float]]:
        """End it; give seconds since its beginning, and CPU seconds used by then."""

    def end(self) -> None:
        """Stop everything, all at once; what was started and logged is in its folders then."""


class ClientsHost(Protocol):
    """A host that makes load."""

    def ask(self, variant: str, url: str, questions: Questions) -> list[Response]:
        """Ask a variant's servers each of these once, as a load would; see `measure.preflight`."""

    def get_ready(self, variant: str) -> None:
        """Start what makes a variant's load, where it doesn't run yet. Raises GeneratorError."""

    def log_in(self, variant: str, order: LoadOrder) -> None:
        """Have an order's users log in, where they haven't. Raises GeneratorError."""

    def load(self, variant: str, order: LoadOrder) -> LoadOutcome:
        """Load a variant for one slot. Raises GeneratorError."""

    def end(self) -> None:
        """End what makes load."""


class Slot(NamedTuple):
    """What was measured in a slot, by those who load and those who serve."""

    load: LoadResult
    used: SlotUsage
    login_s: float = 0.0
    """How long users took to log in before it."""


@dataclass(frozen=True)
class PointTestbed:
    """Who serves and who loads; both may be one."""

    servers: ServersHost
    clients: ClientsHost

    def get_ready(self, variant: str, order: LoadOrder) -> float:
        """Have all there before any counter is read; return how long logins took.

        What a login costs is none of the load's.
        """
        self.clients.get_ready(variant)
        began = time.monotonic()
        if order.users is not None:
            try:
                with self._explain_failure(variant):
                    self.clients.log_in(variant, order)
            except LoginError as failed:
                failed.variant = variant
                raise
        return time.monotonic() - began

    def load(self, variant: str, order: LoadOrder) -> LoadResult:
        """Load a variant without reading anything. Raises GeneratorError, StackDied."""
        self.get_ready(variant, order)
        return self._load(variant, order).result

    def slot(self, variant: str, order: LoadOrder, tracing: Tracing | None) -> Slot:
        """Load a variant for a slot. Raises GeneratorError, StackDied."""
        self.servers.put_back(variant)
        login_s = self.get_ready(variant, order)
        self.servers.slot_begins(variant, tracing)
        try:
            loaded = self._load(variant, order)
            used = self.servers.slot_ends()
        finally:
            self.servers.slot_fails()
        readings = with_client(used.readings, loaded.use)
        return Slot(loaded.result, used._replace(readings=readings), login_s)

    def rest(self, variant: str, rest_s: float, tracing: Tracing) -> SlotUsage:
        """Leave a variant alone for so long, and give what its servers used. Raises StackDied."""
        self.servers.slot_begins(variant, tracing)
        try:
            time.sleep(rest_s)
            used = self.servers.slot_ends()
        finally:
            self.servers.slot_fails()
        self.servers.check_alive(variant)
        return used

    def end(self) -> None:
        """Let nothing of the round go on."""
        try:
            self.clients.end()
        finally:
            self.servers.end()

    def _load(self, variant: str, order: LoadOrder) -> LoadOutcome:
        with self._explain_failure(variant):
            return self.clients.load(variant, order)

    @contextmanager
    def _explain_failure(self, variant: str) -> Iterator[None]:
        """The death of a variant's servers explains a failure, and is raised instead."""
        try:
            yield
        except GeneratorError:
            self.servers.check_alive(variant)
            raise


TestbedOf = Callable[[PointPlan, Sequence[PlannedVariant]], PointTestbed]
"""Gives the testbed of a point, for its variants."""


def with_client(readings: Readings, use: ClientUse | None) -> Readings:
    """Return what the servers' host read, with what a host that only makes load read of itself."""
    if use is None:
        return readings
    stopped = readings.stopped or StoppedUse()
    return readings.replace(
        host=readings.host.replace(client=use.cpu),
        client_waiting=use.waiting,
        stopped=stopped.replace(client_s=use.stopped_s),
        silent_s=use.silent_s,
    )


class Surroundings(NamedTuple):
    """What can change a result and isn't part of the experiment."""

    machine: Machine
    """The one with the servers."""
    versions: dict[str, dict[str, str]]
    """By variant, by service: what the server says its version is."""
    load_generator: str
    hosts: dict[str, Machine]
    """By name, where there are several."""


class Backend(Protocol):
    """Where a run takes place: this machine, or hosts of a cluster."""

    def look(self, experiment: Experiment, catalogue: Catalogue) -> Surroundings:
        """Look at all that can change a result; raise UserError, OperationError."""

    def open(self, folder: RunFolder, exits: ExitStack) -> TestbedOf:
        """Set up what a run needs, until `exits` closes; give what gives the testbed of a point."""

    def recovers(self, lost: HostLost) -> str | None:
        """Put another host in the place of a lost one, and say so; None where that can't be."""
