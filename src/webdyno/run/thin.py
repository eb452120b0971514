"""A large sweep made to fit into a time: fewer levels of each factor, never fewer blocks."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import prod

from webdyno.judge.comparison import fewest_blocks
from webdyno.model.experiment import Experiment, Level

START_S = 1.5
"""What it takes to start an arm, to ask for its certificate and to stop it, about."""


def thinned(experiment: Experiment, budget_s: float) -> Experiment:
    """Give an experiment with as many levels as can be measured in `budget_s`, one point at least.

    Every point still gets the fewest blocks that a verdict needs.
    """
    points = int(budget_s // point_s(experiment))
    levels = thin_levels(experiment.factors, points)
    return experiment.model_copy(update={"factors": levels})


def point_s(experiment: Experiment) -> float:
    """Give the least time that a point takes, about, in seconds."""
    measure = experiment.measure
    slots_s = measure.slots_per_arm * measure.slot_s
    blocks = fewest_blocks(measure, len(experiment.arms) - 1)
    return blocks * len(experiment.arms) * (START_S + measure.warmup_s + slots_s)


def thin_levels(factors: Mapping[str, Sequence[Level]], most_points: int) -> dict[str, list[Level]]:
    """Choose levels so that their combinations are at most `most_points`, but at least one.

    Levels are added one by one, to the factor that has the fewest so far; of equals to the one
    that was written first. Levels keep their order.
    """
    kept = dict.fromkeys(factors, 1)
    while growing := [key for key in kept if _can_grow(key, kept, factors, most_points)]:
        kept[min(growing, key=kept.__getitem__)] += 1
    return {
        key: [levels[n] for n in sorted(spread(len(levels))[: kept[key]])]
        for key, levels in factors.items()
    }


def _can_grow(
    key: str, kept: Mapping[str, int], factors: Mapping[str, Sequence[Level]], most_points: int
) -> bool:
    more = prod(count + (name == key) for name, count in kept.items())
    return kept[key] < len(factors[key]) and more <= most_points


def spread(count: int) -> list[int]:
    """Give the numbers below `count` in the order of their worth: both ends, the middle, quarters.

    Each next one halves the widest gap that is left.
    """
    order = [0, count - 1][:count]
    while len(order) < count:
        known = sorted(order)
        left, right = max(pairwise(known), key=lambda gap: (gap[1] - gap[0], -gap[0]))
        order.append((left + right) // 2)
    return order
