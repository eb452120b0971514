"""Whether the servers stayed as they were, over slots and rounds and in the long looks.

A trend over a round (`trend`), or inside its slots (`slot-trend`), means that they hadn't settled.
A closed loop shows it by its rate; an open loop, whose rate is that of its timetable, by the
requests that a second of the servers' CPU time answers. `left_behind` is what requests write, which
can be the cause.

Servers that stall or drift in long looks can still be measured (`stalls`, `slow-stretches`,
`drift`, `memory-growth`, `more-open`); only those that serve no more make a run invalid
(`fails-later`, and with it `died-later` and `client-out-of-ports`).
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil, expm1, log
from statistics import fmean
from typing import NamedTuple

import numpy as np

from webdyno.core.base import memory_words
from webdyno.core.format import count, duration, number, percent
from webdyno.core.judgement import ValidityWarning
from webdyno.core.looks import Failing, LongLook
from webdyno.core.metrics import server_cpu_us, throughput_rps
from webdyno.core.readings import DatabaseUse
from webdyno.core.records import SlotRecord
from webdyno.core.variant import quoted_part
from webdyno.evidence.long_look import (
    MORE_OPEN,
    drift_words,
    failing_words,
    look_words,
    slow_words,
    stall_words,
)
from webdyno.evidence.point_data import PointData, Round, compute_once
from webdyno.evidence.slot_stalls import own_stall_s
from webdyno.evidence.stalls import gone
from webdyno.statistics.interval import Estimate, estimate, fitted_line
from webdyno.validity.rule import RunRule, note

TREND_ALPHA = 0.01
"""Of "there is a trend" by chance, in any variant: five times as strict as a verdict."""
LARGEST_CHANGE = 20.0
"""Of ln(throughput); beyond it throughput is a billion times another, and records are damaged."""
THIRD_IN_LATENCIES = 20
"""How long a third of a slot must be to be judged, in mean latency: a slot's first responses
come a service time after its beginning, which takes as much as that off its first third."""
FAILS_SHARE = 0.01
"""Servers that fail so many requests to the end aren't what was measured before."""
LONG_WARMUP_S = 5.0
LENGTHS_S = {"2m": 120.0, "10m": 600.0, "1h": 3_600.0, "4h": 14_400.0}
LONGEST = "24h"
MUCH_LONGER = 3
LOG_FIX = (
    "Look in the server's log for what it does then: garbage collection, compaction, rotation of "
    "logs, a lock."
)

GROWS = 0.02
"""Share of what it held by which a database that says no rows grows within a round."""
CHANGES_NOTHING = frozenset({"GET", "HEAD", "OPTIONS"})


@dataclass(frozen=True)
class Trend:
    """A rule about variants whose throughput rises or falls in round after round."""

    name: str
    change: Callable[[Round, str], float | None]
    """Change of ln(`work_rate`) of a variant in a round; None where it isn't known."""
    noted: float
    """Changes of the throughput up to this aren't worth a word."""
    over: str
    fix: Callable[[PointData, str, float], str]
    """Returns what to do about a variant whose throughput changes by a share."""
    seen: float = 1.0
    """Share of the time that the values are of over which the change was seen."""

    def warnings(self, data: PointData) -> list[ValidityWarning]:
        """Report the variants that have one: changes of rounds that have a direction in common."""
        warnings, variants = list[ValidityWarning](), list(data.experiment.variants)
        for variant in variants:
            mean = self.sure_change(data, variant, TREND_ALPHA / len(variants))
            if mean is None:
                continue
            change = share_of(mean)
            direction = "rises" if change > 0 else "falls"
            warning = note(
                self.name,
                variant,
                f"{pace(data, variant)} {direction} by {percent(abs(change))} from the first to "
                f"the last {self.over}; how far that can have moved its figures counts against the "
                "verdict",
                self.fix(data, variant, change),
            )
            warnings.append(warning)
        return warnings

    def sure_change(
        self, data: PointData, variant: str, alpha: float = TREND_ALPHA
    ) -> Estimate | None:
        """Return the change of ln(`work_rate`), where it is sure and matters."""
        changes = [self.change(this_round, variant) for this_round in data.rounds]
        known = [change for change in changes if change is not None]
        if len(known) < 2:
            return None
        mean = estimate(np.array(known), 1 - alpha)
        large = abs(share_of(mean)) > self.noted
        return mean if large and mean.excludes_zero() else None


def share_of(change: Estimate) -> float:
    """Return the share by which throughput changed, of a change of its logarithm."""
    return expm1(min(change.centre, LARGEST_CHANGE))


def pace(data: PointData, variant: str) -> str:
    """Name what a trend of a variant is about."""
    is_open = any(slot.load.loop == "open" for slot in data.of_variant(variant))
    return "what a second of its CPU time answers" if is_open else "its throughput"


