"""The arms of a block while they are up: started, loaded, and what was measured put on record."""

import time
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext
from datetime import UTC, datetime
from statistics import fmean
from typing import Literal, Self, TypeVar

from webdyno.generator import Generator, GeneratorError, LoadOrder
from webdyno.model.calibration import Ceiling
from webdyno.model.headers import may_be_compressed
from webdyno.model.load_result import LoadResult
from webdyno.model.mistake import Trouble
from webdyno.model.records import RemedyRecord, SlotRecord
from webdyno.probe import Profiler, SlotProbe, SystemCalls, server_cpu
from webdyno.run.point import ArmBench, MeasuredPoint, PlannedArm
from webdyno.stack import RunningStack, StackDied, start_stack

PORT_TAKEN = "address already in use"
"""How the C library says it, and node as well."""

LOOK_S = 0.05
AT_REST = 0.02
"""Share of a CPU that servers at rest may use all together."""

Phase = Literal["warmup", "measure", "trial"]
Look = TypeVar("Look", Profiler, SystemCalls)
Stacks = Mapping[str, RunningStack]
"""The running servers, by arm."""


class RunningBlock:
    """A block's servers and load generators, until it ends."""

    def __init__(self, at: MeasuredPoint, number: int) -> None:
        self.at, self.number = at, number
        self.stacks: dict[str, RunningStack] = {}
        self._lives: dict[str, ExitStack] = {}
        self._generators: dict[ArmBench, Generator] = {}
        self._exits = ExitStack()

    def __enter__(self) -> Self:
        """Nothing is started yet."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the load generators, then all servers at once: each takes a tenth of a second."""
        for life in self._lives.values():
            self._exits.callback(life.close)
        for stack in self.stacks.values():
            self._exits.callback(stack.ask_to_stop)
        for generator in self._generators.values():
            self._exits.push(generator)
        self._exits.close()

    def start(self, arm: PlannedArm) -> None:
        """Start an arm's servers, anew where they run; raise Trouble where they don't start."""
        if (before := self._lives.pop(arm.name, None)) is not None:
            before.close()
        life = ExitStack()
        self.stacks[arm.name] = life.enter_context(start_arm(self.at, self.number, arm))
        self._lives[arm.name] = life

    def measure(
        self,
        position: int,
        arm: PlannedArm,
        phase: Phase,
        order: LoadOrder,
        tell: Callable[[SlotRecord], SlotRecord] = lambda record: record,
    ) -> SlotRecord:
        """Load one arm for one slot, and keep what was measured.

        `tell` adds to the record what the slot is for. Where the arm's servers died, that is put on
        record, and StackDied raised.
        """
        try:
            return self._measured(position, arm, phase, order, tell)
        except StackDied as death:
            self.at.keep_incident(self.number, arm.name, death)
            raise

    def _measured(
        self,
        position: int,
        arm: PlannedArm,
        phase: Phase,
        order: LoadOrder,
        tell: Callable[[SlotRecord], SlotRecord],
    ) -> SlotRecord:
        at, name, stack = self.at, arm.name, self.stacks[arm.name]
        generator = self._generator_of(name)
        at.progress.slot_begins(name, phase)
        started_at = datetime.now(UTC)
        with (
            # Calls cost more while they are counted, which would show in samples.
            self._looking(arm, Profiler, wanted=phase != "warmup") as profiler,
            self._looking(arm, SystemCalls, wanted=phase == "warmup") as system_calls,
            SlotProbe(name, self.stacks, at.benches[name].bench, generator.pid) as probe,
        ):
            result = put_load(generator, order, stack)
        record = tell(
            SlotRecord(
                block=self.number,
                slot=position,
                arm=name,
                phase=phase,
                started_at=started_at,
                load=result,
                servers=probe.servers(),
                readings=probe.readings().model_copy(update={"ceiling": _ceiling(at, arm)}),
                profile=profiler.profile.cpu_s if profiler else None,
                system_calls=system_calls.counts if system_calls else None,
            )
        )
        at.keep(record)
        if profiler:
            at.folder.add_stacks(name, profiler.profile.stacks)
        at.progress.slot_ends(record)
        stack.check_alive()
        return record

    def _looking(
        self, arm: PlannedArm, look: type[Look], *, wanted: bool
    ) -> AbstractContextManager[Look | None]:
        """Give what looks at the servers' CPUs meanwhile, if that was asked for."""
        if not (self.at.experiment.profile and wanted):
            return nullcontext()
        split = self.at.benches[arm.name].bench.split
        return look(split.servers, split.rest)

    def _generator_of(self, arm: str) -> Generator:
        """Give the load generator of the arm's bench, started before its first slot."""
        bench = self.at.benches[arm]
        if bench not in self._generators:
            self._generators[bench] = bench.new_generator().__enter__()
        return self._generators[bench]


