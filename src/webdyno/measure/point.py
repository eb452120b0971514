"""A point of an experiment while it is being measured: what every round there works with."""

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import inf
from random import Random
from typing import Protocol, Self

from webdyno.comparison import Stop, decide, next_variants, question_of
from webdyno.core.errors import OperationError
from webdyno.core.experiment import Experiment
from webdyno.core.format import count, duration
from webdyno.core.records import (
    AdjustmentRecord,
    IncidentRecord,
    LongLookRecord,
    PilotRecord,
    Record,
    RoundRecord,
    SlotRecord,
    StopRecord,
)
from webdyno.core.sweep import Point
from webdyno.core.testbed import Calibration
from webdyno.evidence.point_data import PointData
from webdyno.host.users import ServerUser
from webdyno.measure.backend import HostLost, LinkCut, PointTestbed
from webdyno.measure.folder import RunFolder
from webdyno.measure.planned import PlannedVariant
from webdyno.planning.adjustments import due_adjustment
from webdyno.planning.fitting import next_round_s
from webdyno.planning.settings import slots_per_variant
from webdyno.servers.service import StackDied

logger = logging.getLogger(__name__)

LONG_LOGINS_S = 5.0
"""Of all users at one start: worth a word, as a run has a dozen starts or more."""
FEW_USERS = 8


class Progress(Protocol):
    """Is reported of each step of a run as it happens, to show it."""

    def pilot_begins(self, point: Point, variant: str) -> None:
        """A variant is looked at alone."""

    def pilot_ends(self, record: PilotRecord) -> None:
        """The times that a variant needs were found, and are on disk."""

    def round_begins(self, point: Point, round_number: int, slots: int) -> None:
        """A round with that many slots, warm-ups included, starts its servers."""

    def slot_begins(self, variant: str, phase: str) -> None:
        """A variant comes under load."""

    def slot_ends(self, record: SlotRecord) -> None:
        """A slot was measured and is on disk."""

    def round_ends(self, this_round: RoundRecord, data: PointData) -> None:
        """A round is complete; this is what is known of its point."""

    def answers(self, data: PointData, looks_s: Sequence[float]) -> None:
        """The rounds of a point are over; so long looks follow, one after the other."""

    def long_look_begins(self, point: Point, variant: str, look_s: float) -> None:
        """A variant comes under load for so long."""

    def long_look_goes_on(self, part: LongLookRecord) -> None:
        """A part of it was measured, and is on disk."""

    def long_look_ends(self, parts: Sequence[LongLookRecord]) -> None:
        """It is over; these are all its parts."""

    def notice(self, text: str) -> None:
        """Something happened that the user should read."""

    def detail(self, text: str) -> None:
        """Something was decided that only somebody who wants to know all should read."""


class Stopwatch:
    """Counts seconds from `with` to its end, also those of the whole that it is a part of."""

    def __init__(self, used_s: float = 0.0, whole: "Stopwatch | None" = None) -> None:
        self._used_s, self._whole = used_s, whole
        self._began_s: float | None = None
        self.limit_s = inf
        """Seconds that may be used up in all; a point's own limit is its experiment's."""

    @property
    def used_s(self) -> float:
        """What was counted so far, up to now where it runs."""
        running_s = 0.0 if self._began_s is None else time.monotonic() - self._began_s
        return self._used_s + running_s

    @property
    def left_s(self) -> float:
        """What limits leave, its own and that of the whole."""
        whole_s = inf if self._whole is None else self._whole.left_s
        return min(self.limit_s - self.used_s, whole_s)

    def leave_out(self, took_s: float) -> None:
        """Take seconds off that don't count."""
        self._used_s -= took_s
        if self._whole is not None:
            self._whole.leave_out(took_s)

    def __enter__(self) -> Self:
        self._began_s = time.monotonic()
        if self._whole is not None:
            self._whole.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._used_s, self._began_s = self.used_s, None
        if self._whole is not None:
            self._whole.__exit__()


