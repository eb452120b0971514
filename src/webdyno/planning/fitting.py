"""Times of slots and trials that fit into a time which is a limit.

What an answer takes at least is to end in it: where it doesn't, rounds have fewer slots, shorter
warm-ups, windows and ramp-ups. That goes by what rounds cost, never by what they measured.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean

from webdyno.comparison import question_of
from webdyno.comparison.capacity_rules import DECIDING_TRIAL, FIRST_NARROWING, NARROWING
from webdyno.core.experiment import Experiment
from webdyno.core.looks import WAKE_AFTER_S, WAKE_S, Pilot, SlotSettings
from webdyno.core.measure import CapacitySettings
from webdyno.core.records import IncidentRecord, PilotRecord, RoundRecord, SlotRecord
from webdyno.evidence.point_data import PointData
from webdyno.planning.pilot import FEWEST_SLOTS, WARMUP_SHARE, cut_slot

FIT_SHARE = 0.9
"""Of a limit: by then the fewest rounds are to end, since some take longer than others."""
LEAST_WINDOW_S, LEAST_WINDOW_RESPONSES = 0.2, 4
"""No window is made shorter than that, or than so many latencies."""
START_S, SLOT_OWN_S = 0.15, 0.08
"""Before any round: what it takes to stop a variant and to compare its responses, besides its start
and its slots; and what a slot takes besides its load."""
SEARCH_SHARE = 0.8
"""Estimate of the share of a search that is loads."""


@dataclass(frozen=True)
class _Cost:
    """What a round took, and how much of that were its loads, warm-ups included."""

    took_s: float
    loads_s: float
    longest_s: float
    """The longest of these."""
    slots: int
    """Without warm-ups."""
    rested_s: float
    """How much of it slots waited for servers to rest."""

    @property
    def own_s(self) -> float:
        return max(self.took_s - self.loads_s - self.rested_s, 0.0)


def pilots_on_record(data: PointData) -> list[PilotRecord]:
    return [record for record in data.records if isinstance(record, PilotRecord)]


def next_round_s(data: PointData, slots: int) -> float:
    """Estimate how long a round with so many slots would take; 0 where none has ended yet."""
    costs = _costs(data)
    if not costs:
        return 0.0
    last = costs[-1]
    more = slots - last.slots if question_of(data.experiment).loading.has_windows else 0
    return last.took_s + more * last.took_s / max(last.slots, 1)


def fit_settings(
    settings: SlotSettings, data: PointData, pilots: Mapping[str, Pilot]
) -> SlotSettings:
    """Return settings with which the fewest rounds that bring an answer end within a limit.

    What the user set stays. Once that many rounds are done, those after them are like the last.
    Waits until servers rest take what loads leave: a slot that begins too early has a bound, while
    nobody knows how slow a shorter warm-up leaves a compiled program (twelve times as slow, once).
    """
    question = question_of(data.experiment)
    if not data.measure.budget_is_limit or not question.loading.has_windows:
        return settings
    costs = _costs(data)
    before = len(costs) - len(data.rounds)  # those that don't count any more took time as well
    most = min(len(data.rounds), question.fewest_rounds - 1)
    pilots_s = sum(pilot.took_s for pilot in pilots_on_record(data))
    loads_s = 0.0
    for rounds in range(most + 1):
        done = costs[: before + rounds]
        left_s = FIT_SHARE * data.measure.limit_s - pilots_s - sum(cost.took_s for cost in done)
        round_s = max(left_s, 0.0) / (question.fewest_rounds - rounds)
        own_s = fmean(cost.own_s for cost in done) if done else _own_s(settings, data)
        loads_s = max(round_s - own_s, 0.0)
        settings = _within(loads_s, settings, data, pilots)
    unused_s = max(loads_s - _loads_s(settings, data), 0.0)
    return settings.replace(rest_s=min(settings.rest_s, unused_s / len(settings.warmup_s)))


def fitted_trials(
    settings: CapacitySettings, data: PointData, rounds: int, left_s: float
) -> CapacitySettings:
    """Return trials so short that so many searches of each variant end in the time that is left."""
    if settings.longest_trial_s is not None or not data.measure.budget_is_limit:
        return settings
    variants = len(data.experiment.variants)
    costs = [cost for cost in _costs(data) if cost.longest_s]
    if costs:
        lengths = rounds * fmean(cost.took_s / cost.longest_s for cost in costs)
    else:
        lengths = FIRST_NARROWING + (rounds - 1) * NARROWING + rounds * DECIDING_TRIAL
        lengths *= variants / SEARCH_SHARE
    trial_s = max(FIT_SHARE * left_s / lengths, settings.least_deciding_s)
    return settings.replace(longest_trial_s=min(settings.deciding_s, trial_s))


def _costs(data: PointData) -> list[_Cost]:
    """Return what each round on record took, those that don't count any more as well."""
    costs, loads_s = list[_Cost](), list[float]()
    for record in data.records:
        match record:
            case SlotRecord() if record.phase != "wake-up":  # who settings can't make shorter
                loads_s.append(record.load.ramp_up_s + record.load.measured_s)
            case RoundRecord():
                longest_s = max(loads_s, default=0.0)
                slots = len(record.order)
                costs.append(_Cost(record.took_s, sum(loads_s), longest_s, slots, record.rested_s))
                loads_s = []
            case IncidentRecord():
                loads_s = []
    return costs