def work_rate(slot: SlotRecord) -> float | None:
    """Return a slot's throughput, or in an open loop responses per second of server CPU time."""
    if slot.load.loop == "closed":
        return throughput_rps([slot])
    cost_us = server_cpu_us([slot])
    return 1e6 / cost_us if cost_us else None


def _over_the_round(this_round: Round, variant: str) -> float | None:
    """Change from the variant's first slot in a round to its last, on the fitted line."""
    rates = {slot.slot: work_rate(slot) for slot in this_round.of(variant)}
    known = {position: rate for position, rate in rates.items() if rate is not None}
    if len(known) < 2:
        return None
    positions = np.array(list(known))
    line = fitted_line(positions, np.log(list(known.values())))
    return line.slope * float(np.ptp(positions))


def _inside_slots(this_round: Round, variant: str) -> float | None:
    """Change from the first third of a slot to the last, the mean of the variant's slots."""
    changes = [change for slot in this_round.of(variant) if (change := _inside(slot)) is not None]
    return fmean(changes) if changes else None


def _inside(slot: SlotRecord) -> float | None:
    windows, latency_us = slot.load.counted_windows, slot.load.latency_us.mean
    if slot.load.loop == "open" or len(windows) < 3 or latency_us is None:
        return None
    first, last = windows[0], windows[-1]
    short = min(first.length_s, last.length_s) < THIRD_IN_LATENCIES * latency_us / 1e6
    if short or not all((first.completed, last.completed, first.length_s, last.length_s)):
        return None
    return log(last.completed / last.length_s) - log(first.completed / first.length_s)


def _warm_up_longer(data: PointData, variant: str, _change: float) -> str:
    setting = "measure.warmup_s"
    if data.experiment.variants[variant].warmup_s is not None:
        setting = f"variants.{quoted_part(variant)}.warmup_s"
    loaded_s = sum(each.load.measured_s for each in data.rounds[-1].warmups_of(variant))
    return f"Warm up longer: --set {setting}={ceil(max(LONG_WARMUP_S, 2 * loaded_s))}."


def _lengthen_slots(data: PointData, variant: str, change: float) -> str:
    if change < 0 and left_behind(data, variant) is not None:
        return (
            "Its requests write: begin with more rows, so that those of a slot weigh less, or have "
            "all variants write as many: --rate."
        )
    return "Make slots longer, so that their beginning weighs less: --set measure.slot_s=2."


OVER_THE_ROUND = Trend(
    "trend",
    _over_the_round,
    noted=0.02,  # ABBA order cancels what all variants have in common of it
    over="slot of a round",
    fix=_warm_up_longer,
)
TRENDS = (
    OVER_THE_ROUND,
    Trend(
        "slot-trend",
        _inside_slots,
        noted=0.05,
        over="third of its slots",
        seen=2 / 3,  # from the middle of the first third to that of the last
        fix=_lengthen_slots,
    ),
)


def _stalls(data: PointData) -> Iterator[ValidityWarning]:
    """Report stalls in slots where no long look shows more of them, and those of long looks."""
    known = {look.variant for look in data.looks if look.stalls}
    for variant in data.experiment.variants:
        stalled = [own_stall_s(slot) for slot in data.of_variant(variant) if slot.trial is None]
        if variant not in known and any(stalled):
            yield note(
                "stalls",
                variant,
                f"for {duration(max(stalled))} of a slot next to nothing was answered, though all "
                "was well before or after; nothing else on this machine explains that, so it "
                "counts",
                LOG_FIX,
            )
    for look in data.looks:
        if look.stalls is None:
            continue
        share = look.stalls.share
        yield note(
            "stalls",
            look.variant,
            f"it answers next to nothing for {percent(share.estimate)} of the time "
            f"({percent(share.low)} to {percent(share.high)}): {stall_words(look)}, seen in "
            f"{look_words(look)}; nothing else on this machine explains that, so it counts",
            LOG_FIX,
        )


def _slow(data: PointData) -> Iterator[ValidityWarning]:
    for look in data.looks:
        if look.slow:
            yield note(
                "slow-stretches",
                look.variant,
                f"{slow_words(look.slow, look)}, seen in {look_words(look)}; nothing else on this "
                "machine explains that, so what it costs counts against the verdict",
                "Look in the server's log for what it does then: a cache that expires, a "
                "checkpoint, work in the background.",
            )


def _drifts(data: PointData) -> Iterator[ValidityWarning]:
    for look in data.looks:
        for drift in look.drifts:
            yield note(
                "drift",
                look.variant,
                f"{drift_words(drift)} in {duration(look.unbroken_s)} of load; how far it moved "
                "counts against the verdict",
                f"Measure for longer: --soak {_longer(look)}.",
            )


