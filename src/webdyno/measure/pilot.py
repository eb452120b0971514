"""The pilot: each variant alone, before the rounds, to find the times that it needs.

It looks at one variant at a time, never at a difference between variants. What it finds is on
record, so that a resumed run uses the same times.
"""

import logging
import time
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from math import inf

import numpy as np

from webdyno.comparison import question_of
from webdyno.core.experiment import Experiment
from webdyno.core.format import count, duration, listed
from webdyno.core.looks import ColdFigures, FreshStart, Pilot
from webdyno.core.metrics import METRICS
from webdyno.core.records import PilotRecord
from webdyno.evidence.point_data import PointData
from webdyno.load.interface import GeneratorError, LoginError, program
from webdyno.measure.pilot_looks import (
    PIECE_S,
    WINDOW_S,
    PilotLoad,
    PilotLook,
    look_in_bursts,
    series_after,
    series_of,
    series_of_continuous,
    total_s,
)
from webdyno.measure.planned import PlannedVariant
from webdyno.measure.point import RunningPoint, rng_of
from webdyno.measure.round import refuse_login
from webdyno.measure.variant import RunningRound
from webdyno.planning.pilot import FEWEST_ROUNDS, Needs, in_bursts, settle
from webdyno.planning.settings import (
    FIRST_AFTER_PILOT,
    pilots,
    slot_settings,
    starts_s,
    warmups_may_take_s,
)
from webdyno.servers.service import StackDied

logger = logging.getLogger(__name__)

LONGEST_SHARE, ALL_SHARE = 1 / 30, 1 / 5
"""Of the budget: what the load after fresh starts takes at most, of a variant and of all together,
unless one piece takes more."""
LIMIT_SHARE, FIRST_LOOK_SHARE = 1 / 5, 1 / 2
"""Of a time that is a limit: what pilots take together, so that nothing is looked at again or for
longer that takes them beyond; and how much of a variant's part its first look takes at most."""
LEAST_PIECE_S = 0.5
"""Shortest first look, however little time there is."""
FRESH_STARTS = 2
"""At most; a second one only where a change was seen late, and there is time for as long a look.
docs/validation/coverage.md: what it is worth."""
PLANNED_SHARE = 1 / 4
"""The minimum of rounds should fit into this share of the budget. It limits the windows' length,
unless slow responses need longer ones."""
WINDOW_RESPONSES = 22
"""Length of window and ramp-up for slow responses, in latencies."""
FULL_THROUGHPUT = 0.9


def needs_pilot(experiment: Experiment) -> bool:
    """Return whether a pilot can find something that isn't set.

    For the ramp-up alone it isn't worth its time: who sets slots and warm-up has none without. A
    search for the capacity begins at the throughput that it saw.
    """
    asked = (experiment.measure.slot_s, *map(experiment.warmup_s_of, experiment.variants))
    finds = None in asked or not question_of(experiment).loading.has_windows
    return finds and program(experiment.generator).reports_windows


def is_before_pilots(point: RunningPoint) -> bool:
    return needs_pilot(point.experiment) and not point.finished_rounds and not pilots(point.data)


def run_pilots(point: RunningPoint) -> None:
    """Look at each variant that has no pilot on record, in an order drawn once.

    Servers that don't start raise OperationError, a load generator that fails GeneratorError; a
    server that dies stops the point, unless that goes on without it.
    """
    if not needs_pilot(point.experiment):
        return
    order = rng_of(point.experiment.measure.seed, point.number, "pilot")
    done = pilots(point.data)
    wanted = set(question_of(point.experiment).piloted_variants) - point.failed_variants
    for variant in order.sample(point.variants, len(point.variants)):
        if variant.name in done or variant.name not in wanted:
            continue
        if point.left_s <= max(point.logins_s.values(), default=0.0):
            return
        try:
            record = _look_at(point, variant)
        except StackDied as death:
            point.keep_incident(0, variant.name, death)
            if point.goes_on_after(death.what):
                continue
            point.has_stopped = True
            return
        except LoginError as failed:
            refuse_login(point, 0, failed)
            return
        except GeneratorError as failure:
            point.keep_incident(0, None, failure)
            raise
        point.keep(record)
        point.progress.pilot_ends(record)
    if len(pilots(point.data)) > len(done):
        _notify_shorter_warmups(point)
        _notify_shorter_windows(point)


def _notify_shorter_warmups(point: RunningPoint) -> None:
    warmup_s = slot_settings(point.data).warmup_s
    cut = [
        variant
        for variant, pilot in pilots(point.data).items()
        if point.experiment.warmup_s_of(variant) is None and warmup_s[variant] < pilot.warmup_s
    ]
    if cut:
        point.progress.detail(
            f"the time limit allows {listed(cut)} warm-ups of {warmup_s[cut[0]]:.2g} s, less than "
            "their pilots ask for: a longer --time gives them more"
        )


def _notify_shorter_windows(point: RunningPoint) -> None:
    question = question_of(point.experiment)
    has_windows = question.loading.has_windows and point.experiment.measure.slot_s is None
    if not has_windows or not question.shows_shorter_windows:
        return
    found_s = max(pilot.window_s for pilot in pilots(point.data).values())
    window_s = slot_settings(point.data).window_s
    if window_s < found_s:
        measure = point.experiment.measure
        rounds = count(question.fewest_rounds, "round")
        what_for = (
            f"{rounds} fit into {duration(measure.budget_s)}"
            if measure.budget_is_limit
            else "a clear difference shows soon"
        )
        point.progress.detail(
            f"pilots and ramp-ups take long here: slots of {window_s:.2g} s instead of "
            f"{found_s:.2g} s, so that {what_for}"
        )


