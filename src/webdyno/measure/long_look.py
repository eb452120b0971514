"""The long look: after the rounds, one long stretch of load on each variant.

Nothing is restarted in it, so that it shows what servers do only later: stalls, drifts, growth. It
is put on record by the part, so that one which is interrupted goes on later.
"""

import logging
import time
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from webdyno.comparison import question_of
from webdyno.core.capacity import Trial, trial_of
from webdyno.core.experiment import Experiment
from webdyno.core.load_result import LoadResult
from webdyno.core.looks import LookEnd, Stall
from webdyno.core.measure import CapacitySettings
from webdyno.core.records import LongLookRecord, SlotRecord, StopReason
from webdyno.evidence.long_look import happened_in, look_at, seen_in
from webdyno.evidence.look_course import changes_no_more
from webdyno.evidence.look_records import length_s, thinned_samples
from webdyno.evidence.point_data import PointData, look_parts
from webdyno.load.interface import GeneratorError
from webdyno.measure.backend import CourseTracing, ServersHost, Slot
from webdyno.measure.capacity_trials import at_rate, how_it_died, is_client_limited
from webdyno.measure.planned import PlannedVariant
from webdyno.measure.point import RunningPoint, rng_of
from webdyno.measure.variant import RunningRound, ceiling_of
from webdyno.planning.settings import slot_settings
from webdyno.servers.output import exhaustion_in
from webdyno.servers.service import StackDied

logger = logging.getLogger(__name__)

SEEN_STALLS = 4
"""A look goes on until so many were seen, where there was one, unless its length was given."""
PART_S, MOST_PARTS = 60.0, 20
"""A look is put on record by the minute, or by the twentieth, if that is longer."""
WITHOUT_ANSWER: tuple[StopReason, ...] = ("nothing-valid", "different-responses")
ROUNDING = 0.98
"""Windows at the edges of a part may be missing."""

SHORTEST_WINDOW_S, MOST_WINDOWS = 0.025, 2_400
"""Of a part of a long look."""
SAMPLED_WINDOWS = 2
"""Number of windows between two readings of the servers."""


def lacking_looks(data: PointData) -> list[str]:
    """Return the variants still to be looked at, once the rounds have come to an answer."""
    stop, question = data.stop, question_of(data.experiment)
    if stop is None or stop.reason in WITHOUT_ANSWER or not question.long_look_s:
        return []
    if stop.reason == "time" and data.measure.soak_s is None:
        return []
    over = {variant for variant, parts in look_parts(data.records).items() if parts[-1].ended_by}
    return [
        variant
        for variant in question.next_variants(data)
        if variant not in over and question.loading.can_look_at(data, variant)
    ]


def doubtful(data: PointData) -> Collection[str]:
    """Return the variants to look at before another round: it may be in vain."""
    question = question_of(data.experiment)
    return question.loading.doubtful(data) if data.rounds and question.long_look_s else ()


def look_parts_of(data: PointData, variant: str) -> list[LongLookRecord]:
    """Return what is on record of the long look at a variant."""
    return look_parts(data.records).get(variant, [])


def part_s(look_s: float) -> float:
    """Return how long the parts of a look are."""
    return look_s / min(max(int(look_s / PART_S), 1), MOST_PARTS)


def left_s(parts: Sequence[LongLookRecord], experiment: Experiment) -> float:
    """Return how long a look still has to go on; 0 where it was long enough."""
    look_s = question_of(experiment).long_look_s
    looked_s = sum(map(length_s, parts))
    wanted_s = look_s
    if looked_s >= ROUNDING * look_s and experiment.measure.soak_s is None:
        wanted_s = min(_for_stalls_s(seen_in(*parts), look_s), SEEN_STALLS * look_s)
    return wanted_s - looked_s if looked_s < ROUNDING * wanted_s else 0.0


