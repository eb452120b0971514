"""A large sweep made to fit into a time: fewer levels of each factor, never fewer blocks."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import prod
from types import MappingProxyType

from webdyno.judge.comparison import fewest_blocks
from webdyno.model.experiment import Experiment, Level

START_S = 1.8
"""What it takes to start an arm, to ask for its certificate, to let its slots run dry and to stop
it, about: 0.7 s for a file server, 3 s for PHP with MariaDB, with one CPU for the servers."""

TOLERANCE = 0.1
"""Share of a point that may be lacking: estimates aren't that good."""

First = Mapping[str, Sequence[Level]]
"""By factor: the levels that matter most."""


def thinned(
    experiment: Experiment, budget_s: float, first: First = MappingProxyType({})
) -> Experiment:
    """Give an experiment with as many levels as can be measured in `budget_s`, one point at least.

    Every point still gets the fewest blocks that a verdict needs.
    """
    points = int(budget_s / point_s(experiment) + TOLERANCE)
    levels = thin_levels(experiment.factors, points, first)
    return experiment.model_copy(update={"factors": levels})


def need_s(experiment: Experiment, first: First) -> float:
    """Give how long it takes to measure at all the levels that matter most, about, in seconds."""
    levels = (max(1, len(first.get(factor, ()))) for factor in experiment.factors)
    return prod(levels) * point_s(experiment)


def point_s(experiment: Experiment) -> float:
    """Give the least time that a point takes, about, in seconds."""
    measure = experiment.measure
    slots_s = measure.first_slots_per_arm * measure.slot_s
    blocks = fewest_blocks(measure, len(experiment.arms) - 1)
    return blocks * len(experiment.arms) * (START_S + measure.warmup_s + slots_s)


def thin_levels(
    factors: Mapping[str, Sequence[Level]],
    most_points: int,
    first: First = MappingProxyType({}),
) -> dict[str, list[Level]]:
    """Choose levels so that their combinations are at most `most_points`, but at least one.

    Levels are added one by one: those in `first`, factor by factor; then to the factor that has the
    fewest so far, of equals to the one that was written first. Levels keep their order.
    """
    kept = dict.fromkeys(factors, 1)
    worth = {key: _by_worth(levels, first.get(key, ())) for key, levels in factors.items()}
    while growing := [key for key in kept if _can_grow(key, kept, factors, most_points)]:
        lacking = [key for key in first if key in growing and kept[key] < len(first[key])]
        kept[lacking[0] if lacking else min(growing, key=kept.__getitem__)] += 1
    return {
        key: [levels[n] for n in sorted(worth[key][: kept[key]])] for key, levels in factors.items()
    }


def _by_worth(levels: Sequence[Level], first: Sequence[Level]) -> list[int]:
    """Give the numbers of all levels, those that matter most before the others."""
    wanted = [levels.index(level) for level in first]
    return wanted + [n for n in spread(len(levels)) if n not in wanted]


def _can_grow(
    key: str, kept: Mapping[str, int], factors: Mapping[str, Sequence[Level]], most_points: int
) -> bool:
    more = prod(count + (name == key) for name, count in kept.items())
    return kept[key] < len(factors[key]) and more <= most_points


def spread(count: int) -> list[int]:
    """Give the numbers below `count` in the order of their worth: the middle, both ends, quarters.

    Each next one halves the widest gap that is left.
    """
    order = list(dict.fromkeys(((count - 1) // 2, count - 1, 0)))
    while len(order) < count:
        known = sorted(order)
        left, right = max(pairwise(known), key=lambda gap: (gap[1] - gap[0], -gap[0]))
        order.append((left + right) // 2)
    return order
