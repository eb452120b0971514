"""Load generators that are commands for people: one process per slot, its output read back."""

import logging
import os
import re
import select
import signal
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from webdyno.core.debug_log import words_without_secrets
from webdyno.core.load import Load
from webdyno.core.load_result import (
    Client,
    Failures,
    KeepAliveResult,
    LoadResult,
    Requests,
    Times,
)
from webdyno.core.request import WrittenRequest
from webdyno.core.service import Need
from webdyno.core.text import SECRET
from webdyno.formats import Output
from webdyno.formats.facts import Facts, Tool
from webdyno.formats.text import NumberedLine, plain
from webdyno.host.children import ending_with_us, run_program
from webdyno.load.interface import Generator, GeneratorError, LoadOrder, Request, ServerResponse


class Unreadable(Exception):  # noqa: N818 (whoever ran the tool makes a message for people of it)
    """What a tool printed isn't the account of one run; the message says what is wrong with it."""


@dataclass(frozen=True)
class Run:
    """One run of a tool, with the figures without which it would be none."""

    requests: int
    """Requests that ended, failed ones included."""
    measured_s: float
    throughput_rps: float
    output: Output
    """Everything that it said."""


def read_run(tool: Tool, text: str, needed: Iterable[str] = ()) -> Run:
    """Read what a tool printed of its one run; raise Unreadable.

    `needed` are figures of `Output` that it always prints.
    """
    lines = [NumberedLine(number, plain(raw)) for number, raw in enumerate(text.splitlines(), 1)]
    facts = Facts(first_line=1, last_line=len(lines))
    for line in lines:
        if texts := tool.read(line.text):
            facts.add(line, texts)
    if facts.contradicted:
        raise Unreadable(f"it says different things about {', '.join(sorted(facts.contradicted))}")
    output = tool.output_of(facts)
    if output is None:
        raise Unreadable("it has no figures")
    if output.requests == 0 and output.throughput_rps is None:  # ab has none of nothing
        output = replace(output, throughput_rps=0.0)
    requests, measured_s, throughput_rps = output.requests, output.duration_s, output.throughput_rps
    missing = [
        name
        for name in ("requests", "duration_s", "throughput_rps", *needed)
        if getattr(output, name) is None
    ]
    if requests is None or measured_s is None or throughput_rps is None or missing:
        raise Unreadable(f"it doesn't report {', '.join(dict.fromkeys(missing))}")
    return Run(requests, measured_s, throughput_rps, output)


logger = logging.getLogger(__name__)

PATIENCE_S = 15.0
"""How long an instrument may overstay a slot's duration and its time-out."""

_VERSION = re.compile(r"(?<!\d)\d++(?:\.\d++)+")


@dataclass(frozen=True)
class Done:
    """An instrument that came to its end."""

    text: str
    """Everything that it printed."""
    exit_code: int
    took_s: float
    cpu_user_s: float
    cpu_sys_s: float

    def client(self, threads: int, *, busy_waits: bool = False) -> Client:
        """Return what the instrument used; its threads are taken for equally busy."""
        cpu_s = self.cpu_user_s + self.cpu_sys_s
        return Client(
            threads=threads,
            cpu_user_s=self.cpu_user_s,
            cpu_sys_s=self.cpu_sys_s,
            busy=min(cpu_s / self.took_s / threads, 1.0),
            busy_waits=busy_waits,
        )


class Instrument(ABC):
    """What is particular to an instrument; a subclass describes one."""

    name: ClassVar[str]
    """Its command."""
    package: ClassVar[str]
    """The package of Debian and Ubuntu that has it."""
    version_flag: ClassVar[str]
    """Makes it print its version, whatever its exit code."""
    reader: ClassVar[Tool]
    """Reads what it prints."""
    always_reported: ClassVar[tuple[str, ...]] = ()
    """Figures that it prints of every run, next to requests, duration and rate."""
    biases: ClassVar[tuple[str, ...]] = ()
    """What its figures leave out or add, whatever the server does."""
    protocol = "http"
    reports_times = False
    reports_windows = False

    @property
    def need(self) -> Need:
        return Need(command=[self.name], apt=self.package)

    def version(self) -> str:
        """Return its name and version; raise OperationError if it is missing."""
        said = run_program(
            [self.name, self.version_flag],
            within_s=10,
            install=f"{self.name} isn't installed; on Debian: apt-get install {self.package}",
        )
        number = _VERSION.search(said.stdout + said.stderr)
        return f"{self.name} {number[0]}" if number else self.name

    def new(self, cpus: Sequence[int], entry: Sequence[str] = ()) -> Generator:
        return _OncePerSlot(self, cpus, entry)

    @abstractmethod
    def fault(self, load: Load, requests: Sequence[WrittenRequest]) -> str | None:
        """Return what of a load the instrument can't do; None when it can do it all."""

    @abstractmethod
    def command(self, order: LoadOrder, cpus: int) -> list[str]:
        """Return the command line of one slot."""

    @abstractmethod
    def result(self, order: LoadOrder, run: Run, done: Done, cpus: int) -> LoadResult:
        """Return what it reported, in the words of the engine's contract."""


