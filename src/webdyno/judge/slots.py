"""How many slots of each arm a block gets: as many as were asked for, or chosen from the noise."""

from collections.abc import Sequence

import numpy as np

from webdyno.judge.evidence import Evidence, gather
from webdyno.judge.interval import Logs
from webdyno.judge.metrics import MetricRule, metric_rule
from webdyno.judge.validity import left_out_slots, valid_for
from webdyno.judge.variance import best_slots, costs_s, logs_by_block, random_effects, tells
from webdyno.model.experiment import FIRST_SLOTS, Experiment
from webdyno.model.records import Record

PILOT_BLOCKS = 6
"""Blocks that the choice is made from: those that every run has."""

MOST_SLOTS = 8
"""Blocks shouldn't become so long that few fit into a budget. Nor have they ever fewer slots than
the first ones: the blocks are limited as well, and each would tell less."""


def slots_per_arm(records: Sequence[Record], experiment: Experiment) -> int:
    """Give the slots of each arm in the block that comes after the finished ones on record.

    A function of the first blocks on record alone, so that a resumed run chooses alike; and of the
    ratios' variances alone, not of the ratios, so that intervals stay right.
    """
    measure = experiment.measure
    evidence = gather(records)
    if measure.slots_per_arm is not None or len(evidence.blocks) < PILOT_BLOCKS:
        return measure.first_slots_per_arm
    return _chosen(evidence.first(PILOT_BLOCKS), experiment)


def _chosen(pilot: Evidence, experiment: Experiment) -> int:
    valid = valid_for(pilot, left_out_slots(pilot), experiment.measure.decide_on)
    rule = metric_rule(experiment.measure.decide_on)
    baseline, *others = experiment.arms
    splits = [
        random_effects(groups)
        for arm in others
        if tells(groups := _log_ratios(valid, arm, baseline, rule))
    ]
    if not splits:
        return FIRST_SLOTS
    restart, slot = np.array(splits).mean(axis=0)
    return choice(restart, slot, *costs_s(pilot, len(experiment.arms)))


def choice(restart: float, slot: float, start_s: float, slot_s: float) -> int:
    """Give the best number of slots within the bounds, from variances and costs of both levels."""
    return min(max(best_slots(restart, slot, start_s, slot_s), FIRST_SLOTS), MOST_SLOTS)


def _log_ratios(evidence: Evidence, arm: str, baseline: str, rule: MetricRule) -> list[Logs]:
    """Pair the arms' slots of a block in their order: what weighs on both alike is no noise."""
    mine, theirs = (logs_by_block(evidence, name, rule) for name in (arm, baseline))
    both = [(mine[number], theirs[number]) for number in mine if number in theirs]
    return [a[: len(b)] - b[: len(a)] for a, b in both]
