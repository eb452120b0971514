"""The variants of a round while they are up.

Started, loaded, and what was measured put on record.
"""

import logging
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from types import TracebackType
from typing import Self
from uuid import uuid4

from webdyno.comparison import question_of
from webdyno.core.errors import OperationError
from webdyno.core.experiment import State
from webdyno.core.files import make_folder, open_given_inside, reading, writing
from webdyno.core.format import duration, last_lines
from webdyno.core.looks import SlotSettings
from webdyno.core.records import AdjustmentRecord, Phase, SlotRecord
from webdyno.core.request import may_be_compressed
from webdyno.core.testbed import Ceiling
from webdyno.host.children import in_session
from webdyno.host.users import ServerUser, home_of, open_log
from webdyno.load.interface import GeneratorError, LoadOrder
from webdyno.measure.backend import LinkCut, StartedVariant, Tracing
from webdyno.measure.planned import PlannedVariant
from webdyno.measure.point import RunningPoint, rng_of
from webdyno.servers.output import IN_USE, end_of, refusal_in
from webdyno.servers.service import StackDied

logger = logging.getLogger(__name__)

SHOWN_LINES = 15

SILENT_LIMIT_S = 1.0
"""Ten heartbeats are sent in that time, and the kernel sends a lost one again after 0.2 s."""

LOGIN_S = 1.0
"""Length of the load that users log in for; nothing is loaded."""

SEED_BITS = 32
"""The engine counts its threads in the bits above."""


class OutOfTime(Exception):  # noqa: N818
    """A round can't go on: what comes next would end after the time that is the limit."""