class _OncePerSlot:
    """Runs an instrument once per slot, pinned to `cpus`, in a session of its own."""

    def __init__(self, instrument: Instrument, cpus: Sequence[int], entry: Sequence[str]) -> None:
        self.name = instrument.name
        self._instrument = instrument
        self._cpus = cpus
        self._entry = entry

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing runs between slots."""

    @property
    def pid(self) -> int | None:
        """None: there is no process before the slot begins."""
        return None

    def log_in(self, order: LoadOrder) -> None:
        """Nobody does: `generator_fault` refuses it."""
        raise GeneratorError(f"{self.name} can't log in for {order.id}")

    def trace(self, order: LoadOrder) -> Iterator[ServerResponse]:
        """Nobody does: `generator_fault` refuses it."""
        raise GeneratorError(f"{self.name} can't trace {order.id}")

    def slot(self, order: LoadOrder) -> LoadResult:
        """Load a server for one slot."""
        its, cpus = self._instrument, len(self._cpus)
        pinned = ("taskset", "--cpu-list", ",".join(map(str, self._cpus)))
        leash = [*self._entry, *ending_with_us("KILL"), *pinned]
        patience_s = order.duration_s + order.load.timeout_s + PATIENCE_S
        done = _run([*leash, *its.command(order, cpus)], patience_s)
        try:
            run = read_run(its.reader, done.text, its.always_reported)
        except Unreadable as unreadable:
            end = " / ".join(done.text.strip().splitlines()[-3:])
            raise GeneratorError(
                f"{self.name} gave no result for {order.id} (exit code {done.exit_code}), "
                f"{unreadable}: {end}"
            ) from None
        return its.result(order, run, done, cpus)


def _run(words: Sequence[str], patience_s: float) -> Done:
    with tempfile.TemporaryFile() as printed:
        began = time.monotonic()
        process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        logger.debug("process %d runs %s", process.pid, words_without_secrets(words))
        ended = False
        try:
            descriptor = os.pidfd_open(process.pid)
            with os.fdopen(descriptor, "rb", buffering=0) as pidfd:
                ended = bool(select.select([pidfd], [], [], patience_s)[0])
        finally:
            if not ended:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        if not ended:
            raise GeneratorError(f"{words[0]} … did not end within {patience_s:.0f} s")
        took_s = time.monotonic() - began
        printed.seek(0)
        text = printed.read().decode(errors="replace")
    return Done(text, process.returncode, took_s, used.ru_utime, used.ru_stime)


def result_of(
    order: LoadOrder,
    run: Run,
    done: Done,
    client: Client,
    *,
    by_status: dict[str, int],
    failures: Failures,
    wrong: int = 0,
) -> LoadResult:
    """Return what every instrument reports of a slot; so many of its responses were wrong."""
    (request,) = order.requests
    return LoadResult(
        target=order.url + request.path,
        loop=order.load.loop,
        measured_s=run.measured_s,
        requests=Requests(completed=max(run.requests - wrong, 0)),
        by_status=by_status,
        failures=failures,
        keepalive=KeepAliveResult(requested=order.load.keepalive),
        throughput_rps=run.throughput_rps,
        service_time_us=printed_times(run.output),
        client=client,
        printed=done.text,
    )


def printed_times(output: Output) -> Times:
    """Return the distribution as printed, in microseconds."""

    def time_at(percent: float) -> float | None:
        return us(output.percentiles_ms.get(percent))

    return Times(
        mean=us(output.mean_ms),
        p50=time_at(50),
        p90=time_at(90),
        p99=time_at(99),
        max=us(output.max_ms),
    )


def statuses(requests: int, non_2xx: int) -> dict[str, int]:
    """Return the responses by status, as far as instruments distinguish them."""
    return {"2xx": requests - non_2xx} | ({"non-2xx": non_2xx} if non_2xx else {})


def us(ms: float | None) -> float | None:
    return None if ms is None else ms * 1000


def header_flags(request: Request) -> list[str]:
    """Return the headers of a request as ab and wrk take them."""
    return [word for name, value in request.headers.items() for word in ("-H", f"{name}: {value}")]


def whole_seconds(duration_s: float) -> int:
    """Return a length that the instruments take: whole seconds, one at least."""
    return max(1, round(duration_s))


def only_plain(load: Load, requests: Sequence[WrittenRequest]) -> str | None:
    """Return what none of the instruments can do."""
    if (paths := sum(request.stands_for for request in requests)) > 1:
        return f"asks for one path only, not {paths}"
    if load.protocol != "http":
        return f'is used for protocol = "http" only here, not "{load.protocol}"'
    request = requests[0]
    if request.message_kind:
        return "speaks no WebSocket, over which messages go"
    if request.method != "GET":
        return f"is requested GET only here, not {request.method}"
    if request.sha256 or request.contains:
        return "looks into no response: it knows no sha256 or contains"
    if any(SECRET.search(value) for value in {**load.headers, **request.headers}.values()):
        return "would show secrets (${env:…}) in its command line"
    if load.idle_connections or load.slow_readers or load.think_s:
        return "knows no idle_connections, slow_readers or think_s"
    if load.send_delay_budget_s or load.kernel_times:
        return "knows no send_delay_budget_s or kernel_times"
    if load.burst > 1 or load.rate_per_connection or load.connection_ramp_s:
        return "knows no burst, rate_per_connection or connection_ramp_s"
    return None


def only_closed(load: Load, requests: Sequence[WrittenRequest]) -> str | None:
    """Return what instruments with a closed loop can't do."""
    if load.loop == "open":
        return 'has a closed loop only; set load.loop = "closed" without rate_per_s'
    if load.keepalive not in ("always", "never"):
        return 'knows no number of requests per connection; load.keepalive is "always" or "never"'
    return only_plain(load, requests)
