"""The long look: after the rounds, one long stretch of load on each variant.

Nothing is restarted in it, so that it shows what servers do only later: stalls, drifts, growth.
"""

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from statistics import geometric_mean

from webdyno.generator import GeneratorError
from webdyno.judge.long_look import SEEN_STALLS, long_look_s, stalls_of
from webdyno.judge.measured import Measured
from webdyno.judge.settings import slot_settings
from webdyno.model.capacity import trial_of
from webdyno.model.load_result import LoadResult
from webdyno.model.long_look import ServerSample, Stall
from webdyno.model.metrics import CAPACITY, metric_rule
from webdyno.model.records import LongLookRecord
from webdyno.run.arm import RunningBlock
from webdyno.run.capacity import at_rate
from webdyno.run.host import Course
from webdyno.run.planned import PlannedArm
from webdyno.run.point import MeasuredPoint, prepared, rng_of
from webdyno.run.roles import Slot
from webdyno.stack import StackDied

SHORTEST_WINDOW_S, MOST_WINDOWS = 0.025, 2_400
CONFIRMED_SHARE = 0.95
"""Of a capacity that was found: intervals of it are some per cent wide."""
CLIENT_LATE_SHARE = 0.5
SAMPLED_WINDOWS = 2
"""The servers are read every so many windows."""


def run_long_looks(at: MeasuredPoint) -> None:
    """Look at each variant that has no long look on record, in an order drawn once.

    A server that dies then is on record, and ends the looks; so is a load generator that fails.
    """
    look_s = long_look_s(at.experiment)
    looked_at = {it.arm for it in at.records if isinstance(it, LongLookRecord)}
    left = [arm for arm in at.racing() if arm.name not in looked_at]
    if at.experiment.capacity:
        left = [arm for arm in left if _nearly_capacity_rps(at, arm.name)]
    if not look_s or not left:
        return
    order = rng_of(at.experiment.measure.seed, at.point.number, "long look")
    for arm in order.sample(left, len(left)):
        at.progress.long_look_begins(at.point, arm.name, look_s)
        try:
            record = _look_at(at, arm, look_s)
        except StackDied as death:
            at.keep_incident(at.finished_blocks, arm.name, death)
            return
        except GeneratorError as failure:
            at.keep_incident(at.finished_blocks, None, failure)
            return
        at.keep(record)
        at.progress.long_look_ends(record)


def _look_at(at: MeasuredPoint, arm: PlannedArm, look_s: float) -> LongLookRecord:
    """Load a variant for so long without a break; longer where it stalls, to see how often."""
    began, began_at = time.monotonic(), datetime.now(UTC)
    with prepared(at, 0), RunningBlock(at, 0) as running:
        running.start(arm)
        at.roles.clients.get_ready(arm.name)
        record = _stretch(running, arm, look_s, began_at)
        seen = stalls_of(record)
        if 0 < len(seen) < SEEN_STALLS:
            wanted_s = _for_stalls_s(seen, look_s)
            longer_s = min(max(wanted_s, 2 * look_s), SEEN_STALLS * look_s)
            record = _stretch(running, arm, longer_s, began_at)
    return record.model_copy(update={"took_s": time.monotonic() - began})


def _for_stalls_s(seen: Sequence[Stall], look_s: float) -> float:
    """Give how long it takes to see stalls enough, by those that were seen."""
    first, last = seen[0].at_s, seen[-1].at_s
    every_s = (last - first) / (len(seen) - 1) if len(seen) > 1 else look_s
    return (SEEN_STALLS + 0.5) * every_s


def _stretch(
    running: RunningBlock, arm: PlannedArm, look_s: float, began_at: datetime
) -> LongLookRecord:
    at = running.at
    times = slot_settings(at.records, at.experiment)
    searched = at.experiment.capacity
    rate_rps = _nearly_capacity_rps(at, arm.name) if searched else None
    if searched and rate_rps:
        arm = at_rate(arm, searched, rate_rps)
    window_s = max(SHORTEST_WINDOW_S, look_s / MOST_WINDOWS)
    lead_in_s = max(times.warmup_s[arm.name], times.lead_in_s[arm.name], window_s)
    order = running.order(
        arm, f"long look at {arm.name}", look_s, lead_in_s=lead_in_s, part_s=window_s
    )
    slot = at.roles.slot(arm.name, order, Course(SAMPLED_WINDOWS * window_s))
    at.roles.servers.check_alive(arm.name)
    record = _recorded(slot, arm, began_at, window_s, lead_in_s)
    if not searched or not rate_rps:
        return record
    trial = trial_of(
        slot.load, rate_rps, searched.objectives, client_limited=_client_was_late(slot.load)
    )
    return record.model_copy(update={"trial": trial})


def _nearly_capacity_rps(at: MeasuredPoint, arm: str) -> float | None:
    """Give a rate just below the capacity that the blocks found of an arm, if they found one."""
    measured = Measured.of(at.records)
    found = measured.values(arm, metric_rule(CAPACITY)).values()
    return CONFIRMED_SHARE * geometric_mean(found) if found else None


def _client_was_late(load: LoadResult) -> bool:
    """Whether the load generator's own lag may have made what was late late."""
    lag_us, response_us = load.send_lag_us.p99, load.response_time_us.p99
    return bool(lag_us and response_us and lag_us > CLIENT_LATE_SHARE * response_us)


def _recorded(
    slot: Slot, arm: PlannedArm, began_at: datetime, window_s: float, lead_in_s: float
) -> LongLookRecord:
    load, used = slot
    return LongLookRecord(
        arm=arm.name,
        started_at=began_at,
        took_s=0.0,
        window_s=window_s,
        responses=[it.completed for it in load.counted_windows if it.length_s > 0.9 * window_s],
        client_pauses=_client_pauses(load),
        samples=_after(used.course, lead_in_s),
        server_cpus=used.server_cpus,
        load=load.model_copy(update={"windows": []}),
        servers=used.servers,
        readings=used.readings.model_copy(
            update={"host": used.readings.host.model_copy(update={"samples": []})}
        ),
    )


def _client_pauses(load: LoadResult) -> list[Stall]:
    """Give the windows in which the load generator itself stood still."""
    return [
        Stall(at_s=it.at_s - load.lead_in_s, length_s=it.length_s, cause="client")
        for it in load.counted_windows
        if it.stood_still
    ]


def _after(course: Sequence[ServerSample], begin_s: float) -> list[ServerSample]:
    """Give what was read from a moment on, with times counted from there."""
    return [
        it.model_copy(update={"at_s": it.at_s - begin_s}) for it in course if it.at_s >= begin_s
    ]
