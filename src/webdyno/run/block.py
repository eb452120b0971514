"""One block: a fresh start of all arms, the certificate, warm-ups, then slots in balanced order."""

import time
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random
from statistics import fmean
from typing import Literal

from webdyno.generator import Expectation, Generator, LoadOrder, Request
from webdyno.judge.validity import certificate as fairness
from webdyno.judge.variance import slots_per_arm
from webdyno.model.calibration import Ceiling
from webdyno.model.mistake import Trouble
from webdyno.model.records import BlockRecord, CertificateRecord, SlotRecord
from webdyno.probe import SlotProbe
from webdyno.run.certificate import ask
from webdyno.run.lab import Lab
from webdyno.run.order import block_order, block_rng
from webdyno.run.plan import ArmPlan
from webdyno.stack import RunningStack, StackDied, start_stack

Phase = Literal["warmup", "measure"]


def run_block(lab: Lab, number: int) -> bool:
    """Run one block; give False when it ended early and another one would be in vain.

    That is so when the certificate shows answers that can't be compared (no load is made then), and
    when a server died under load: both are on record. Servers that don't start raise Trouble.
    """
    began, began_at = time.monotonic(), datetime.now(UTC)
    rng = block_rng(lab.seed, lab.point.number, number)
    names = [arm.name for arm in lab.arms]
    order = block_order(names, slots_per_arm(lab.records, lab.experiment), rng)
    slots = _plan_slots(lab, order, rng)
    lab.watcher.block_begins(lab.point, number, len(slots))
    with ExitStack() as exits:
        starting = rng.sample(lab.arms, len(lab.arms))
        stacks = {arm.name: exits.enter_context(_start(lab, number, arm)) for arm in starting}
        block = _Block(lab, number, stacks)
        certificate = block.certify()
        lab.keep(certificate)
        if fairness.differences(certificate, names):
            return False
        generator = exits.enter_context(lab.new_generator())
        for position, (name, phase) in enumerate(slots):
            try:
                block.load(generator, position, name, phase)
            except StackDied as death:
                lab.keep_incident(number, name, death)
                return False
    ended = BlockRecord(
        block=number,
        order=order,
        started_at=began_at,
        took_s=time.monotonic() - began,
        ready_s={name: stack.ready_s for name, stack in stacks.items()},
    )
    lab.keep(ended)
    lab.watcher.block_ends(ended, lab.experiment, lab.records)
    return True


def _plan_slots(lab: Lab, order: list[str], rng: Random) -> list[tuple[str, Phase]]:
    """Put a warm-up of each arm, in an order of its own, before the slots that count."""
    names = [arm.name for arm in lab.arms]
    warmups = rng.sample(names, len(names)) if lab.experiment.measure.warmup_s > 0 else []
    return [(name, "warmup") for name in warmups] + [(name, "measure") for name in order]


def _start(lab: Lab, block: int, arm: ArmPlan) -> RunningStack:
    folder = lab.folder.block_folder(lab.point.number, block, arm.name)
    try:
        return start_stack(
            arm.stack,
            arm.knobs,
            arm.site,
            folder=folder,
            bench=lab.bench.with_server_cpus(arm.cpus),
            memory_bytes=arm.memory_bytes,
        )
    except Trouble as trouble:
        lab.keep_incident(block, arm.name, trouble)
        raise


@dataclass(frozen=True)
class _Block:
    """A block whose servers are up."""

    lab: Lab
    number: int
    stacks: dict[str, RunningStack]
    """By arm."""

    def certify(self) -> CertificateRecord:
        """Ask all arms the same before the load, where they speak HTTP."""
        timeout_s, dial = self.lab.experiment.load.timeout_s, self.lab.bench.client_socket
        return CertificateRecord(
            block=self.number,
            answers={
                arm.name: ask(self.stacks[arm.name].url, arm.certified, timeout_s, dial)
                for arm in self.lab.arms
                if arm.stack.protocol == "http"
            },
            settings={arm.name: self.stacks[arm.name].settings() for arm in self.lab.arms},
        )

    def load(self, generator: Generator, position: int, name: str, phase: Phase) -> None:
        """Load one arm for one slot, and keep what was measured; raise StackDied if it died."""
        self.lab.watcher.slot_begins(name, phase)
        started_at = datetime.now(UTC)
        with SlotProbe(name, self.stacks, self.lab.bench, generator.pid) as probe:
            result = generator.slot(self._order(position, name, phase))
        record = SlotRecord(
            block=self.number,
            slot=position,
            arm=name,
            phase=phase,
            started_at=started_at,
            load=result,
            servers=probe.servers(),
            readings=probe.readings().model_copy(update={"ceiling": self._ceiling(name)}),
        )
        self.lab.keep(record)
        self.lab.watcher.slot_ends(record)
        self.stacks[name].check_alive()

    def _ceiling(self, name: str) -> Ceiling | None:
        """Give what the client can do at most with answers like the arm's, where that is known."""
        calibration, experiment = self.lab.calibration, self.lab.experiment
        lengths = [expect.body_bytes for _, expect in self._asked(name)]
        known = [length for length in lengths if length is not None]
        calibrated = experiment.generator == "loadgen" and not experiment.load.think_s
        if calibration is None or not calibrated or len(known) < len(lengths):
            return None
        load = experiment.load
        body_bytes = fmean(known, load.shares(len(known)))
        return calibration.ceiling(body_bytes, load.connections, load.keepalive)

    def _asked(self, name: str) -> tuple[tuple[str, Expectation], ...]:
        (asked,) = (arm.asked for arm in self.lab.arms if arm.name == name)
        return asked

    def _order(self, position: int, name: str, phase: Phase) -> LoadOrder:
        measure = self.lab.experiment.measure
        url = self.stacks[name].url
        return LoadOrder(
            id=f"block {self.number} slot {position}",
            requests=tuple(Request(url + path, expect) for path, expect in self._asked(name)),
            load=self.lab.experiment.load,
            duration_s=measure.warmup_s if phase == "warmup" else measure.slot_s,
        )
