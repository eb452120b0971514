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
from webdyno.core.capacity import CapacitySettings, Trial, trial_of
from webdyno.core.load_result import LoadResult
from webdyno.core.long_look import ServerSample, Stall
from webdyno.core.records import LongLookRecord, SlotRecord
from webdyno.evidence.long_look import happened_in
from webdyno.evidence.look_records import thinned_samples
from webdyno.load.interface import GeneratorError
from webdyno.measure.backend import CourseTracing, ServersHost, Slot
from webdyno.measure.capacity import at_rate, is_client_limited
from webdyno.measure.planned import PlannedVariant
from webdyno.measure.point import RunningPoint, prepared, rng_of
from webdyno.measure.variant import RunningRound, ceiling_of
from webdyno.planning.look_length import left_s, look_parts_of, part_s, why_over
from webdyno.planning.settings import slot_settings
from webdyno.servers.log import exhaustion_in
from webdyno.servers.service import StackDied

logger = logging.getLogger(__name__)

SHORTEST_WINDOW_S, MOST_WINDOWS = 0.025, 2_400
"""Of a part of a long look."""
SAMPLED_WINDOWS = 2
"""Number of windows between two readings of the servers."""


def look_fits(point: RunningPoint, variant: str) -> bool:
    """Whether a variant's look ends within a time that is a limit.

    One whose length the user gave comes on top of that.
    """
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
    ends the looks; so is a load generator that fails. Nor does one begin for which there is no
    time.
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
    with prepared(point, 0), RunningRound(point, 0) as running:
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
    record = recorded(slot, variant, window_s, ramp_up_s)
    logs = point.folder.round_folder(point.number, running.number, variant.name)
    record = with_failures(record, point.testbed.servers, logs)
    record = thinned_samples(record, happened_in(record))
    if not searched or not rate_rps:
        return record
    return record.replace(trial=_confirmed(point, variant, slot, searched, rate_rps))


def _confirmed(
    point: RunningPoint,
    variant: PlannedVariant,
    slot: Slot,
    searched: CapacitySettings,
    rate_rps: float,
) -> Trial:
    """Return whether the objectives hold, by the same rules as in the search for the capacity."""
    asked = SlotRecord(
        round=point.finished_rounds,
        slot=0,
        variant=variant.name,
        phase="trial",
        started_at=datetime.now(UTC),
        load=slot.load,
        servers=slot.used.servers,
        readings=slot.used.readings.replace(ceiling=ceiling_of(point, variant)),
    )
    limited = is_client_limited(asked)
    return trial_of(slot.load, rate_rps, searched.objectives, client_limited=limited)


def recorded(
    slot: Slot, variant: PlannedVariant, window_s: float, ramp_up_s: float
) -> LongLookRecord:
    """Give what is kept of a stretch."""
    load, used, _ = slot
    windows = [window for window in load.counted_windows if window.length_s > 0.9 * window_s]
    return LongLookRecord(
        variant=variant.name,
        started_at=datetime.now(UTC),
        took_s=0.0,
        window_s=window_s,
        responses=[window.completed for window in windows],
        failed=[window.failed for window in windows],
        client_pauses=_client_pauses(load),
        samples=_after(used.course, ramp_up_s),
        server_cpus=used.server_cpus,
        load=load.replace(windows=[]),
        servers=used.servers,
        readings=used.readings.replace(
            host=used.readings.host.replace(samples=[]),
        ),
    )


def with_failures(record: LongLookRecord, servers: ServersHost, logs: Path) -> LongLookRecord:
    """Say how a server died, and what its log has of failures."""
    died = ""
    try:
        servers.check_alive(record.variant)
    except StackDied as death:
        died = death.what
    if not died and not any(record.failed):
        return record
    return record.replace(died=died, said=exhaustion_in(logs))


def _client_pauses(load: LoadResult) -> list[Stall]:
    return [
        # The first window begins where the ramp-up ends, give or take a float's last digit.
        Stall(at_s=max(window.at_s - load.ramp_up_s, 0), length_s=window.length_s, cause="client")
        for window in load.counted_windows
        if window.stalled
    ]


def _after(course: Sequence[ServerSample], begin_s: float) -> list[ServerSample]:
    """Give what was read from a moment on, with times counted from there."""
    return [
        sample.replace(at_s=sample.at_s - begin_s) for sample in course if sample.at_s >= begin_s
    ]
