"""Where noise comes from: one-way random-effects analysis of variance over blocks and slots.

Kalibera & Jones, "Rigorous benchmarking in reasonable time", ISMM 2013: repeat where the variance
is, weighed against what a repetition costs.
"""

from collections.abc import Sequence
from math import inf, sqrt

import numpy as np

from webdyno.judge.evidence import Evidence
from webdyno.judge.interval import Logs
from webdyno.judge.metrics import MetricRule
from webdyno.model.judgement import VarianceSplit

FEWEST_SLOTS, MOST_SLOTS = 2, 32


def variance_splits(
    evidence: Evidence, arms: Sequence[str], rule: MetricRule
) -> list[VarianceSplit]:
    """Split the variance of each arm's values per slot; arms with too few of them are left out."""
    splits = []
    start_s, slot_s = costs_s(evidence, len(arms))
    for arm in arms:
        groups = list(logs_by_block(evidence, arm, rule).values())
        if not tells(groups):
            continue
        restart, slot = random_effects(groups)
        splits.append(
            VarianceSplit(
                arm=arm,
                metric=rule.metric.name,
                restart_sd=sqrt(restart),
                slot_sd=sqrt(slot),
                slots_per_arm=best_slots(restart, slot, start_s, slot_s),
            )
        )
    return splits


def random_effects(groups: Sequence[Logs]) -> tuple[float, float]:
    """Give the variance between groups and the variance within, by the ANOVA estimator.

    Groups may differ in size. A negative estimate of the variance between is taken as 0.
    """
    sizes = np.array([len(group) for group in groups])
    total, means = sizes.sum(), np.array([group.mean() for group in groups])
    within = sum(float(((group - group.mean()) ** 2).sum()) for group in groups)
    mean_within = within / (total - len(groups))
    grand = float(sizes @ means) / total
    mean_between = float(sizes @ (means - grand) ** 2) / (len(groups) - 1)
    usual_size = (total - float((sizes**2).sum()) / total) / (len(groups) - 1)
    return max(0.0, (mean_between - mean_within) / usual_size), mean_within


def best_slots(restart: float, slot: float, start_s: float, slot_s: float) -> int:
    """Give the even number of slots per block that makes the interval narrowest in a given time.

    With n slots a block costs start_s + n · slot_s and has the variance restart + slot / n; their
    product is least at n = √(start_s / slot_s · slot / restart).
    """
    worth = restart * slot_s
    best = sqrt(start_s * slot / worth) if worth > 0 else inf
    return int(min(max(2 * round(min(best, MOST_SLOTS) / 2), FEWEST_SLOTS), MOST_SLOTS))


def tells(groups: Sequence[Logs]) -> bool:
    """Whether variance within and between blocks can be told apart."""
    return len(groups) > 1 and any(len(group) > 1 for group in groups)


def logs_by_block(evidence: Evidence, arm: str, rule: MetricRule) -> dict[int, Logs]:
    """Give ln(value) of each of the arm's slots, by number of those blocks that have any."""
    groups = {}
    for block in evidence.blocks:
        values = [rule.block_value([slot]) for slot in block.of(arm)]
        logs = np.log([value for value in values if value is not None])
        if len(logs):
            groups[block.record.block] = logs
    return groups


def costs_s(evidence: Evidence, arms: int) -> tuple[float, float]:
    """Give what an arm's fresh start (warm-up included) and one more slot cost, on average."""
    slots = evidence.slots
    if not slots:
        return 0.0, 0.0
    slots_s = sum(slot.load.measured_s + slot.load.drain_s for slot in slots)
    blocks_s = sum(block.record.took_s for block in evidence.blocks)
    starts = len(evidence.blocks) * arms
    return max(blocks_s - slots_s, 0.0) / starts, slots_s / len(slots)
