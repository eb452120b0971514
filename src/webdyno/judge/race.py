"""Who is in the next block: arms leave a race while it goes on, and those that fail others."""

from math import log
from statistics import fmean

from webdyno.judge.league import standings
from webdyno.judge.point_data import PointData, derived
from webdyno.judge.validity import LASTING_RULES, left_out_slots, valid_for, without_slots
from webdyno.model.metrics import metric_rule

HOPELESS_AFTER = 2
"""Blocks after which an arm without one valid slot isn't expected to have any."""


@derived
def still_racing(data: PointData) -> list[str]:
    """Name the arms of the next block, in their order; all of them where none may leave."""
    if not data.experiment.spares_arms:
        return list(data.experiment.arms)
    if data.experiment.is_league:
        return standings(data).racing
    if data.experiment.race is None:
        return _with_hope(data)
    return _better_halves(data)


@derived
def hopeless(data: PointData) -> list[str]:
    """Name the arms that have nothing to show after some blocks; what passes by is no reason."""
    if len(data.blocks) < HOPELESS_AFTER:
        return []
    decide_on = data.measure.decide_on
    if data.experiment.capacity:
        rule = metric_rule(decide_on)
        return [arm for arm in data.experiment.arms if not data.values(arm, rule)]
    lasting = left_out_slots(data, LASTING_RULES)
    counting = {slot.arm for slot in without_slots(data, lasting, decide_on).slots}
    return [arm for arm in data.experiment.arms if arm not in counting]


def _with_hope(data: PointData) -> list[str]:
    """Name the baseline, and of its other forms those that work: the rest mustn't end the run."""
    baseline, *others = data.experiment.arms
    out = {it.arm for it in data.incidents}.union(hopeless(data))
    return [baseline, *(arm for arm in others if arm not in out)]


def _better_halves(data: PointData) -> list[str]:
    """Name the baseline, and of the others the half that is better after each block so far.

    Sequential halving: Karnin, Koren, Somekh, "Almost optimal exploration in multi-armed bandits",
    ICML 2013. All that was measured of an arm counts, against the baseline of the same blocks.
    """
    baseline, *others = data.experiment.arms
    failed = {it.arm for it in data.incidents}
    racing = [arm for arm in others if arm not in failed]
    for blocks in range(1, len(data.blocks) + 1):
        gains = gains_on_baseline(data.first(blocks))
        known = [arm for arm in racing if arm in gains]
        better = sorted(known, key=lambda arm: -fmean(gains[arm]))
        racing = better[: -(-len(racing) // 2)]
    return [arm for arm in data.experiment.arms if arm == baseline or arm in racing]


def gains_on_baseline(data: PointData) -> dict[str, list[float]]:
    """Give by how much each arm was better than the baseline, in ln, in each block of both.

    Arms without such a block are left out.
    """
    rule = metric_rule(data.measure.decide_on)
    valid = valid_for(data, rule.name)
    sign = 1 if rule.metric.better == "higher" else -1
    baseline, *others = data.experiment.arms
    known = valid.values(baseline, rule)
    found = {
        arm: [
            sign * log(value / known[block])
            for block, value in valid.values(arm, rule).items()
            if block in known and value > 0 and known[block] > 0
        ]
        for arm in others
    }
    return {arm: gains for arm, gains in found.items() if gains}
