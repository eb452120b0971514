"""With which times rounds are measured: the user's own, else adjustments', else the pilots'."""

from collections.abc import Mapping, Sequence
from math import inf
from typing import TypeVar

from webdyno.comparison import question_of
from webdyno.comparison.stop import (
    PILOT_ROUNDS,
    chosen_slots_per_variant,
    round_costs_s,
    seconds_for_a_variant,
)
from webdyno.core.experiment import Experiment
from webdyno.core.looks import Pilot, SlotSettings
from webdyno.core.records import AdjustmentRecord
from webdyno.evidence.point_data import PointData, compute_once
from webdyno.planning.fitting import fit_settings, pilots_on_record, warmed_up_apart
from webdyno.planning.pilot import FEWEST_ROUNDS, WARMUP_SHARE
from webdyno.validity import used_s

FIRST_AFTER_PILOT = 2
Seen = TypeVar("Seen")

WARMUP_S, RAMP_UP_S, WINDOW_S = 1.0, 0.0, 0.5
"""Defaults where neither the user nor a pilot has any."""
START_S = 0.125
"""Estimate for a fast variant in a round: start, stop and what lies between slots."""
SPARE_S = 0.35
"""For each variant: by so much the fewest rounds may take longer than its windows and `START_S` let
expect, and still end in time; half of what their starts take, about."""
SHORT_WINDOW_S, LEAST_WINDOW_S = 0.6, 0.4
"""A window that may be shortened for a prompt answer, and how short it may become: the usual one is
`SHORTEST_WINDOW_S`, and longer ones have a reason."""
BURSTS_IN_WINDOW = 20
COUNTED_S = 0.3
"""Least time to count calls in: thousands of requests to a fast server."""


@compute_once
def slot_settings(data: PointData) -> SlotSettings:
    """Return the settings of a point's next round, from what is on record of that point.

    Where samples are taken all warm up in a slot of their own, in which system calls are counted.
    """
    adjusted = _adjustment(data)
    settings = _even_out(adjusted or _found_settings(data), data.experiment)
    if adjusted is None and data.measure.slot_s is None:
        settings = _as_asked(_quick(settings, data), data)
    settings = fit_settings(settings, data, pilots(data))
    if not data.experiment.profile:
        return settings
    counted_s = {
        variant: max(warmup_s, settings.ramp_up_s.get(variant, 0.0) + COUNTED_S)
        for variant, warmup_s in settings.warmup_s.items()
    }
    return settings.replace(warmup_s=counted_s)


def _adjustment(data: PointData) -> SlotSettings | None:
    """Return the settings of the last adjustment that has any: they hold until the next one."""
    for record in reversed(data.records):
        if isinstance(record, AdjustmentRecord) and record.settings is not None:
            return record.settings
    return None


def _even_out(settings: SlotSettings, experiment: Experiment) -> SlotSettings:
    """Let variants that are measured alike have what the one needs that needs most.

    A pilot may find that one of two equal servers has to warm up, and the other not. Measured so,
    they differ: a JIT compiler's warm-up made two equal baselines of a gate differ by 38%.
    """
    question = question_of(experiment)
    alike = {variant: question.measured_alike(variant) for variant in experiment.variants}

    def longest(times: Mapping[str, float]) -> dict[str, float]:
        return {
            variant: max(times.get(other, 0.0) for other in others)
            for variant, others in alike.items()
        }

    return settings.replace(
        warmup_s=longest(settings.warmup_s),
        ramp_up_s=longest(settings.ramp_up_s),
        phase_s=longest(settings.phase_s),
        in_bursts=[
            variant
            for variant, others in alike.items()
            if not set(others).isdisjoint(settings.in_bursts)
        ],
    )


def _found_settings(data: PointData) -> SlotSettings:
    """Return the settings that pilots and user ask for.

    Warm-up and ramp-up are each variant's own. The window is that of the variant that needs most,
    the same for all, so that interference with each variant is alike.
    """
    measure, by_pilot = data.measure, pilots(data)
    by_variant = _first_alike(data, by_pilot)
    longest_s = _longest_warmup_s(data)
    # A random start in the cycle of connections that wait for responses. Servers that answer all
    # connections in a batch, rest, and begin again give so many batches in a window, always the
    # same number if it always begins at the same moment: no noise, and off by up to a batch.
    # Systematic sampling asks for such a start (Cochran, "Sampling Techniques", 1977, section 8.1).
    phase_s = {pilot.variant: pilot.latency_s or 0.0 for pilot in pilots_on_record(data)}
    return SlotSettings(
        warmup_s={
            variant: _given(
                data.experiment.warmup_s_of(variant),
                [pilot.warmup_within(longest_s) for pilot in of_variant],
                WARMUP_S,
            )
            for variant, of_variant in by_variant.items()
        },
        ramp_up_s={
            variant: _given(measure.ramp_up_s, [pilot.ramp_up_s for pilot in of_variant], RAMP_UP_S)
            for variant, of_variant in by_variant.items()
        },
        in_bursts=[
            variant
            for variant, of_variant in by_variant.items()
            if data.experiment.warmup_bursts_of(variant) == "on"
            or any(pilot.in_bursts for pilot in of_variant)
        ],
        window_s=max(
            _given(measure.slot_s, [pilot.window_s for pilot in by_pilot.values()], WINDOW_S),
            0.0 if measure.slot_s else window_for_bursts_s(data.experiment),
        ),
        phase_s=phase_s if measure.ramp_up_s is None else {},
        slots_per_variant=measure.slots_per_variant,
    )


