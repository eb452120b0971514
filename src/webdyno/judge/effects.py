"""What each of several settings does, from arms of a two-level design that met in blocks.

In each block a setting's effect is the mean of ln(value) over the arms that have it changed, less
that over the others; two settings interact by as much as the one's effect is other where the other
is changed, halved. Their means over blocks have Student's intervals, narrow enough to hold together
(Bonferroni).
"""

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from webdyno.judge.comparison import ALPHA
from webdyno.judge.interval import estimate
from webdyno.judge.point_data import PointData
from webdyno.model.design import Design, Effect
from webdyno.model.metrics import MetricRule

Signs = NDArray[np.float64]
FEWEST_BLOCKS = 3


def effects(data: PointData, design: Design, rule: MetricRule) -> list[Effect]:
    """Give the settings' effects on a metric, the largest first, then what interacts.

    None where fewer than three blocks have values of all arms.
    """
    values = [data.values(arm, rule) for arm in design.levels]
    blocks = sorted(set.intersection(*(set(it) for it in values)))
    if len(blocks) < FEWEST_BLOCKS:
        return []
    logs = np.log([[it[block] for it in values] for block in blocks])
    contrasts = list(_contrasts(design))
    confidence = 1 - ALPHA / len(contrasts)
    found = [_effect(names, logs @ signs, confidence) for names, signs in contrasts]
    return sorted(found, key=lambda it: (len(it.settings), -abs(np.log(it.ratio.estimate))))


def _contrasts(design: Design) -> Iterator[tuple[list[str], Signs]]:
    """Give the weights of the arms' logarithms for each effect that the design can tell."""
    levels = np.array([*design.levels.values()], dtype=float)
    signs = 2 * levels - 1
    for place, name in enumerate(design.settings):
        yield [name], signs[:, place] * 2 / len(signs)
    if design.is_full:
        for one, two in combinations(range(len(design.settings)), 2):
            names = [design.settings[one], design.settings[two]]
            yield names, signs[:, one] * signs[:, two] * 2 / len(signs)


def _effect(settings: Sequence[str], by_block: Signs, confidence: float) -> Effect:
    found = estimate(by_block, confidence)
    return Effect(
        settings=list(settings),
        ratio=found.ratio(confidence),
        is_sure=found.excludes_zero(),
    )