def _growth(data: PointData) -> Iterator[ValidityWarning]:
    for look in data.looks:
        if look.growth is None:
            continue
        per_request = look.growth.bytes_per_request
        yield note(
            "memory-growth",
            look.variant,
            f"its memory grew all through the second half of {duration(look.unbroken_s)} of load, "
            f"by {memory_words(round(look.growth.bytes_per_s.estimate))} a second: "
            f"{number(round(per_request.estimate))} bytes per request "
            f"({number(round(per_request.low))} to {number(round(per_request.high))})",
            f"See whether it is a cache that fills or a leak: --soak {_longer(look)}.",
        )


def _longer(look: LongLook) -> str:
    return next(
        (name for name, s in LENGTHS_S.items() if s >= MUCH_LONGER * look.looked_s), LONGEST
    )


def _more_open(data: PointData) -> Iterator[ValidityWarning]:
    for look in data.looks:
        if look.more_open is None:
            continue
        every = 1 / look.more_open.per_request.estimate
        yield note(
            "more-open",
            look.variant,
            f"its {MORE_OPEN} became more all through the second half of "
            f"{duration(look.unbroken_s)} of load, by "
            f"{number(look.more_open.per_s.estimate)} a second: one for every "
            f"{number(round(every))} requests",
            "Look at what the descriptors are (ls -l /proc/PID/fd), before they reach the limit on "
            "open files.",
        )


def _failing(data: PointData) -> Iterator[ValidityWarning]:
    for look in data.looks:
        end = gone(look.failing)
        if look.failing:
            yield _of_failures(look, end or max(look.failing, key=lambda failure: failure.failed))
        if look.died:
            died = note(
                "died-later",
                look.variant,
                f"{look.died}, after {look_words(look, end.at_s if end else None)}",
                "Look in the server's log, in the run's folder, for a crash, or for too little "
                "memory.",
            )
            yield died.replace(severity="invalid")


def _of_failures(look: LongLook, worst: Failing) -> ValidityWarning:
    more = f" (and {count(len(look.failing) - 1, 'time')} more)" if len(look.failing) > 1 else ""
    if worst.by_client:
        return note(
            "client-out-of-ports",
            look.variant,
            f"{failing_words(worst)}{more}; it is the load generator that could open no more "
            "connections, so that says nothing of the servers, and nothing after it is counted",
            "Use keep-alive, or widen net.ipv4.ip_local_port_range.",
        )
    failures = note(
        "fails-later",
        look.variant,
        f"{failing_words(worst)}{more}",
        "Look in the server's log, in the run's folder, for what it has no more of then: open "
        "files, ports, memory, connections to others.",
    )
    invalidates = worst.to_the_end and worst.share >= FAILS_SHARE
    return failures.replace(severity="invalid") if invalidates else failures


LATER_RULES = (
    RunRule("fails-later", _failing),
    RunRule("stalls", _stalls),
    RunRule("slow-stretches", _slow),
    RunRule("drift", _drifts),
    RunRule("memory-growth", _growth),
    RunRule("more-open", _more_open),
)


class Written(NamedTuple):
    """What shows that a variant's requests leave something behind."""

    rows: float
    """In a slot; 0 where no database says."""
    table: str
    """The one that grew most; empty where none did."""
    held_bytes: tuple[float, float] | None
    """By its databases, as its first slot of a round began and its last; None without any."""
    requests: Sequence[str]
    """Those that change something by their method."""


@compute_once
def left_behind(data: PointData, variant: str) -> Written | None:
    """Report what a variant's requests leave behind; None for nothing, or in trials of a search."""
    rounds = [slots for a_round in data.rounds if (slots := a_round.of(variant))]
    if any(slot.trial for of_round in rounds for slot in of_round):
        return None
    slots = [slot for of_round in rounds for slot in of_round]
    uses = [use for slot in slots for use in _databases(slot)]
    rows, grown = sum(use.rows_written or 0 for use in uses), Counter[str]()
    for use in uses:
        grown.update(use.grown)
    by_round = [
        [sum(use.bytes_before for use in uses) for slot in of_round if (uses := _databases(slot))]
        for of_round in rounds
    ]
    of_ends = [(each[0], each[-1]) for each in by_round if len(each) > 1]
    held = None
    if of_ends:
        held = fmean(first for first, _ in of_ends), fmean(last for _, last in of_ends)
    if rows or (held and held[1] >= (1 + GROWS) * held[0]):
        return Written(rows / len(slots), max(grown, key=grown.__getitem__, default=""), held, ())
    requests = data.experiment.requests
    changing = [each.label for each in requests if each.method not in CHANGES_NOTHING]
    return Written(0.0, "", None, changing) if changing and slots else None


def has_database(data: PointData, variant: str) -> bool:
    """Whether a database behind a variant, which is put back at each start, says what it does."""
    return any(_databases(slot) for slot in data.of_variant(variant))


def _databases(slot: SlotRecord) -> list[DatabaseUse]:
    return list(slot.readings.databases.values()) if slot.readings else []