class RunningRound:
    """A round's servers and load generators, until it ends.

    The user's own things are in the state that every round begins with, and are put back after it.
    """

    def __init__(self, point: RunningPoint, number: int) -> None:
        self.point, self.number = point, number
        self.up: dict[str, StartedVariant] = {}
        """What is known of the variants that are up."""
        self._loaded: set[str] = set()
        """Variants that were loaded since they were started: their users are logged in."""
        self._starts: dict[str, str] = {}
        """By variant: a name for its latest start, at which its users log in."""
        self._exits = ExitStack()

    def __enter__(self) -> Self:
        point = self.point
        log = point.folder.round_log(point.number, self.number, "state.log")
        self._exits.enter_context(in_state(point.experiment.state, log, point.commands_user))
        self._exits.callback(point.testbed.end)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._exits.__exit__(kind, error, trace)

    def start(self, variant: PlannedVariant) -> StartedVariant:
        """Start a variant's servers, again where they run; raise OperationError.

        Where somebody has taken a port meanwhile, others are drawn. Failures are put on record.
        """
        point = self.point
        try:
            return self._start(variant)
        except OperationError as error:
            is_by_other = isinstance(error, StackDied) and error.is_by_other_port
            if is_by_other or IN_USE not in str(error).lower():
                # The engine asks whether servers are ready; its own end is no variant's.
                whose = None if isinstance(error, GeneratorError) else variant.name
                point.keep_incident(self.number, whose, error)
                raise
        what = (
            f"variant {variant.name}: an address was in use; it was started again with another port"
        )
        point.keep_adjustment(
            AdjustmentRecord(
                round=point.finished_rounds, rule="port-taken", variant=variant.name, what=what
            )
        )
        try:
            return self._start(variant)
        except OperationError as error:
            point.keep_incident(self.number, variant.name, error)
            raise

    def _start(self, variant: PlannedVariant) -> StartedVariant:
        folder = self.point.folder.round_folder(self.point.number, self.number, variant.name)
        logger.debug("round %d: starts %s, with its logs in %s", self.number, variant.name, folder)
        self._starts[variant.name] = uuid4().hex
        self._loaded.discard(variant.name)
        began = time.monotonic()
        self.up[variant.name] = up = self.point.testbed.servers.start(variant.name, folder)
        if self.point.starts_first(variant):  # time is that of servers which are up
            self.point.watch.leave_out(time.monotonic() - began)
        return up

    def get_ready(self, variant: PlannedVariant) -> None:
        """Have all there that loads a variant which was just started, its users logged in."""
        order = self.order(variant, f"log-in of {variant.name}", LOGIN_S)
        self.point.report_logins(variant, self.point.testbed.get_ready(variant.name, order))

    def waits_for_rest(self, most_s: float) -> bool:
        """Wait until all servers rest; False where they don't in time."""
        return self.point.testbed.servers.waits_for_rest(most_s)

    def order(
        self,
        variant: PlannedVariant,
        name: str,
        duration_s: float,
        *,
        ramp_up_s: float = 0.0,
        window_s: float | None = None,
        turn: int = 0,
    ) -> LoadOrder:
        """Return the order, by a name of its own, for one stretch of a variant's load.

        All that is random in it is drawn again for each round, and for each `turn` of a variant: so
        chance is a part of what rounds scatter by. All variants have the same in the same turn.
        """
        up, point = self.up[variant.name], self.point
        rng = rng_of(point.experiment.measure.seed, point.number, self.number, turn)
        users = None
        if variant.users:
            # Sessions are a part of what is put back.
            start = self._starts[variant.name] + (name if variant.resets else "")
            users = replace(variant.users, key=start)
        return LoadOrder(
            id=name,
            url=up.url,
            requests=variant.asked,
            load=variant.load,
            duration_s=duration_s,
            ramp_up_s=ramp_up_s,
            window_s=window_s,
            seed=rng.getrandbits(SEED_BITS),
            users=users,
            allow_remote=up.is_elsewhere,
        )

    def warm_up_in_bursts(self, variant: PlannedVariant, times: SlotSettings) -> None:
        """Load a variant in bursts, with pauses, as each round does; nothing is kept of it."""
        for burst, load_s in enumerate(times.warmup_loads_s(variant.name)):
            order = self.order(variant, f"warm-up of {variant.name}, burst {burst}", load_s)
            self.point.testbed.load(variant.name, order)
            time.sleep(times.pause_s(variant.name))

    def measure(
        self,
        position: int,
        variant: PlannedVariant,
        phase: Phase,
        order: LoadOrder,
        complete: Callable[[SlotRecord], SlotRecord] = lambda record: record,
        *,
        may_die: bool = False,
    ) -> SlotRecord:
        """Load one variant for one slot, and keep what was measured.

        `complete` adds to the record what the slot is for. Raises StackDied, which is put on record
        unless servers `may_die`, and OutOfTime where it can't end within a limit.
        """
        takes_s = 0.0 if order.count else order.load_s  # of a number of requests nobody knows
        if variant.name not in self._loaded or variant.resets:
            takes_s += self.point.logins_s.get(variant.name, 0.0)
        if self.point.left_s < takes_s:
            raise OutOfTime
        with self.deaths_on_record(variant):
            record = self._measure_slot(position, variant, phase, order, complete)
            if not may_die:
                self.point.testbed.servers.check_alive(variant.name)
        return record

    @contextmanager
    def deaths_on_record(self, variant: PlannedVariant) -> Iterator[None]:
        """Put on record that a variant's servers died inside, where they do."""
        try:
            yield
        except StackDied as death:
            self.point.keep_incident(self.number, variant.name, death)
            raise

    def _measure_slot(
        self,
        position: int,
        variant: PlannedVariant,
        phase: Phase,
        order: LoadOrder,
        complete: Callable[[SlotRecord], SlotRecord],
    ) -> SlotRecord:
        point, name = self.point, variant.name
        point.progress.slot_begins(name, phase)
        logger.debug("slot %d of round %d: %s, %s", position, self.number, name, phase)
        started_at = datetime.now(UTC)
        load, used, login_s = point.testbed.slot(name, order, self.tracing(phase))
        self._loaded.add(name)
        point.report_logins(variant, login_s)
        refused = bool(load.all_of_it.failures.status)
        logs = point.folder.round_folder(point.number, self.number, name)
        record = complete(
            SlotRecord(
                round=self.number,
                slot=position,
                variant=name,
                phase=phase,
                started_at=started_at,
                load=load,
                servers=used.servers,
                readings=used.readings.replace(ceiling=ceiling_of(point, variant)),
                profile=used.profile.cpu_s if used.profile else None,
                functions=used.profile.functions_s if used.profile else None,
                system_calls=used.system_calls,
                instructions=used.instructions.instructions if used.instructions else None,
                uncounted=used.instructions.fault if used.instructions else "",
                refusal=refusal_in(logs) if refused else "",
            )
        )
        point.keep(record)
        if used.profile:
            point.folder.add_stacks(name, used.profile.stacks)
        point.progress.slot_ends(record)
        if (silent_s := used.readings.silent_s or 0.0) > SILENT_LIMIT_S:
            raise LinkCut(
                f"the servers' host gave the client's no sign of life for {duration(silent_s)}: "
                "the network between them was cut, or one of them stalled"
            )
        return record

    def tracing(self, phase: Phase) -> Tracing | None:
        """Return what of the servers is looked at meanwhile, if that was requested."""
        experiment = self.point.experiment
        if phase == "measure" and question_of(experiment).asks_what_blocks:
            return "blocked"
        if not experiment.profile:
            return "instructions" if experiment.counts_instructions and phase == "measure" else None
        if phase == "wake-up":
            return None
        return "calls" if phase == "warmup" else "samples"


