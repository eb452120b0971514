"""One block: a fresh start of all arms, the certificate, warm-ups, then slots in balanced order."""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

from webdyno.bench import Bench
from webdyno.generator import Generator, LoadOrder, Request
from webdyno.judge.evidence import gather
from webdyno.judge.validity import certificate as fairness
from webdyno.model.experiment import Experiment
from webdyno.model.mistake import Trouble
from webdyno.model.records import (
    BlockRecord,
    CertificateRecord,
    IncidentRecord,
    Record,
    SlotRecord,
)
from webdyno.probe import SlotProbe
from webdyno.run.certificate import ask
from webdyno.run.folder import RunFolder
from webdyno.run.order import block_order, block_rng
from webdyno.run.plan import ArmPlan
from webdyno.run.watcher import Watcher
from webdyno.stack import RunningStack, StackDied, start_stack

Phase = Literal["warmup", "measure"]


@dataclass
class Lab:
    """What every block of a run works with."""

    experiment: Experiment
    seed: int
    arms: Sequence[ArmPlan]
    bench: Bench
    new_generator: Callable[[], Generator]
    """Servers and load generator are both started anew in each block."""
    folder: RunFolder
    watcher: Watcher
    records: list[Record] = field(default_factory=list)
    """All that is on disk, in memory as well."""

    def keep(self, record: Record) -> None:
        """Write a record to disk at once, and remember it."""
        self.folder.append(record)
        self.records.append(record)


@dataclass(frozen=True)
class _Arm:
    """An arm whose servers are up."""

    plan: ArmPlan
    stack: RunningStack

    def requests(self) -> tuple[Request, ...]:
        return tuple(Request(self.stack.url + path, expect) for path, expect in self.plan.asked)


def run_block(lab: Lab, number: int) -> bool:
    """Run one block; give False when it ended early and another one would be in vain.

    That is so when the certificate shows answers that can't be compared (no load is made then), and
    when a server died under load: both are on record. Servers that don't start raise Trouble.
    """
    began, began_at = time.monotonic(), datetime.now(UTC)
    rng = block_rng(lab.seed, number)
    names = [arm.name for arm in lab.arms]
    order = block_order(names, lab.experiment.measure.slots_per_arm, rng)
    plan: list[tuple[str, Phase]] = [(name, "measure") for name in order]
    if lab.experiment.measure.warmup_s > 0:
        plan = [(name, "warmup") for name in rng.sample(names, len(names))] + plan
    lab.watcher.block_begins(number, len(plan))
    with ExitStack() as exits:
        arms = {
            arm.name: _start(lab, number, arm, exits) for arm in rng.sample(lab.arms, len(lab.arms))
        }
        certificate = _certify(lab, number, arms)
        lab.keep(certificate)
        if fairness.findings(gather([certificate]), names):
            return False
        generator = exits.enter_context(lab.new_generator())
        for position, (name, phase) in enumerate(plan):
            try:
                _slot(lab, generator, number, position, arms, name, phase)
            except StackDied as death:
                lab.keep(_incident(number, name, death))
                return False
    ended = BlockRecord(
        block=number,
        order=order,
        started_at=began_at,
        took_s=time.monotonic() - began,
        ready_s={name: arm.stack.ready_s for name, arm in arms.items()},
    )
    lab.keep(ended)
    lab.watcher.block_ends(ended, lab.records)
    return True


def _start(lab: Lab, block: int, arm: ArmPlan, exits: ExitStack) -> _Arm:
    folder = lab.folder.block_folder(block, arm.name)
    try:
        starting = start_stack(arm.stack, arm.knobs, arm.site, folder=folder, bench=lab.bench)
        return _Arm(arm, exits.enter_context(starting))
    except Trouble as trouble:
        lab.keep(_incident(block, arm.name, trouble))
        raise


def _certify(lab: Lab, block: int, arms: dict[str, _Arm]) -> CertificateRecord:
    timeout_s = lab.experiment.load.timeout_s
    return CertificateRecord(
        block=block,
        answers={
            plan.name: ask(arms[plan.name].stack.url, plan.asked, timeout_s) for plan in lab.arms
        },
        settings={plan.name: arms[plan.name].stack.settings() for plan in lab.arms},
    )


def _slot(
    lab: Lab,
    generator: Generator,
    block: int,
    position: int,
    arms: dict[str, _Arm],
    name: str,
    phase: Phase,
) -> None:
    arm, measure = arms[name], lab.experiment.measure
    order = LoadOrder(
        id=f"block {block} slot {position}",
        requests=arm.requests(),
        load=lab.experiment.load,
        duration_s=measure.warmup_s if phase == "warmup" else measure.slot_s,
    )
    lab.watcher.slot_begins(name, phase)
    stacks = {other: arms[other].stack for other in arms}
    started_at = datetime.now(UTC)
    with SlotProbe(name, stacks, lab.bench.split, generator.pid) as probe:
        result = generator.slot(order)
    record = SlotRecord(
        block=block,
        slot=position,
        arm=name,
        phase=phase,
        started_at=started_at,
        load=result,
        servers=probe.servers(),
        readings=probe.readings(),
    )
    lab.keep(record)
    lab.watcher.slot_ends(record)
    arm.stack.check_alive()


def _incident(block: int, arm: str, trouble: Trouble) -> IncidentRecord:
    return IncidentRecord(
        block=block,
        arm=arm,
        happened_at=datetime.now(UTC),
        what=str(trouble).splitlines()[0],
        log_tail=trouble.log_tail if isinstance(trouble, StackDied) else [],
    )
