"""Where noise comes from, and how many slots of each variant a round gets so as to keep it small.

One-way random-effects analysis of variance over rounds and slots. Kalibera & Jones, "Rigorous
benchmarking in reasonable time", ISMM 2013: repeat where the variance is, weighed against what a
repetition costs.
"""

from collections.abc import Sequence
from math import inf, sqrt
from statistics import fmean

import numpy as np

from webdyno.core.judgement import VarianceSplit
from webdyno.core.measure import FIRST_SLOTS
from webdyno.core.metrics import METRICS, MetricRule
from webdyno.core.records import SlotRecord
from webdyno.evidence.point_data import PointData
from webdyno.statistics.interval import Logs
from webdyno.validity import valid_for

FEWEST_REPORTED, MOST_REPORTED = 2, 32
PILOT_ROUNDS = 6
"""Rounds that the choice is made from: those that every run has."""
NEARLY = 1.1
MOST_SLOTS = 8
"""Rounds shouldn't become so long that few fit into a budget. Nor do they have fewer slots than the
first ones: the number of rounds is limited as well."""


def chosen_slots_per_variant(data: PointData) -> int:
    """Return the number of slots of each variant in the round after the finished ones.

    By the first rounds alone, so that a resumed run chooses alike; and by the ratios' variances
    alone, not by the ratios, so that intervals stay right.
    """
    measure = data.measure
    if measure.slots_per_variant is not None or len(data.rounds) < PILOT_ROUNDS:
        return measure.first_slots_per_variant
    pilot = data.first(PILOT_ROUNDS)
    valid = valid_for(pilot, pilot.measure.decide_on)
    rule = METRICS[pilot.measure.decide_on]
    baseline, *others = pilot.experiment.variants
    splits = [
        random_effects(groups)
        for variant in others
        if _shows(groups := _log_ratios(valid, variant, baseline, rule))
    ]
    if not splits:
        return FIRST_SLOTS
    restart, slot = np.array(splits).mean(axis=0)
    first = len(pilot.rounds[0].record.order) // len(pilot.experiment.variants)
    return choice(restart, slot, *round_costs_s(pilot, len(pilot.experiment.variants)), first)


def choice(restart: float, slot: float, start_s: float, slot_s: float, first: int) -> int:
    """Return the number of slots for the rounds after those with `first`, from variances and costs.

    The smallest with which time times variance is within `NEARLY` of the least: all rounds count
    alike, so that longer ones help less than they could.
    """

    def product(slots: int) -> float:
        return (start_s + slots * slot_s) * (restart + slot / slots)

    allowed = range(first, max(first, MOST_SLOTS) + 1, 2)
    least = min(map(product, allowed))
    return next(slots for slots in allowed if product(slots) <= NEARLY * least)


def _log_ratios(data: PointData, variant: str, baseline: str, rule: MetricRule) -> list[Logs]:
    """Pair the variants' slots of a round in their order: what weighs on both alike is no noise."""
    mine, theirs = (data.slot_logs(name, rule) for name in (variant, baseline))
    both = [(mine[number], theirs[number]) for number in mine if number in theirs]
    return [a[: len(b)] - b[: len(a)] for a, b in both]


def variance_splits(
    data: PointData, variants: Sequence[str], rule: MetricRule
) -> list[VarianceSplit]:
    """Split the variance of each variant's values per slot, where there are enough of them."""
    splits = []
    start_s, slot_s = round_costs_s(data, len(variants))
    for variant in variants:
        groups = list(data.slot_logs(variant, rule).values())
        if not _shows(groups):
            continue
        restart, slot = random_effects(groups)
        splits.append(
            VarianceSplit(
                variant=variant,
                metric=rule.name,
                restart_sd=sqrt(restart),
                slot_sd=sqrt(slot),
                slots_per_variant=best_slots(restart, slot, start_s, slot_s),
            )
        )
    return splits


def random_effects(groups: Sequence[Logs]) -> tuple[float, float]:
    """Return the variance between groups (0 if negative) and within, by the ANOVA estimator."""
    sizes = np.array([len(group) for group in groups])
    total, means = sizes.sum(), np.array([group.mean() for group in groups])
    within = sum(float(((group - group.mean()) ** 2).sum()) for group in groups)
    mean_within = within / (total - len(groups))
    grand = float(sizes @ means) / total
    mean_between = float(sizes @ (means - grand) ** 2) / (len(groups) - 1)
    usual_size = (total - float((sizes**2).sum()) / total) / (len(groups) - 1)
    return max(0.0, (mean_between - mean_within) / usual_size), mean_within


def best_slots(restart: float, slot: float, start_s: float, slot_s: float) -> int:
    """Return the even number of slots per round that makes the interval narrowest in a given time.

    With n slots a round costs start_s + n · slot_s and has the variance restart + slot / n; their
    product is least at n = √(start_s / slot_s · slot / restart).
    """
    worth = restart * slot_s
    best = sqrt(start_s * slot / worth) if worth > 0 else inf
    return int(min(max(2 * round(min(best, MOST_REPORTED) / 2), FEWEST_REPORTED), MOST_REPORTED))


def _shows(groups: Sequence[Logs]) -> bool:
    """Whether variance within and between rounds can be separated."""
    return len(groups) > 1 and any(len(group) > 1 for group in groups)


def round_costs_s(data: PointData, variants: int) -> tuple[float, float]:
    """Return what a fresh start and one more slot of a variant take, with ramp-up and probes."""
    costs_s = [slot_s for this_round in data.rounds if (slot_s := _slot_s(this_round.slots))]
    if not costs_s:
        return 0.0, 0.0
    slot_s, records = fmean(costs_s), [this_round.record for this_round in data.rounds]
    start_s = fmean(record.took_s - len(record.order) * slot_s for record in records)
    return max(start_s, 0.0) / variants, slot_s


def _slot_s(slots: Sequence[SlotRecord]) -> float | None:
    if len(slots) < 2:
        return None
    first, last = slots[0], slots[-1]
    return (last.started_at - first.started_at).total_seconds() / (last.slot - first.slot)