def start_arm(at: MeasuredPoint, block: int, arm: PlannedArm) -> RunningStack:
    """Start an arm anew; raise Trouble where it doesn't start, which is put on record.

    Somebody may have taken a port between its choice and the server's start: then others are drawn.
    """
    try:
        return _start(at, block, arm)
    except Trouble as trouble:
        if PORT_TAKEN not in str(trouble).lower():
            at.keep_incident(block, arm.name, trouble)
            raise
    what = f"arm {arm.name}: somebody had taken its port; it was started with another one"
    at.keep_remedy(
        RemedyRecord(block=at.finished_blocks, rule="port-taken", arm=arm.name, what=what)
    )
    try:
        return _start(at, block, arm)
    except Trouble as trouble:
        at.keep_incident(block, arm.name, trouble)
        raise


def _start(at: MeasuredPoint, block: int, arm: PlannedArm) -> RunningStack:
    return start_stack(
        arm.stack,
        arm.knobs,
        arm.site,
        folder=at.folder.block_folder(at.point.number, block, arm.name),
        bench=at.benches[arm.name].bench.with_server_cpus(arm.cpus),
        memory_bytes=arm.memory_bytes,
    )


def wait_for_rest(stacks: Collection[RunningStack], most_s: float) -> bool:
    """Wait until servers rest, all of them together; False where they don't in time."""
    deadline = time.monotonic() + most_s
    while time.monotonic() < deadline:
        before_s = sum(server_cpu(stack).cpu_s for stack in stacks)
        time.sleep(LOOK_S)
        if sum(server_cpu(stack).cpu_s for stack in stacks) - before_s <= AT_REST * LOOK_S:
            return True
    return False


def load_order(
    arm: PlannedArm,
    stack: RunningStack,
    name: str,
    duration_s: float,
    *,
    lead_in_s: float = 0.0,
    part_s: float | None = None,
) -> LoadOrder:
    """Give the order, by a name of its own, for one stretch of an arm's load."""
    return LoadOrder(
        id=name,
        requests=tuple(asked.sent_to(stack.url, arm.load) for asked in arm.asked),
        load=arm.load,
        duration_s=duration_s,
        lead_in_s=lead_in_s,
        part_s=part_s,
    )


def put_load(generator: Generator, order: LoadOrder, stack: RunningStack) -> LoadResult:
    """Load a stack; its death explains a failure of the load generator, and is raised instead."""
    try:
        return generator.slot(order)
    except GeneratorError:
        stack.check_alive()
        raise


def _ceiling(at: MeasuredPoint, arm: PlannedArm) -> Ceiling | None:
    """Give what the client can do at most with answers like the arm's, where that is known."""
    load, calibration = arm.load, at.benches[arm.name].calibration
    lengths = [asked.expect.body_bytes for asked in arm.asked]
    known = [length for length in lengths if length is not None]
    plain = load.protocol == "http" and not load.think_s
    calibrated = at.experiment.generator == "loadgen" and plain
    if any(may_be_compressed(asked.headers or {}) for asked in arm.asked) or len(known) < len(
        lengths
    ):
        return None
    if calibration is None or not calibrated:
        return None
    body_bytes = fmean(known, arm.shares)
    return calibration.ceiling(body_bytes, load.connections, load.keepalive)