def _own_s(settings: SlotSettings, data: PointData) -> float:
    """Estimate what a round takes besides its loads, by the pilots' starts."""
    starts_s = [pilot.start_s or 0.0 for pilot in pilots_on_record(data)]
    start_s = fmean(starts_s) if starts_s else 0.0
    slots = settings.slots_per_variant or FEWEST_SLOTS
    # What is under way at a slot's end is waited for.
    slot_own_s = SLOT_OWN_S + max(settings.phase_s.values(), default=0.0)
    warmups_s = _warmups_s(settings)
    woken_s = wake_ups_s(warmups_s, (_loads_s(settings, data) - warmups_s) / slots, slots)
    return len(data.experiment.variants) * (START_S + start_s + slots * slot_own_s + woken_s)


def wake_ups_s(warmups_s: float, turn_s: float, slots: int) -> float:
    """Estimate how long the wake-ups of a variant take in a round.

    `warmups_s`: what all warm-ups take; `turn_s`: one slot of each variant.
    """
    woken = slots if turn_s > WAKE_AFTER_S else int(warmups_s > WAKE_AFTER_S)
    return woken * (WAKE_S + SLOT_OWN_S)


def _within(
    loads_s: float, settings: SlotSettings, data: PointData, pilots: Mapping[str, Pilot]
) -> SlotSettings:
    """Return settings with which a round's loads take so long at most, or as short as may be."""
    measure, variants = data.measure, list(settings.warmup_s)
    if _loads_s(settings, data) <= loads_s:
        return settings
    slots, ramps_s = settings.slots_per_variant or FEWEST_SLOTS, _ramps_s(settings, data)
    warmups_s = _warmups_s(settings)
    if measure.slots_per_variant is None:
        slots = FEWEST_SLOTS
        if settings.slots_per_variant is not None:
            settings = settings.replace(slots_per_variant=slots)
    # Fewer rounds than needed give no answer: warm-ups go before windows that can't be shorter.
    least_s = slots * (ramps_s + len(variants) * _least_window_s(settings))
    apart, given = warmed_up_apart(settings), _given_warmups(data.experiment)
    found_s = sum(settings.warmup_takes_s(variant) for variant in apart if variant not in given)
    room_s = max(loads_s - (warmups_s - found_s), 0.0)
    most_s = max(min(WARMUP_SHARE * room_s, room_s - least_s), 0.0)
    if found_s > most_s:
        shorter = most_s / found_s
        cut = {each: shorter * settings.warmup_s[each] for each in apart if each not in given}
        settings = settings.replace(warmup_s=settings.warmup_s | cut)
        warmups_s -= found_s - most_s
    return _cut(max(loads_s - warmups_s, 0.0) / (slots * len(variants)), settings, data, pilots)


def _given_warmups(experiment: Experiment) -> set[str]:
    """Return the variants whose warm-up the user set, and those that are measured alike."""
    alike = question_of(experiment).measured_alike
    return {
        variant
        for variant in experiment.variants
        if any(experiment.warmup_s_of(each) is not None for each in alike(variant))
    }


def _loads_s(settings: SlotSettings, data: PointData) -> float:
    """Return how long a round's loads take."""
    windows_s = len(settings.warmup_s) * settings.window_s
    slots = settings.slots_per_variant or FEWEST_SLOTS
    return _warmups_s(settings) + slots * (_ramps_s(settings, data) + windows_s)


def _warmups_s(settings: SlotSettings) -> float:
    return sum(map(settings.warmup_takes_s, warmed_up_apart(settings)))


def _ramps_s(settings: SlotSettings, data: PointData) -> float:
    """Return what comes before the windows of a slot of each variant."""
    return sum(
        ramp_up_s
        + settings.phase_s.get(variant, 0.0) / 2
        + data.experiment.load_of(variant).connection_ramp_s
        for variant, ramp_up_s in settings.ramp_up_s.items()
    )


def _least_window_s(settings: SlotSettings) -> float:
    latency_s = max(settings.phase_s.values(), default=0.0)
    return min(settings.window_s, max(LEAST_WINDOW_S, LEAST_WINDOW_RESPONSES * latency_s))


def warmed_up_apart(settings: SlotSettings) -> list[str]:
    """Return the variants whose warm-ups are slots of their own."""
    return [
        variant
        for variant, warmup_s in settings.warmup_s.items()
        if warmup_s > settings.ramp_up_s[variant] or variant in settings.in_bursts
    ]


def _cut(
    slot_s: float, settings: SlotSettings, data: PointData, pilots: Mapping[str, Pilot]
) -> SlotSettings:
    """Cut window and ramp-ups to slots of that length: the window first, as it is cut by pilots."""
    measure = data.measure
    least_s = _least_window_s(settings)
    window_s, ramps_s = settings.window_s, dict(settings.ramp_up_s)
    for variant, ramp_up_s in settings.ramp_up_s.items():
        pilot = pilots.get(variant)
        here_s = slot_s - data.experiment.load_of(variant).connection_ramp_s
        period_s = pilot.period_s if pilot else None
        cut_ramp_s, cut_s = cut_slot(ramp_up_s, settings.window_s, period_s, max(here_s, least_s))
        window_s = min(window_s, cut_s)
        if measure.ramp_up_s is None:
            ramps_s[variant] = cut_ramp_s
    if measure.slot_s is not None:
        window_s = settings.window_s
    return settings.replace(ramp_up_s=ramps_s, window_s=max(window_s, least_s))