def _look_at(point: RunningPoint, variant: PlannedVariant) -> PilotRecord:
    began, began_at = time.monotonic(), datetime.now(UTC)
    point.progress.pilot_begins(point.data.point, variant.name)
    experiment = point.experiment
    piloted = question_of(experiment).piloted_variants
    measure, share = experiment.measure, min(LONGEST_SHARE, ALL_SHARE / len(piloted))
    longest_s = share * measure.budget_s
    is_limit = measure.budget_is_limit
    ends_s = point.used_s + LIMIT_SHARE * measure.budget_s / len(piloted) if is_limit else inf
    looks, works_on = list[PilotLook](), False
    for left in reversed(range(FRESH_STARTS)):
        start_began = time.monotonic()
        logger.debug("pilot of %s at point %d", variant.name, point.number)
        with RunningRound(point, 0) as running:
            up = running.start(variant)
            running.get_ready(variant)
            start_s = time.monotonic() - start_began
            load = PilotLoad(running, variant)
            left_s = longest_s - total_s(looks)
            needs_of = partial(_needs, point.data, variant.name, start_s)
            piece_s = min(PIECE_S, max(FIRST_LOOK_SHARE * (ends_s - point.used_s), LEAST_PIECE_S))
            most_s = max(min(left_s, ends_s - point.used_s), piece_s)
            step, starts = load.until_steady(
                looks, most_s, needs_of, piece_s=piece_s, ends_s=ends_s, is_last_start=not left
            )
            works_on |= load.works_on
            seen = looks[-1]
            has_time = longest_s >= 2 * seen.length_s or seen.length_s <= PIECE_S
            has_time &= point.used_s + start_s + total_s([seen, *starts]) <= ends_s
            if step != "again" or not has_time:
                break
    needs = needs_of(seen.latency_s)
    pilot = settle(*series_of(looks, starts), needs)
    cold = _cold(seen, pilot, up.ready_s, up.cpu_s)
    bursts = look_in_bursts(
        point, variant, needs, looks, works_on=works_on, within_s=ends_s - point.used_s
    )
    if bursts and bursts.summary:
        pilot = in_bursts(pilot, len(bursts.bursts), series_after(bursts), bursts.summary)
    elif bursts and bursts.continuous:
        # The longest look of all, where pauses are worth nothing.
        longest = settle([series_of_continuous(bursts)], [], needs)
        pilot = pilot.replace(
            warmup_s=longest.warmup_s, steady=longest.steady, why=f"{longest.why}; {pilot.why}"
        )
    return PilotRecord(
        variant=variant.name,
        started_at=began_at,
        took_s=time.monotonic() - began,
        window_s=WINDOW_S,
        earlier=[FreshStart(responses=each.responses, cpu_s=each.cpu_s) for each in looks[:-1]],
        responses=seen.responses,
        cpu_s=seen.cpu_s,
        load_starts=[each.responses for each in starts],
        load_starts_cpu_s=[each.cpu_s for each in starts],
        start_s=start_s,
        latency_s=seen.latency_s,
        bursts=bursts,
        found=pilot,
        cold=cold,
    )


def _needs(data: PointData, variant: str, start_s: float, latency_s: float | None) -> Needs:
    """Return the caps: a warm-up is one variant's, but the longest window is that of all.

    So windows are as short as it takes that the fewest rounds of the question fit into the budget,
    which are 13 where 14 variants are ranked. One warm-up may take half of what all may take, less
    where more variants are measured alike; the longest are cut after the pilots, where all take
    more together.
    """
    experiment = data.experiment
    measure, variants = experiment.measure, len(experiment.variants)

    def within(budget_s: float, rounds: int = FEWEST_ROUNDS) -> Needs:
        return Needs.within(
            budget_s,
            variants=variants,
            start_s=start_s,
            latency_s=latency_s or 0.0,
            quantile=METRICS[measure.decide_on].quantile,
            slots_per_round=measure.slots_per_variant or FIRST_AFTER_PILOT,
            rounds=rounds,
        )

    question = question_of(experiment)
    rounds = max(FEWEST_ROUNDS, question.fewest_rounds)
    planned = within(measure.budget_s * PLANNED_SHARE)
    longest = within(measure.budget_s, rounds)
    slow_s = WINDOW_RESPONSES * (latency_s or 0.0)
    warmups_s = warmups_may_take_s(data, starts_s(data) | {variant: start_s})
    sharing = max(2, len(question.measured_alike(variant)))
    own = within(measure.budget_s)
    return replace(
        own,
        most_slot_s=max(planned.most_slot_s, min(longest.most_slot_s, slow_s)),
        most_warmup_s=max(own.most_warmup_s, warmups_s / sharing),
    )


def _cold(seen: PilotLook, pilot: Pilot, ready_s: float, until_ready_s: float) -> ColdFigures:
    """Find where throughput nearly reached its steady state; windows of 25 responses or more."""
    throughput = seen.series()[0]
    steady = float(np.median(throughput.since(pilot.warmup_s).logs))
    reached = np.flatnonzero(throughput.logs >= steady + np.log(FULL_THROUGHPUT))
    if seen.failed or not len(reached):
        return ColdFigures(first_response_s=ready_s, full_throughput_s=None, cpu_s=None)
    windows = (int(reached[0]) + 1) * seen.joined_windows
    cpu_s = until_ready_s + sum(seen.cpu_s[:windows]) if seen.cpu_s else None
    return ColdFigures(
        first_response_s=ready_s, full_throughput_s=ready_s + windows * WINDOW_S, cpu_s=cpu_s
    )