def ceiling_of(point: RunningPoint, variant: PlannedVariant) -> Ceiling | None:
    """Return the client's ceiling with responses like the variant's, where that is known."""
    load, calibration = variant.load, point.calibrations[variant.name]
    lengths = [asked.expect.body_bytes for asked in variant.asked]
    known = [length for length in lengths if length is not None]
    plain = load.protocol == "http" and not load.think_s and variant.users is None
    calibrated = point.experiment.generator == "loadgen" and plain
    compressed = any(may_be_compressed(asked.headers or {}) for asked in variant.asked)
    if compressed or len(known) < len(lengths) or calibration is None or not calibrated:
        return None
    body_bytes = fmean(known, variant.shares)
    return calibration.ceiling(body_bytes, load.connections, load.keepalive)


@contextmanager
def in_state(state: State, log: Path, user: ServerUser | None) -> Iterator[None]:
    """Run the commands before, and in any case those after; raise OperationError.

    They run in the folder that webdyno was called in, as `user`, and write to `log`.
    """

    def run_all(key: str, commands: Sequence[str]) -> None:
        for command in commands:
            _run(key, command, state.within_s, log, user)

    run_all("before_round", state.before_round)
    try:
        yield
    except BaseException:
        with suppress(OperationError):  # what failed first is what has to be reported
            run_all("after_round", state.after_round)
        raise
    run_all("after_round", state.after_round)


def _run(key: str, command: str, within_s: float, log: Path, user: ServerUser | None) -> None:
    with writing(log):
        make_folder(log.parent)
    with open_log(log, None) as output:
        output.write(f"{key}: {command}\n".encode())
        output.flush()
        words = ["sh", "-c", command]
        environment = _environment(user) if user else None
        # Nothing that it started in the background outlives it.
        with in_session(words, output=output, user=user, environment=environment) as process:
            try:
                code = process.wait(within_s)
            except subprocess.TimeoutExpired:
                raise OperationError(
                    f"state.{key}: {command!r} did not end within {within_s:g} s (state.within_s); "
                    f"what it said is in {log}"
                ) from None
    if code != 0:
        raise OperationError(
            f"state.{key}: {command!r} ended with exit code {code}; the end of {log}:\n{_end(log)}"
        )


def _environment(user: ServerUser) -> dict[str, str]:
    """Return the variables of another user's commands; those of our shell may hold secrets."""
    path, name = os.environ.get("PATH", os.defpath), user.name
    return {"PATH": path, "HOME": str(home_of(user)), "USER": name, "LOGNAME": name}


def _end(log: Path) -> str:
    """Return the last lines of a log; whoever wrote it may have put a link there."""
    with reading(log), open_given_inside(log) as file:
        return last_lines(end_of(file).decode(errors="replace"), SHOWN_LINES)
