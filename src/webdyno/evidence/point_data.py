"""What is on record of a point of an experiment: the one argument of whoever judges it.

What is derived from it is a function of it, in the module of its question, which `compute_once`
computes once, however many ask.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from statistics import fmean, median
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from webdyno.core.experiment import Experiment
from webdyno.core.histogram import Histogram, merge_encoded
from webdyno.core.looks import LongLook
from webdyno.core.measure import Measure
from webdyno.core.metrics import MetricRule, TimesOf, latency_of
from webdyno.core.objectives import Objective
from webdyno.core.records import (
    AdjustmentRecord,
    IncidentRecord,
    LongLookRecord,
    PreflightRecord,
    Record,
    RoundRecord,
    SessionRecord,
    SlotRecord,
    StopRecord,
)
from webdyno.core.run import RunHead
from webdyno.core.sweep import Point, plan_points
from webdyno.evidence.long_look import look_at

ONLY_POINT = Point(number=0, levels={})
"""That of an experiment without factors."""

P = ParamSpec("P")
Known = TypeVar("Known")


@dataclass(frozen=True)
class Round:
    """A finished round: how it went, and its measured slots."""

    record: RoundRecord
    slots: tuple[SlotRecord, ...]
    warmups: tuple[SlotRecord, ...] = ()
    """Slots before them that don't count: warm-ups, or the bursts of which they consist."""

    def of(self, variant: str) -> list[SlotRecord]:
        return [slot for slot in self.slots if slot.variant == variant]

    def warmups_of(self, variant: str) -> list[SlotRecord]:
        return [slot for slot in self.warmups if slot.variant == variant]


@dataclass(frozen=True)
class PointData:
    """A point's records, grouped as the judge needs them, with the experiment as it is there.

    It never changes: what has one more record, fewer rounds or other variants is another one.
    """

    head: RunHead
    """Its experiment is that of the point."""
    records: Sequence[Record] = ()
    rounds: tuple[Round, ...] = ()
    preflights: tuple[PreflightRecord, ...] = ()
    incidents: tuple[IncidentRecord, ...] = ()
    sessions: tuple[SessionRecord, ...] = ()
    looks: tuple[LongLook, ...] = ()
    """What the long looks at the variants found."""
    stop: StopRecord | None = None
    """Why no more was measured; None where that was not for the stop rule."""
    point: Point = ONLY_POINT
    known: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    """What was derived from it so far."""

    @classmethod
    def of(cls, head: RunHead, records: Sequence[Record], point: Point = ONLY_POINT) -> Self:
        """Group records by round.

        An attempt at a round ends with its round record, with an incident, or with nothing when
        webdyno was killed; only what belongs to the attempt that came to its end is kept. What was
        measured before an adjustment that made a new beginning doesn't count.
        """
        open_slots: dict[int, list[SlotRecord]] = {}
        rounds: dict[int, Round] = {}
        preflights: dict[int, PreflightRecord] = {}
        incidents: list[IncidentRecord] = []
        sessions: list[SessionRecord] = []
        stop: StopRecord | None = None
        for record in records:
            match record:
                case SlotRecord():
                    attempt = open_slots.setdefault(record.round, [])
                    if attempt and not _follows(record, attempt[-1]):
                        attempt.clear()
                    attempt.append(record)
                case RoundRecord():
                    attempt = open_slots.pop(record.round, [])
                    measured = tuple(slot for slot in attempt if slot.phase in ("measure", "trial"))
                    warmups = tuple(slot for slot in attempt if slot.phase == "warmup")
                    rounds[record.round] = Round(record, measured, warmups)
                    stop = None
                case PreflightRecord():
                    preflights[record.round] = record
                case IncidentRecord():
                    open_slots.pop(record.round, None)
                    incidents.append(record)
                    stop = None
                case SessionRecord():
                    open_slots.clear()
                    sessions.append(record)
                case StopRecord():
                    stop = record
                case AdjustmentRecord(again=True):
                    rounds.clear()
        return cls(
            head=head,
            records=records,
            point=point,
            rounds=tuple(rounds[number] for number in sorted(rounds)),
            preflights=tuple(preflights[number] for number in sorted(preflights)),
            incidents=tuple(incidents),
            sessions=tuple(sessions),
            looks=tuple(look_at(*parts) for parts in look_parts(records).values()),
            stop=stop,
        )

    def and_then(self, record: Record) -> Self:
        """Return what is known with one more record.

        A slot counts once its round has ended: until then all that was derived stays true.
        """
        records = (*self.records, record)
        if not isinstance(record, SlotRecord):
            return self.of(self.head, records, self.point)
        later = replace(self, records=records)
        later.known.update(self.known)
        return later

    @property
    def experiment(self) -> Experiment:
        """The experiment as it is at this point."""
        return self.head.experiment

    @property
    def measure(self) -> Measure:
        return self.experiment.measure

    @property
    def objectives(self) -> list[Objective]:
        return self.experiment.objectives

    def under(self, experiment: Experiment) -> Self:
        """Return what was measured as a part of another experiment."""
        return replace(self, head=self.head.replace(experiment=experiment))

    def among(self, variants: Iterable[str]) -> Self:
        """Return what was measured as if only these variants were compared, the first as baseline.

        Slots of the others stay: they were on the same machine.
        """
        names = list(variants)
        if names == list(self.experiment.variants):
            return self
        kept = {name: self.experiment.variants[name] for name in names}
        return self.under(self.experiment.replace(variants=kept))

    @property
    def slots(self) -> list[SlotRecord]:
        return [slot for this_round in self.rounds for slot in this_round.slots]

    def of_variant(self, variant: str) -> list[SlotRecord]:
        return [slot for slot in self.slots if slot.variant == variant]

    @property
    def ran_before(self) -> list[str]:
        """Return the variants that somebody else had started before the run."""
        return list(dict.fromkeys(name for each in self.preflights for name in each.ran_before))

    @property
    def round_trips_s(self) -> dict[str, float]:
        """The network's round trip to each variant on another machine: the rounds' median."""
        round_trips: dict[str, list[float]] = {}
        for preflight in self.preflights:
            for variant, trip_s in preflight.round_trips_s.items():
                round_trips.setdefault(variant, []).append(trip_s)
        return {variant: median(trips_s) for variant, trips_s in round_trips.items()}

    @property
    def round_s(self) -> float:
        """How long a round takes: on average those with as many slots as the last one."""
        if not self.rounds:
            return 0.0
        records = [this_round.record for this_round in self.rounds]
        return fmean(
            record.took_s for record in records if len(record.order) == len(records[-1].order)
        )

    def first(self, rounds: int) -> Self:
        return replace(self, rounds=self.rounds[:rounds])

    def without(self, excluded: Iterable[tuple[int, int]]) -> Self:
        """Exclude slots, each named by round and slot number."""
        gone = set(excluded)
        rounds = (
            replace(
                this_round,
                slots=tuple(s for s in this_round.slots if (s.round, s.slot) not in gone),
            )
            for this_round in self.rounds
        )
        return replace(self, rounds=tuple(rounds))

    def values(self, variant: str, rule: MetricRule) -> dict[int, float]:
        """Return a variant's value of a metric by round, of those that can report it."""
        values = {
            this_round.record.round: rule.round_value(this_round.of(variant))
            for this_round in self.rounds
        }
        return {number: value for number, value in values.items() if value is not None}

    def times(self, variant: str, of: TimesOf = latency_of) -> dict[int, Histogram]:
        """Return a variant's latency, or other times, by round, of those that have any."""
        by_round = {}
        for this_round in self.rounds:
            times = merge_encoded(of(slot.load).histogram for slot in this_round.of(variant))
            if times.total:
                by_round[this_round.record.round] = times
        return by_round

    def slot_logs(self, variant: str, rule: MetricRule) -> dict[int, NDArray[np.float64]]:
        """Return ln(value) of each of a variant's slots by round, of those that have any."""
        logs = {}
        for this_round in self.rounds:
            values = [rule.round_value([slot]) for slot in this_round.of(variant)]
            known = [value for value in values if value is not None]
            if known:
                logs[this_round.record.round] = np.log(known)
        return logs


