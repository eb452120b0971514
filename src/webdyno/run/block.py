"""One block: a fresh start of all arms, the certificate, warm-ups, then slots in balanced order."""

import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from random import Random
from statistics import fmean
from typing import Literal, NamedTuple

from webdyno.generator import Generator, GeneratorError, LoadOrder
from webdyno.judge import Stop
from webdyno.judge.settings import slot_settings, slots_per_arm
from webdyno.judge.validity import certificate as fairness
from webdyno.model.calibration import Ceiling
from webdyno.model.headers import may_be_compressed
from webdyno.model.load_result import LoadResult
from webdyno.model.mistake import Trouble
from webdyno.model.pilot import SlotSettings
from webdyno.model.records import BlockRecord, CertificateRecord, RemedyRecord, SlotRecord
from webdyno.probe import SlotProbe, server_cpu
from webdyno.run.certificate import ask
from webdyno.run.point import MeasuredPoint, PlannedArm
from webdyno.run.state import in_state
from webdyno.run.unlike import with_differences
from webdyno.stack import RunningStack, StackDied, start_stack

PORT_TAKEN = "address already in use"
"""How the C library says it, and node as well."""

LOOK_S = 0.05
AT_REST = 0.02
"""Share of a CPU that servers at rest may use all together."""

LONGEST_COUNT_S = 60.0
"""The longest that a slot takes that a number of requests ends, unless somebody says."""

Phase = Literal["warmup", "measure"]
Stacks = Mapping[str, RunningStack]
"""The running servers, by arm."""


class PlannedSlot(NamedTuple):
    """One stretch of load on one arm."""

    position: int
    """In the block, from 0."""
    arm: PlannedArm
    phase: Phase


def run_block(at: MeasuredPoint, number: int) -> None:
    """Run one block; whatever fails is put on record.

    The point stops when the certificate shows answers that can't be compared (no load is made then)
    and when a server died under load. Servers that don't start raise Trouble, a load generator that
    fails GeneratorError.
    """
    began, began_at = time.monotonic(), datetime.now(UTC)
    rng = block_rng(at.experiment.measure.seed, at.point.number, number)
    names = [arm.name for arm in at.arms]
    order = block_order(names, slots_per_arm(at.records, at.experiment), rng)
    times = slot_settings(at.records, at.experiment)
    slots = plan_slots(at.arms, order, times, rng)
    at.progress.block_begins(at.point, number, len(slots))
    stacks: dict[str, RunningStack] = {}
    with ExitStack() as exits:
        exits.enter_context(prepared(at, number))
        for arm in rng.sample(at.arms, len(at.arms)):
            stacks[arm.name] = exits.enter_context(start_arm(at, number, arm))
        certificate = _certify(at, number, stacks)
        at.keep(certificate)
        if differences := fairness.differences(certificate, at.experiment):
            at.keep_stop(Stop("different-answers", differences[0].what))
            return
        exits.callback(_ask_to_stop, stacks)
        generators = {
            it: exits.enter_context(it.new_generator()) for it in dict.fromkeys(at.benches.values())
        }
        rest_s = times.rest_s
        for slot in slots:
            generator = generators[at.benches[slot.arm.name]]
            if rest_s and not wait_for_rest(stacks.values(), rest_s):
                rest_s = 0.0  # what they do then isn't left of their load
            try:
                _measure(at, number, slot, times, stacks, generator)
            except StackDied as death:
                at.keep_incident(number, slot.arm.name, death)
                at.has_stopped = True
                return
            except GeneratorError as failure:
                at.keep_incident(number, None, failure)
                raise
    ended = BlockRecord(
        block=number,
        order=order,
        started_at=began_at,
        took_s=time.monotonic() - began,
        ready_s={name: stack.ready_s for name, stack in stacks.items()},
    )
    at.keep(ended)
    at.progress.block_ends(ended, at.experiment, at.records)


def prepared(at: MeasuredPoint, number: int) -> AbstractContextManager[None]:
    """Put the user's own things into the state that every block begins with, and back after it."""
    log = at.folder.block_log(at.point.number, number, "state.log")
    return in_state(at.experiment.state, log)


def block_rng(seed: int | None, point: int, block: int) -> Random:
    """Give the random source of one block, so that a resumed run draws what it would have drawn."""
    return Random(f"{seed}/{point}/{block}")


