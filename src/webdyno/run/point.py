"""A point of an experiment while it is being measured: what every block there works with."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random
from typing import Protocol

from webdyno.host.users import caller
from webdyno.judge import Stop, decide
from webdyno.judge.point_data import PointData
from webdyno.judge.race import still_racing
from webdyno.judge.remedies import due_remedy
from webdyno.model.experiment import Experiment
from webdyno.model.format import duration
from webdyno.model.machine import Calibration
from webdyno.model.mistake import Trouble
from webdyno.model.point import Point
from webdyno.model.records import (
    BlockRecord,
    IncidentRecord,
    LongLookRecord,
    PilotRecord,
    Record,
    RemedyRecord,
    SlotRecord,
    StopRecord,
)
from webdyno.run.backend import HostLost, LinkCut, Roles
from webdyno.run.folder import RunFolder
from webdyno.run.planned import PlannedArm
from webdyno.run.state import in_state
from webdyno.stack import StackDied


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

    def block_ends(self, block: BlockRecord, data: PointData) -> None:
        """A block is complete; this is what is known of its point."""

    def answers(self, data: PointData, looks_s: Sequence[float]) -> None:
        """The rounds of a point are over; so long looks follow, one after the other."""

    def long_look_begins(self, point: Point, arm: str, look_s: float) -> None:
        """A variant comes under load for so long."""

    def long_look_goes_on(self, part: LongLookRecord) -> None:
        """A part of it was measured, and is on disk."""

    def long_look_ends(self, parts: Sequence[LongLookRecord]) -> None:
        """It is over; these are all its parts."""

    def notice(self, text: str) -> None:
        """Something happened that the user should read."""


@dataclass
class MeasuredPoint:
    """The experiment at a point, where it runs, and what was measured so far."""

    data: PointData
    """All of this point that is on disk, in memory as well."""
    arms: Sequence[PlannedArm]
    roles: Roles
    """Where its arms are served and loaded."""
    calibrations: Mapping[str, Calibration | None]
    """By arm: what the client can do at most where that runs, if that was measured."""
    folder: RunFolder
    progress: Progress
    used_s: float = 0.0
    """How much of its share of the time budget is used up."""
    has_stopped: bool = False
    """Whether nothing more is measured here in this session."""
    _patience_told: bool = field(default=False, init=False)

    @property
    def point(self) -> Point:
        """Which one it is."""
        return self.data.point

    @property
    def experiment(self) -> Experiment:
        """As it is at this point."""
        return self.data.experiment

    @property
    def finished_blocks(self) -> int:
        """How many blocks came to their end."""
        return sum(isinstance(record, BlockRecord) for record in self.data.records)

    @property
    def failed(self) -> set[str]:
        """Name the arms that failed, where the run goes on without them."""
        incidents = (it for it in self.data.records if isinstance(it, IncidentRecord))
        return {it.arm for it in incidents if it.arm is not None and self.experiment.spares_arms}

    def goes_on_without(self, failed: Collection[str]) -> bool:
        """Whether a run goes on when these have failed; all but leagues need their baseline."""
        baseline = next(iter(self.experiment.arms))
        return bool(failed) and (self.experiment.is_league or baseline not in failed)

    def racing(self) -> list[PlannedArm]:
        """Give the arms of the next block: all, or those that are still in the race."""
        names = still_racing(self.data)
        return [arm for arm in self.arms if arm.name in names]

    def stops(self) -> bool:
        """Tell whether another block would be in vain or isn't needed; put on record why."""
        if not self.has_stopped and (stop := decide(self.data, self.used_s)):
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
        if not self.has_stopped and (due := due_remedy(self.data, self.used_s)):
            self.keep_remedy(due)

    def keep_remedy(self, remedy: RemedyRecord) -> None:
        """Tell what was mended, and put it on record."""
        self.keep(remedy)
        anew = "; the blocks before it don't count" if remedy.anew else ""
        self.progress.notice(f"{remedy.what}{anew}")

    def allow(self, more_s: float) -> None:
        """Grant so much time from now on, whatever was used and for whatever reason it stopped."""
        longer = self.experiment.with_measure(budget_s=self.used_s + more_s, patience=1.0)
        self.data = self.data.under(longer)
        self.has_stopped = False

    def ask_for(self, blocks: int) -> None:
        """Have so many blocks measured here in all, neither fewer nor more; 0 for no further one.

        How precise the ratio is by then doesn't matter: the number was settled beforehand. Nor does
        the time, but that remedies which need a new beginning have to find some.
        """
        self.has_stopped = not blocks
        if blocks:
            exactly = self.experiment.with_measure(
                min_blocks=blocks,
                max_blocks=blocks,
                patience=1.0,
                budget_s=self.used_s + self.experiment.measure.budget_s,
            )
            self.data = self.data.under(exactly)

    def keep(self, record: Record) -> None:
        """Write a record of this point to disk at once, and remember it."""
        record = record.replace(point=self.point.number)
        self.folder.append(record)
        self.data = self.data.and_then(record)

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
        """Put on record that an arm's servers failed, or (None) the load generator or hosts."""
        died = trouble if isinstance(trouble, StackDied) else None
        incident = IncidentRecord(
            block=block,
            arm=arm,
            of_hosts=isinstance(trouble, HostLost | LinkCut),
            happened_at=datetime.now(UTC),
            what=died.what if died else str(trouble).splitlines()[0],
            log_tail=died.log_tail if died else [],
        )
        self.keep(incident)


def rng_of(seed: int | None, point: int, *part: object) -> Random:
    """Give the random source of a part of a point: a resumed run draws what it would have drawn."""
    return Random("/".join(map(str, (seed, point, *part))))


def prepared(at: MeasuredPoint, number: int) -> AbstractContextManager[None]:
    """Put the user's own things into the state that every block begins with, and back after it."""
    log = at.folder.block_log(at.point.number, number, "state.log")
    return in_state(at.experiment.state, log, caller(at.folder.path))