def why_over(parts: Sequence[LongLookRecord], experiment: Experiment) -> LookEnd | None:
    """Return why a look ends after these parts; None: it goes on.

    One whose length was given ends earlier where nothing was found, and where it is sure that in
    all of that length nothing would change by much. So an early end never adds a warning.
    """
    if parts[-1].died:
        return "died"
    if not left_s(parts, experiment):
        return "time"
    if experiment.measure.soak_s is None or not changes_no_more(parts, experiment.measure.soak_s):
        return None
    look = look_at(*parts)
    noticed = look.stalls, look.slow, look.drifts, look.growth, look.more_open, look.failing
    return None if any(noticed) else "precision"


def _for_stalls_s(seen: Sequence[Stall], look_s: float) -> float:
    """Return how long it takes to see stalls enough, by those that were seen."""
    if not 0 < len(seen) < SEEN_STALLS:
        return 0.0
    first, last = seen[0].at_s, seen[-1].at_s
    every_s = (last - first) / (len(seen) - 1) if len(seen) > 1 else look_s
    return max((SEEN_STALLS + 0.5) * every_s, 2 * look_s)


def look_fits(point: RunningPoint, variant: str) -> bool:
    """Whether a look ends within a limit; one of a given length comes on top of that."""
    if point.experiment.measure.soak_s is not None:
        return True
    times = slot_settings(point.data)
    before_s = max(times.warmup_takes_s(variant), times.ramp_up_s[variant])
    return before_s + left_s(look_parts_of(point.data, variant), point.experiment) <= point.left_s


def run_long_looks(
    point: RunningPoint, variants: Collection[str]
) -> Literal["over", "failed", "time"]:
    """Look at some variants whose long look isn't over, in an order drawn once.

    How a server died meanwhile is a part of its record. One that doesn't start is on record, and
    ends the looks; so is a load generator that fails.
    """
    order = rng_of(point.experiment.measure.seed, point.number, "long look")
    for variant in order.sample(point.variants, len(point.variants)):
        if variant.name not in variants:
            continue
        if not look_fits(point, variant.name):
            return "time"
        left = left_s(look_parts_of(point.data, variant.name), point.experiment)
        point.progress.long_look_begins(point.data.point, variant.name, left)
        logger.debug("long look at %s, for %g s", variant.name, left)
        try:
            _look_at(point, variant)
        except StackDied as death:
            point.keep_incident(point.finished_rounds, variant.name, death)
            return "failed"
        except GeneratorError as failure:
            point.keep_incident(point.finished_rounds, None, failure)
            return "failed"
        point.progress.long_look_ends(look_parts_of(point.data, variant.name))
    return "over"


def _look_at(point: RunningPoint, variant: PlannedVariant) -> None:
    """Load a variant for so long as its look lacks without a break, and keep each part at once."""
    parts = look_parts_of(point.data, variant.name)
    longest_s = part_s(question_of(point.experiment).long_look_s)
    stretch = parts[-1].stretch + 1 if parts else 0
    began, began_at = time.monotonic(), datetime.now(UTC)
    with RunningRound(point, 0) as running:
        running.start(variant)
        point.testbed.clients.get_ready(variant.name)
        while not parts or parts[-1].ended_by is None:
            left = left_s(parts, point.experiment)
            part = sum(record.stretch == stretch for record in parts)
            measured = _part(running, variant, min(longest_s, left), len(parts), is_fresh=not part)
            placed = measured.replace(
                stretch=stretch,
                part=part,
                started_at=began_at,
                took_s=time.monotonic() - began,
            )
            began, began_at = time.monotonic(), datetime.now(UTC)
            ended_by = why_over([*parts, placed], point.experiment)
            if ended_by is None and not look_fits(point, variant.name):
                ended_by = "time"
            parts.append(placed.replace(ended_by=ended_by))
            point.keep(parts[-1])
            point.progress.long_look_goes_on(parts[-1])