@dataclass
class RunningPoint:
    """The experiment at a point, where it runs, and what was measured so far."""

    data: PointData
    """All of this point that is on disk, in memory as well."""
    variants: Sequence[PlannedVariant]
    testbed: PointTestbed
    """Where its variants are served and loaded."""
    calibrations: Mapping[str, Calibration | None]
    """By variant: what the client can do at most where that runs, if that was measured."""
    folder: RunFolder
    progress: Progress
    commands_user: ServerUser | None
    """As whom the experiment's own commands run; None: ourselves."""
    watch: Stopwatch = field(default_factory=Stopwatch)
    """Counts how much of its share of the time is used up."""
    started: set[tuple[str, str, str]] = field(default_factory=set)
    """What was started in this session, at any of the points: variant, stack and site of each."""
    has_stopped: bool = False
    """Whether nothing more is measured here in this session."""
    logins_s: dict[str, float] = field(default_factory=dict, init=False)
    """By variant: the longest time that its users took to log in."""
    _patience_reported: bool = field(default=False, init=False)
    _logins_reported: bool = field(default=False, init=False)

    @property
    def number(self) -> int:
        return self.data.point.number

    @property
    def experiment(self) -> Experiment:
        return self.data.experiment

    @property
    def used_s(self) -> float:
        """How much of its share of the time is used up."""
        return self.watch.used_s

    @property
    def left_s(self) -> float:
        """How long it may go on; without end unless its time is a limit, or that of the run."""
        return min(self.experiment.measure.limit_s - self.used_s, self.watch.left_s)

    def starts_first(self, variant: PlannedVariant) -> bool:
        """Whether this is a variant's first start in this session, of which it is then known."""
        named = (variant.name, variant.stack.name, variant.site.name)
        is_first = named not in self.started
        self.started.add(named)
        return is_first

    @property
    def finished_rounds(self) -> int:
        return sum(isinstance(record, RoundRecord) for record in self.data.records)

    @property
    def failed_variants(self) -> set[str]:
        """Return the variants that failed, where the run goes on without them."""
        if not question_of(self.experiment).spares_variants:
            return set()
        incidents = (record for record in self.data.records if isinstance(record, IncidentRecord))
        return {incident.variant for incident in incidents if incident.variant is not None}

    def goes_on_after(self, failure: str) -> bool:
        """Whether the run continues without the variants that have failed; then it is reported."""
        goes_on = question_of(self.experiment).goes_on_without(self.failed_variants)
        if goes_on:
            self.progress.notice(f"{failure}: the run continues without it")
        return goes_on

    def racing(self) -> list[PlannedVariant]:
        """Return the variants of the next round: all, or those that are still in the race."""
        names = next_variants(self.data)
        return [variant for variant in self.variants if variant.name in names]

    def stops(self) -> bool:
        """Return whether another round would be in vain or isn't needed; put on record why."""
        with self.watch:
            if not self.has_stopped:
                stop = decide(self.data, self.used_s) or self._out_of_time()
                if stop:
                    self.keep_stop(stop)
        if not self.has_stopped:
            self._report_patience()
        return self.has_stopped

    def _out_of_time(self) -> Stop | None:
        """Stop where time is a limit, and no other round ends within it."""
        if self.left_s == inf:
            return None
        slots = len(next_variants(self.data)) * slots_per_variant(self.data)
        if self.left_s > next_round_s(self.data, slots):
            return None
        limit_s = self.experiment.measure.budget_s
        return Stop("time", f"no other round fits into {duration(limit_s)}, which are the limit")

    def report_logins(self, variant: PlannedVariant, took_s: float) -> None:
        """Remember how long users take to log in; where that is long, say once what is shorter."""
        self.logins_s[variant.name] = max(self.logins_s.get(variant.name, 0.0), took_s)
        users = variant.load.connections
        if self._logins_reported or took_s < LONG_LOGINS_S or users <= FEW_USERS:
            return
        self._logins_reported = True
        self.progress.notice(
            f"{count(users, 'user')} took {duration(took_s)} to log in, and will at each start: "
            f"servers check passwords slowly. Fewer connections (-c {FEW_USERS}) shorten the run"
        )

    def _report_patience(self) -> None:
        measure = self.experiment.measure
        if self._patience_reported or measure.patience == 1 or self.used_s < measure.budget_s:
            return
        self._patience_reported = True
        self.progress.notice(
            f"still too noisy: extending from {duration(measure.budget_s)} to at most "
            f"{duration(measure.patience * measure.budget_s)}; Ctrl-C stops and reports what is "
            "there"
        )

    def adjust(self) -> None:
        if not self.has_stopped and (due := due_adjustment(self.data, self.used_s)):
            self.keep_adjustment(due)

    def keep_adjustment(self, adjustment: AdjustmentRecord) -> None:
        """Report what was adjusted, and put it on record."""
        self.keep(adjustment)
        again = "; the rounds before it don't count" if adjustment.again else ""
        self.progress.notice(f"{adjustment.what}{again}")

    def allow(self, more_s: float) -> None:
        """Grant so much time from now on, and no more, whatever was used before."""
        longer = self.experiment.with_measure(
            budget_s=self.used_s + more_s, budget_is_limit=True, patience=1.0
        )
        self.data = self.data.under(longer)
        self.has_stopped = False

    def ask_for(self, rounds: int) -> None:
        """Have so many rounds measured here in all, neither fewer nor more; 0 for no further one.

        Neither precision nor time ends them, unless time is a limit.
        """
        self.has_stopped = not rounds
        if rounds:
            measure = self.experiment.measure
            before_s = 0.0 if measure.budget_is_limit else self.used_s
            exactly = self.experiment.with_measure(
                min_rounds=rounds,
                max_rounds=rounds,
                patience=1.0,
                budget_s=before_s + measure.budget_s,
            )
            self.data = self.data.under(exactly)

    def keep(self, record: Record) -> None:
        """Write a record of this point to disk at once, and remember it."""
        record = self.folder.append(record.replace(point=self.number))
        logger.debug("kept a %s", type(record).__name__)
        self.data = self.data.and_then(record)

    def keep_stop(self, stop: Stop) -> None:
        """Put on record that nothing more is measured here, and why."""
        self.has_stopped = True
        logger.debug("point %d stops, %s: %s", self.number, stop.reason, stop.why)
        self.keep(
            StopRecord(
                round=self.finished_rounds,
                stopped_at=datetime.now(UTC),
                reason=stop.reason,
                why=stop.why,
            )
        )

    def keep_incident(self, round_number: int, variant: str | None, error: OperationError) -> None:
        """Put on record that a variant's servers failed, or (None) the load generator or hosts."""
        died = error if isinstance(error, StackDied) else None
        incident = IncidentRecord(
            round=round_number,
            variant=variant,
            of_hosts=isinstance(error, HostLost | LinkCut),
            happened_at=datetime.now(UTC),
            what=died.what if died else str(error).splitlines()[0],
            log_tail=died.log_tail if died else [],
        )
        self.keep(incident)


def rng_of(seed: int | None, point: int, *part: object) -> Random:
    """Return the random source of a part of a point: a resumed run draws the same."""
    return Random("/".join(map(str, (seed, point, *part))))