def block_order(arms: Sequence[str], slots_per_arm: int, rng: Random) -> list[str]:
    """Give the arm of each slot of a block.

    Each arm gets `slots_per_arm` slots (an even number), and the mean position of its slots within
    the block is the same for all arms. Two arms go ABBA: a drift that is linear over the block then
    weighs equally on both. More arms take turns in random order, every second round reversed. Which
    arm begins is drawn (randomised multiple interleaved trials: Abedi & Brecht, ICPE 2017).
    """
    if slots_per_arm % 2:
        raise ValueError("slots_per_arm must be even for a balanced order")
    order: list[str] = []
    for _ in range(slots_per_arm // 2):
        there = rng.sample(list(arms), len(arms))
        order += there + there[::-1]
    return order


def plan_slots(
    arms: Sequence[PlannedArm], order: Sequence[str], times: SlotSettings, rng: Random
) -> list[PlannedSlot]:
    """Put warm-ups, in an order of their own, before the slots that count.

    A warm-up that is no longer than the arm's lead-in is that of its first slot. Longer ones are
    slots of their own, since costs per request are counted over lead-ins as well: those of an arm
    that warms up aren't what is measured.
    """
    by_name = {arm.name: arm for arm in arms}
    phases: list[tuple[PlannedArm, Phase]] = [
        (arm, "warmup")
        for arm in rng.sample(arms, len(arms))
        if times.warmup_s[arm.name] > _lead_in_s(arm, times)
    ]
    phases += [(by_name[name], "measure") for name in order]
    return [PlannedSlot(place, arm, phase) for place, (arm, phase) in enumerate(phases)]


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


def _certify(at: MeasuredPoint, block: int, stacks: Stacks) -> CertificateRecord:
    """Ask all arms the same before the load, where they speak HTTP."""
    answers = {
        arm.name: ask(
            stacks[arm.name].url,
            arm.certified,
            arm.load,
            at.benches[arm.name].bench.client_socket,
            at.experiment.ignore,
        )
        for arm in at.arms
        if arm.stack.protocol == "http"
    }
    return CertificateRecord(
        block=block,
        answers=with_differences(answers),
        settings={arm.name: stacks[arm.name].settings() for arm in at.arms},
        ran_before=[arm.name for arm in at.arms if arm.stack.runs_already],
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


def _ask_to_stop(stacks: Stacks) -> None:
    """Have all servers stop at once: each takes a tenth of a second."""
    for stack in stacks.values():
        stack.ask_to_stop()


def _measure(
    at: MeasuredPoint,
    block: int,
    slot: PlannedSlot,
    times: SlotSettings,
    stacks: Stacks,
    generator: Generator,
) -> None:
    """Load one arm for one slot, and keep what was measured; raise StackDied if it died."""
    name, stack = slot.arm.name, stacks[slot.arm.name]
    at.progress.slot_begins(name, slot.phase)
    started_at = datetime.now(UTC)
    with SlotProbe(name, stacks, at.benches[name].bench, generator.pid) as probe:
        result = put_load(generator, _slot_order(at, block, slot, times, stack), stack)
    record = SlotRecord(
        block=block,
        slot=slot.position,
        arm=name,
        phase=slot.phase,
        started_at=started_at,
        load=result,
        servers=probe.servers(),
        readings=probe.readings().model_copy(update={"ceiling": _ceiling(at, slot.arm)}),
    )
    at.keep(record)
    at.progress.slot_ends(record)
    stack.check_alive()


def _slot_order(
    at: MeasuredPoint, block: int, slot: PlannedSlot, times: SlotSettings, stack: RunningStack
) -> LoadOrder:
    name, arm = f"block {block} slot {slot.position}", slot.arm
    if slot.phase == "warmup":
        return load_order(arm, stack, name, times.warmup_s[arm.name])
    if arm.load.requests is not None:
        longest_s = at.experiment.measure.slot_s or LONGEST_COUNT_S
        return replace(load_order(arm, stack, name, longest_s), count=arm.load.requests)
    return load_order(arm, stack, name, times.window_s, lead_in_s=_lead_in_s(arm, times))


def _lead_in_s(arm: PlannedArm, times: SlotSettings) -> float:
    """Give the lead-in of an arm's slots; those that a number of requests ends have none."""
    return 0.0 if arm.load.requests is not None else times.lead_in_s[arm.name]


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