def _follows(slot: SlotRecord, before: SlotRecord) -> bool:
    """Whether a slot comes after another one of its round, and doesn't begin the round again."""
    if slot.slot == before.slot:
        return before.phase == "wake-up" and slot.phase != "wake-up"
    return slot.slot > before.slot


def look_parts(records: Iterable[Record]) -> dict[str, list[LongLookRecord]]:
    """Return the parts of each variant's long look.

    One at a rate below a capacity counts for the rounds before it: more of them find another one.
    """
    parts: dict[str, list[LongLookRecord]] = {}
    for record in records:
        if isinstance(record, LongLookRecord):
            parts.setdefault(record.variant, []).append(record)
        elif isinstance(record, RoundRecord):
            parts = {variant: those for variant, those in parts.items() if not those[0].trial}
    return parts


@dataclass(frozen=True)
class RunData:
    """What is on record of a run as a whole."""

    head: RunHead
    records: Sequence[Record]
    profiles: Mapping[int, "RunData | str"] = field(default_factory=dict)
    """Profile rounds of a gate's points, each a run of its own, by number of the point; or why
    there are none."""
    confirmation: "RunData | None" = None
    """The second measurement of what failed in a gate, a run of its own."""

    @cached_property
    def points(self) -> list[PointData]:
        """What is on record of each point; an experiment without factors is a single one."""
        return [
            PointData.of(
                self.head.replace(experiment=plan.experiment),
                [record for record in self.records if record.point in {None, plan.point.number}],
                plan.point,
            )
            for plan in plan_points(self.head.experiment)
        ]


def compute_once(
    compute: Callable[Concatenate[PointData, P], Known],
) -> Callable[Concatenate[PointData, P], Known]:
    """Have it computed once for each `PointData`; nobody may change what it gives."""

    @wraps(compute)
    def once(data: PointData, /, *args: P.args, **kwargs: P.kwargs) -> Known:
        key = (compute, args, *kwargs.items())
        if key not in data.known:
            data.known[key] = compute(data, *args, **kwargs)
        value: Known = data.known[key]
        return value

    return once