def _part(
    running: RunningRound, variant: PlannedVariant, length_s: float, number: int, *, is_fresh: bool
) -> LongLookRecord:
    """Load a variant for one part of its look; what is random is drawn again for each.

    One that was just started warms up before it, as in each round.
    """
    point = running.point
    times, question = slot_settings(point.data), question_of(point.experiment)
    searched = point.experiment.capacity
    rate_rps = question.loading.look_rate_rps(point.data, variant.name)
    if searched and rate_rps:
        variant = at_rate(variant, searched, rate_rps)
    window_s = max(SHORTEST_WINDOW_S, part_s(question.long_look_s) / MOST_WINDOWS)
    ramp_up_s = max(times.ramp_up_s[variant.name], window_s)
    if is_fresh and variant.name in times.in_bursts:
        running.warm_up_in_bursts(variant, times)
    elif is_fresh:
        ramp_up_s = max(times.warmup_s[variant.name], ramp_up_s)
    order = running.order(
        replace(variant, load=variant.load.one_by_one),
        f"long look at {variant.name}, part {number}",
        length_s,
        ramp_up_s=ramp_up_s,
        window_s=window_s,
        turn=number,
    )
    slot = point.testbed.slot(variant.name, order, CourseTracing(SAMPLED_WINDOWS * window_s))
    record = record_of(slot, variant, window_s, ramp_up_s)
    logs = point.folder.round_folder(point.number, running.number, variant.name)
    record = with_failures(record, point.testbed.servers, logs)
    record = thinned_samples(record, happened_in(record))
    if not searched or not rate_rps:
        return record
    return record.replace(trial=_confirming_trial(point, slot, variant, searched, rate_rps))


def _confirming_trial(
    point: RunningPoint,
    slot: Slot,
    variant: PlannedVariant,
    searched: CapacitySettings,
    rate_rps: float,
) -> Trial:
    """Judge a slot by the same rules as in the search for the capacity."""
    record = SlotRecord(
        round=point.finished_rounds,
        slot=0,
        variant=variant.name,
        phase="trial",
        started_at=datetime.now(UTC),
        load=slot.load,
        servers=slot.used.servers,
        readings=slot.used.readings.replace(ceiling=ceiling_of(point, variant)),
    )
    limited = is_client_limited(record, rate_rps, searched.objectives)
    return trial_of(slot.load, rate_rps, searched.objectives, client_limited=limited)


def record_of(
    slot: Slot, variant: PlannedVariant, window_s: float, ramp_up_s: float
) -> LongLookRecord:
    """Return what is kept of a stretch."""
    load, used, _ = slot
    windows = [window for window in load.counted_windows if window.length_s > 0.9 * window_s]
    return LongLookRecord(
        variant=variant.name,
        started_at=datetime.now(UTC),
        took_s=0.0,
        window_s=window_s,
        responses=[window.completed for window in windows],
        failed=[window.failed for window in windows],
        client_pauses=client_pauses(load),
        samples=[
            sample.replace(at_s=sample.at_s - ramp_up_s)
            for sample in used.course
            if sample.at_s >= ramp_up_s
        ],
        server_cpus=used.server_cpus,
        load=load.replace(windows=[]),
        servers=used.servers,
        readings=used.readings.replace(host=used.readings.host.replace(samples=[])),
    )


def with_failures(record: LongLookRecord, servers: ServersHost, logs: Path) -> LongLookRecord:
    """Describe how a server died, and what its log has of failures."""
    died = how_it_died(servers, record.variant)
    if not died and not any(record.failed):
        return record
    return record.replace(died=died, said=exhaustion_in(logs))


def client_pauses(load: LoadResult) -> list[Stall]:
    """Return when the load generator itself stood still, from the ramp-up's end on."""
    return [
        # The first window begins where the ramp-up ends, give or take a float's last digit.
        Stall(at_s=max(window.at_s - load.ramp_up_s, 0), length_s=window.length_s, cause="client")
        for window in load.counted_windows
        if window.stalled
    ]
