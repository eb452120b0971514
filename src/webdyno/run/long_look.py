"""The long look: after the rounds, one long stretch of load on each variant.

Nothing is restarted in it, so that it shows what servers do only later: stalls, drifts, growth. It
is put on record by the part, so that one which is interrupted goes on later.
"""

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from webdyno.generator.interface import GeneratorError
from webdyno.judge import question_of
from webdyno.judge.long_look import happened_in
from webdyno.judge.look_length import (
    lacking_looks,
    left_s,
    look_parts_of,
    part_s,
    why_over,
)
from webdyno.judge.look_records import thinned_samples
from webdyno.judge.settings import slot_settings
from webdyno.model.capacity import CapacitySettings, Trial, trial_of
from webdyno.model.load_result import LoadResult
from webdyno.model.long_look import ServerSample, Stall
from webdyno.model.records import LongLookRecord, SlotRecord
from webdyno.run.arm import RunningBlock, ceiling_of
from webdyno.run.backend import CourseTracing, ServersHost, Slot
from webdyno.run.capacity import at_rate, is_client_limited
from webdyno.run.planned import PlannedArm
from webdyno.run.point import RunningPoint, prepared, rng_of
from webdyno.stack.log import exhaustion_in
from webdyno.stack.service import StackDied

SHORTEST_WINDOW_S, MOST_WINDOWS = 0.025, 2_400
"""Of a part of a long look."""
SAMPLED_WINDOWS = 2
"""Number of windows between two readings of the servers."""


def run_long_looks(point: RunningPoint) -> None:
    """Look at each variant whose long look isn't over, in an order drawn once.

    How a server died meanwhile is a part of its record. One that doesn't start is on record, and
    ends the looks; so is a load generator that fails.
    """
    order = rng_of(point.experiment.measure.seed, point.number, "long look")
    lacking = lacking_looks(point.data)
    for arm in order.sample(point.arms, len(point.arms)):
        if arm.name not in lacking:
            continue
        left = left_s(look_parts_of(point.data, arm.name), point.experiment)
        point.progress.long_look_begins(point.data.point, arm.name, left)
        try:
            _look_at(point, arm)
        except StackDied as death:
            point.keep_incident(point.finished_blocks, arm.name, death)
            return
        except GeneratorError as failure:
            point.keep_incident(point.finished_blocks, None, failure)
            return
        point.progress.long_look_ends(look_parts_of(point.data, arm.name))


def _look_at(point: RunningPoint, arm: PlannedArm) -> None:
    """Load a variant for so long as its look lacks without a break, and keep each part at once."""
    parts = look_parts_of(point.data, arm.name)
    longest_s = part_s(question_of(point.experiment).long_look_s)
    stretch = parts[-1].stretch + 1 if parts else 0
    began, began_at = time.monotonic(), datetime.now(UTC)
    with prepared(point, 0), RunningBlock(point, 0) as running:
        running.start(arm)
        point.testbed.clients.get_ready(arm.name)
        while not parts or parts[-1].ended_by is None:
            left = left_s(parts, point.experiment)
            part = sum(it.stretch == stretch for it in parts)
            measured = _part(running, arm, min(longest_s, left), len(parts), is_fresh=not part)
            placed = measured.replace(
                stretch=stretch,
                part=part,
                started_at=began_at,
                took_s=time.monotonic() - began,
            )
            began, began_at = time.monotonic(), datetime.now(UTC)
            ended_by = why_over([*parts, placed], point.experiment)
            parts.append(placed.replace(ended_by=ended_by))
            point.keep(parts[-1])
            point.progress.long_look_goes_on(parts[-1])


def _part(
    running: RunningBlock, arm: PlannedArm, length_s: float, number: int, *, is_fresh: bool
) -> LongLookRecord:
    """Load a variant for one part of its look; what is random is drawn anew for each.

    One that was just started warms up before it, as in each round.
    """
    point = running.point
    times, question = slot_settings(point.data), question_of(point.experiment)
    searched = point.experiment.capacity
    rate_rps = question.loading.look_rate_rps(point.data, arm.name)
    if searched and rate_rps:
        arm = at_rate(arm, searched, rate_rps)
    window_s = max(SHORTEST_WINDOW_S, part_s(question.long_look_s) / MOST_WINDOWS)
    lead_in_s = max(times.lead_in_s[arm.name], window_s)
    if is_fresh and arm.name in times.in_bursts:
        running.warm_up_in_bursts(arm, times)
    elif is_fresh:
        lead_in_s = max(times.warmup_s[arm.name], lead_in_s)
    order = running.order(
        arm,
        f"long look at {arm.name}, part {number}",
        length_s,
        lead_in_s=lead_in_s,
        part_s=window_s,
        turn=number,
    )
    slot = point.testbed.slot(arm.name, order, CourseTracing(SAMPLED_WINDOWS * window_s))
    record = recorded(slot, arm, window_s, lead_in_s)
    logs = point.folder.block_folder(point.number, running.number, arm.name)
    record = with_failures(record, point.testbed.servers, logs)
    record = thinned_samples(record, happened_in(record))
    if not searched or not rate_rps:
        return record
    return record.replace(trial=_confirmed(point, arm, slot, searched, rate_rps))


def _confirmed(
    point: RunningPoint, arm: PlannedArm, slot: Slot, searched: CapacitySettings, rate_rps: float
) -> Trial:
    """Tell whether the objectives hold, by the same rules as in the search for the capacity."""
    asked = SlotRecord(
        block=point.finished_blocks,
        slot=0,
        arm=arm.name,
        phase="trial",
        started_at=datetime.now(UTC),
        load=slot.load,
        servers=slot.used.servers,
        readings=slot.used.readings.replace(ceiling=ceiling_of(point, arm)),
    )
    limited = is_client_limited(asked)
    return trial_of(slot.load, rate_rps, searched.objectives, client_limited=limited)


def recorded(slot: Slot, arm: PlannedArm, window_s: float, lead_in_s: float) -> LongLookRecord:
    """Give what is kept of a stretch."""
    load, used = slot
    windows = [window for window in load.counted_windows if window.length_s > 0.9 * window_s]
    return LongLookRecord(
        arm=arm.name,
        started_at=datetime.now(UTC),
        took_s=0.0,
        window_s=window_s,
        responses=[window.completed for window in windows],
        failed=[window.failed for window in windows],
        client_pauses=_client_pauses(load),
        samples=_after(used.course, lead_in_s),
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
        servers.check_alive(record.arm)
    except StackDied as death:
        died = death.what
    if not died and not any(record.failed):
        return record
    return record.replace(died=died, said=exhaustion_in(logs))


def _client_pauses(load: LoadResult) -> list[Stall]:
    return [
        Stall(at_s=window.at_s - load.lead_in_s, length_s=window.length_s, cause="client")
        for window in load.counted_windows
        if window.stood_still
    ]


def _after(course: Sequence[ServerSample], begin_s: float) -> list[ServerSample]:
    """Give what was read from a moment on, with times counted from there."""
    return [it.replace(at_s=it.at_s - begin_s) for it in course if it.at_s >= begin_s]