def _first_alike(data: PointData, seen: Mapping[str, Seen]) -> dict[str, list[Seen]]:
    """Return for each variant what was seen of it, or of one that is measured alike; or nothing."""
    alike = question_of(data.experiment).measured_alike
    return {
        variant: [seen[other] for other in alike(variant) if other in seen][:1]
        for variant in data.experiment.variants
    }


def warmups_may_take_s(data: PointData, start_s: Mapping[str, float]) -> float:
    """Return how long all warm-ups of a round may take together.

    A third of what starts leave, where the fewest rounds of the question fill the time limit.
    `start_s`: the starts seen so far, by variant; others count as fast.
    """
    known_s = _first_alike(data, start_s).values()
    starting_s = sum(known[0] if known else START_S for known in known_s)
    rounds = max(FEWEST_ROUNDS, question_of(data.experiment).fewest_rounds)
    return WARMUP_SHARE * max(data.measure.budget_s / rounds - starting_s, 0.0)


def _longest_warmup_s(data: PointData) -> float:
    """Return how long one warm-up may take: short ones are kept, long ones share the rest."""
    by_variant = _first_alike(data, pilots(data))
    given_s = {variant: data.experiment.warmup_s_of(variant) for variant in by_variant}
    asked_s = sorted(
        pilot.warmup_takes_s
        for variant, of_variant in by_variant.items()
        for pilot in of_variant
        if given_s[variant] is None
    )
    left_s = warmups_may_take_s(data, starts_s(data)) - sum(filter(None, given_s.values()))
    for shorter, takes_s in enumerate(asked_s):
        part_s = max(left_s, 0.0) / (len(asked_s) - shorter)
        if takes_s > part_s:
            return part_s
        left_s -= takes_s
    return inf


def window_for_bursts_s(experiment: Experiment) -> float:
    """Return how long windows have to be at least, so that as many bursts come in each."""
    loads = (experiment.load_of(variant) for variant in experiment.variants)
    return BURSTS_IN_WINDOW * max(load.burst_gap_s for load in loads)


def _quick(settings: SlotSettings, data: PointData) -> SlotSettings:
    """Shorten short windows where pilots, and what comes before windows, leave them little time.

    The fewest rounds are to end in time for a prompt answer. Longer windows are kept: they have a
    reason, such as slow responses.
    """
    of_a_variant_s = seconds_for_a_variant(data.measure)
    took_s = [pilot.took_s for pilot in pilots_on_record(data)]
    if of_a_variant_s is None or not took_s or settings.window_s > SHORT_WINDOW_S:
        return settings
    warmup_s, ramp_up_s = settings.warmup_s, settings.ramp_up_s
    apart_s = sum(map(settings.warmup_takes_s, warmed_up_apart(settings)))
    variants = len(warmup_s)
    left_s = (of_a_variant_s - SPARE_S) * variants - sum(took_s)
    round_s = left_s / FEWEST_ROUNDS - START_S * variants - apart_s
    ramps_s = sum(data.experiment.load_of(variant).connection_ramp_s for variant in warmup_s)
    fitting_s = (round_s / FIRST_AFTER_PILOT - sum(ramp_up_s.values()) - ramps_s) / variants
    least_s = max(LEAST_WINDOW_S, window_for_bursts_s(data.experiment))
    window_s = min(settings.window_s, max(fitting_s, least_s))
    return settings.replace(window_s=window_s)


def _as_asked(settings: SlotSettings, data: PointData) -> SlotSettings:
    """Change short windows, and have few of them, where the question says so."""
    if settings.window_s > SHORT_WINDOW_S:
        return settings
    window_s = question_of(data.experiment).window_s(settings.window_s, data)
    if window_s is None:
        return settings
    window_s = max(window_s, window_for_bursts_s(data.experiment))
    return settings.replace(
        window_s=window_s, slots_per_variant=settings.slots_per_variant or FIRST_AFTER_PILOT
    )


def slots_per_variant(data: PointData) -> int:
    """Return the slots of each variant in a point's next round.

    After a pilot the first rounds have the fewest that are balanced: six are enough for a clear
    difference. What isn't clear then gets more, where that saves time and the budget allows it.
    """
    if (fixed := slot_settings(data).slots_per_variant) is not None:
        return fixed
    finished = len(data.rounds)
    if pilots(data) and finished < PILOT_ROUNDS:
        return FIRST_AFTER_PILOT
    chosen = chosen_slots_per_variant(data)
    return chosen if not pilots(data) or _fits(chosen, data) else FIRST_AFTER_PILOT


def _fits(slots: int, data: PointData) -> bool:
    """Whether the rounds that a verdict still lacks fit into the budget with so many slots."""
    lacking = question_of(data.experiment).fewest_rounds - len(data.rounds)
    lacking = max(lacking, 1) if data.measure.budget_is_limit else lacking
    variants = len(data.experiment.variants)
    start_s, slot_s = round_costs_s(data, variants)
    lacking_s = lacking * variants * (start_s + slots * slot_s)
    longest_s = min(data.measure.budget_s * data.measure.patience, data.measure.limit_s)
    return lacking <= 0 or used_s(data) + lacking_s <= longest_s


def starts_s(data: PointData) -> dict[str, float]:
    """Return how long the starts took that pilots have on record, by variant."""
    return {
        pilot.variant: pilot.start_s
        for pilot in pilots_on_record(data)
        if pilot.start_s is not None
    }


@compute_once
def pilots(data: PointData) -> dict[str, Pilot]:
    """Return what the pilots of a point found, by variant."""
    return {record.variant: record.found for record in pilots_on_record(data)}


def _given(given_s: float | None, found_s: Sequence[float], otherwise_s: float) -> float:
    if given_s is not None:
        return given_s
    return max(found_s, default=otherwise_s)
