"""Change points: where a series goes over to another level.

PELT: the levels of least squares where each change has its price (Killick, Fearnhead and Eckley,
"Optimal detection of changepoints with a linear computational cost", JASA 2012). What a change
costs is for who asks to say, as that depends on what is known of the noise.
"""

import numpy as np

from webdyno.statistics.interval import Logs


def change_points(values: Logs, penalty: float, fewest: int = 1) -> list[int]:
    """Return the indices at which a new level begins, each level having so many values or more."""
    n = len(values)
    sums = np.concatenate([[0.0], np.cumsum(values)])
    squares = np.concatenate([[0.0], np.cumsum(values**2)])
    best = np.full(n + 1, np.inf)
    best[0] = -penalty
    came_from = np.zeros(n + 1, dtype=int)
    usable_until = np.full(n + 1, n)
    """Of each index: the last end up to which the level that begins there may be the best one."""
    candidates = np.array([0])
    for end in range(fewest, n + 1):
        total = sums[end] - sums[candidates]
        cost = squares[end] - squares[candidates] - total**2 / (end - candidates)
        whole = best[candidates] + cost
        last = int(np.argmin(whole))
        best[end], came_from[end] = whole[last] + penalty, candidates[last]
        # A level that begins at `end` will be better, once it has so many values.
        worse = candidates[whole > best[end]]
        usable_until[worse] = np.minimum(usable_until[worse], end + fewest - 1)
        candidates = candidates[usable_until[candidates] > end]
        candidates = np.append(candidates, end + 1 - fewest)
    points: list[int] = []
    last = int(came_from[n])
    while last > 0:
        points.append(last)
        last = int(came_from[last])
    return points[::-1]
