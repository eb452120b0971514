"""A point of an experiment while it is being measured: what every block there works with."""

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol

from webdyno.bench import Bench
from webdyno.definitions import Catalogue
from webdyno.generator import Generator
from webdyno.judge import Stop, decide
from webdyno.judge.league import is_look
from webdyno.judge.measured import Measured
from webdyno.judge.race import still_racing
from webdyno.judge.remedies import due_remedy
from webdyno.model.calibration import Calibration
from webdyno.model.experiment import Arm, Experiment
from webdyno.model.format import duration
from webdyno.model.knob import KnobValue
from webdyno.model.load import Load
from webdyno.model.mistake import Trouble
from webdyno.model.point import Point, plan_points
from webdyno.model.records import (
    BlockRecord,
    IncidentRecord,
    PilotRecord,
    Record,
    RemedyRecord,
    SlotRecord,
    StopRecord,
)
from webdyno.model.site import Site
from webdyno.model.stack import Stack
from webdyno.run.asked import Asked, asked_for, secrets_of
from webdyno.run.folder import RunFolder
from webdyno.run.state import in_state
from webdyno.stack import StackDied

MOST_CERTIFIED = 20
"""Paths whose answers are written down in each block, of each arm."""


@dataclass(frozen=True)
class PlannedArm:
    """One arm with everything that the experiment names looked up, to be started in every block."""

    name: str
    stack: Stack
    knobs: dict[str, KnobValue]
    site: Site
    load: Load
    """What the clients do with it."""
    asked: tuple[Asked, ...]
    """What the load asks for, with the right answers."""
    secrets: frozenset[str]
    """What of it nothing on disk may show."""
    memory_bytes: int | None
    cpus: float | None

    @property
    def certified(self) -> tuple[Asked, ...]:
        """What the certificate asks for: all of it, or of very many paths some, spread evenly."""
        step = -(-len(self.asked) // MOST_CERTIFIED)
        return self.asked[::step]

    @property
    def shares(self) -> list[float]:
        """How often each is asked for, as shares that add up to 1."""
        if self.load.zipf is not None:
            return self.load.shares(len(self.asked))
        total = sum(asked.weight for asked in self.asked)
        return [asked.weight / total for asked in self.asked]


def plan_arms(experiment: Experiment, catalogue: Catalogue) -> list[PlannedArm]:
    """Look everything up that an experiment names, in the experiment's order of arms."""
    return [_plan_arm(name, arm, experiment, catalogue) for name, arm in experiment.arms.items()]


def arms_of_all_points(experiment: Experiment, catalogue: Catalogue) -> list[PlannedArm]:
    """Give each arm once for each stack and site that it has at any point."""
    arms = [
        arm for plan in plan_points(experiment) for arm in plan_arms(plan.experiment, catalogue)
    ]
    return list({(arm.name, arm.stack.name, arm.site.name): arm for arm in arms}.values())


def _plan_arm(name: str, arm: Arm, experiment: Experiment, catalogue: Catalogue) -> PlannedArm:
    site, load = catalogue.site(experiment.site_of(name)), experiment.load_of(name)
    requests = experiment.requests_of(name)
    asked = asked_for(requests, load, site, os.environ)
    secrets = frozenset(secrets_of(requests, load, os.environ))
    stack = catalogue.stack(arm.stack)
    knobs = experiment.knobs_of(name)
    return PlannedArm(name, stack, knobs, site, load, asked, secrets, arm.memory, arm.cpus)


class Progress(Protocol):
    """Is told of each step of a run as it happens, to show it."""

    def pilot_begins(self, point: Point, arm: str) -> None:
        """An arm is looked at alone."""

    def pilot_ends(self, record: PilotRecord) -> None:
        """The times that an arm needs were found, and are on disk."""

    def block_begins(self, point: Point, block: int, slots: int) -> None:
        """A block with that many slots, warm-ups included, starts its servers."""

    def slot_begins(self, arm: str, phase: str) -> None:
        """An arm comes under load."""

    def slot_ends(self, record: SlotRecord) -> None:
        """A slot was measured and is on disk."""

    def block_ends(self, block: BlockRecord, experiment: Experiment, records: list[Record]) -> None:
        """A block is complete; experiment and records are those of its point."""

    def notice(self, text: str) -> None:
        """Something happened that the user should read."""


@dataclass(frozen=True, eq=False)
class ArmBench:
    """Where an arm runs, and what makes its load there; arms that run alike share one."""

    bench: Bench
    new_generator: Callable[[], Generator]
    """Servers and load generator are both started anew in each block."""
    calibration: Calibration | None = None
    """What the client can do at most on this bench, where that was measured."""


@dataclass
class MeasuredPoint:
    """The experiment at a point, where it runs, what makes its load, what was measured so far."""

    point: Point
    experiment: Experiment
    """As it is at this point."""
    arms: Sequence[PlannedArm]
    benches: Mapping[str, ArmBench]
    """By arm."""
    folder: RunFolder
    progress: Progress
    records: list[Record] = field(default_factory=list)
    """All of this point that is on disk, in memory as well."""
    used_s: float = 0.0
    """How much of its share of the time budget is used up."""
    has_stopped: bool = False
    """Whether nothing more is measured here in this session."""
    _patience_told: bool = field(default=False, init=False)
    _racing: tuple[object, list[str]] = field(default=(None, []), init=False)
    """Who is still in a race, and as of when."""

    @property
    def finished_blocks(self) -> int:
        """How many blocks came to their end."""
        return sum(isinstance(record, BlockRecord) for record in self.records)

    @property
    def failed(self) -> set[str]:
        """Name the arms that failed, where the run goes on without them."""
        incidents = (it for it in self.records if isinstance(it, IncidentRecord))
        return {it.arm for it in incidents if it.arm is not None and self.experiment.spares_arms}

    def goes_on_without(self, failed: Collection[str]) -> bool:
        """Whether a run goes on when these have failed; all but leagues need their baseline."""
        baseline = next(iter(self.experiment.arms))
        return bool(failed) and (self.experiment.is_league or baseline not in failed)

    def racing(self) -> list[PlannedArm]:
        """Give the arms of the next block: all, or those that are still in the race."""
        asof = (self.finished_blocks, self.failed)
        if self._racing[0] != asof:
            self._racing = (asof, self._still_racing())
        return [arm for arm in self.arms if arm.name in self._racing[1]]

    def _still_racing(self) -> list[str]:
        known, names = self._racing
        blocks = len(Measured.of(self.records).blocks)
        if known and self.experiment.is_league and not is_look(blocks, self.experiment):
            return [name for name in names if name not in self.failed]
        return still_racing(self.records, self.experiment)

    def stops(self) -> bool:
        """Tell whether another block would be in vain or isn't needed; put on record why."""
        if not self.has_stopped and (stop := decide(self.records, self.experiment, self.used_s)):
            self.keep_stop(stop)
        if not self.has_stopped:
            self._tell_patience()
        return self.has_stopped

    def _tell_patience(self) -> None:
        measure = self.experiment.measure
        if self._patience_told or measure.patience == 1 or self.used_s < measure.budget_s:
            return
        self._patience_told = True
        self.progress.notice(
            f"the ratio is hard to tell here: it goes on beyond {duration(measure.budget_s)}, for "
            f"up to {duration(measure.patience * measure.budget_s)} in all; Ctrl-C ends it with "
            "what is known by then"
        )

    def remedy(self) -> None:
        """Carry out what the blocks so far ask for, tell it, and put it on record."""
        if not self.has_stopped and (due := due_remedy(self.records, self.experiment, self.used_s)):
            self.keep_remedy(due)

    def keep_remedy(self, remedy: RemedyRecord) -> None:
        """Tell what was mended, and put it on record."""
        self.keep(remedy)
        anew = "; the blocks before it don't count" if remedy.anew else ""
        self.progress.notice(f"{remedy.what}{anew}")

    def allow(self, more_s: float) -> None:
        """Grant so much time from now on, whatever was used and for whatever reason it stopped."""
        measure = self.experiment.measure.model_copy(
            update={"budget_s": self.used_s + more_s, "patience": 1.0}
        )
        self.experiment = self.experiment.model_copy(update={"measure": measure})
        self.has_stopped = False

    def ask_for(self, blocks: int) -> None:
        """Have so many blocks measured here in all, neither fewer nor more; 0 for no further one.

        How precise the ratio is by then doesn't matter: the number was settled beforehand. Nor does
        the time, but that remedies which need a new beginning have to find some.
        """
        self.has_stopped = not blocks
        if blocks:
            measure = self.experiment.measure
            exactly = {
                "min_blocks": blocks,
                "max_blocks": blocks,
                "patience": 1.0,
                "budget_s": self.used_s + measure.budget_s,
            }
            changed = measure.model_copy(update=exactly)
            self.experiment = self.experiment.model_copy(update={"measure": changed})

    def keep(self, record: Record) -> None:
        """Write a record of this point to disk at once, and remember it."""
        record = record.model_copy(update={"point": self.point.number})
        self.folder.append(record)
        self.records.append(record)

    def keep_stop(self, stop: Stop) -> None:
        """Put on record that nothing more is measured here, and why."""
        self.has_stopped = True
        self.keep(
            StopRecord(
                block=self.finished_blocks,
                stopped_at=datetime.now(UTC),
                reason=stop.reason,
                why=stop.why,
            )
        )

    def keep_incident(self, block: int, arm: str | None, trouble: Trouble) -> None:
        """Put on record that an arm's servers failed, or (None) the load generator."""
        died = trouble if isinstance(trouble, StackDied) else None
        incident = IncidentRecord(
            block=block,
            arm=arm,
            happened_at=datetime.now(UTC),
            what=died.what if died else str(trouble).splitlines()[0],
            log_tail=died.log_tail if died else [],
        )
        self.keep(incident)


def prepared(at: MeasuredPoint, number: int) -> AbstractContextManager[None]:
    """Put the user's own things into the state that every block begins with, and back after it."""
    log = at.folder.block_log(at.point.number, number, "state.log")
    return in_state(at.experiment.state, log)
