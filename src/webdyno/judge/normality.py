"""The test of Shapiro and Wilk, as Royston computes it: Remark AS R94, Applied Statistics 1995.

`scipy.stats.shapiro` gives the same, once it is imported: that takes a second, in which somebody
waits for the answer.
"""

from math import exp, log, sqrt

import numpy as np
from numpy.polynomial.polynomial import polyval
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

LARGEST_WEIGHT = (0.0, 0.221157, -0.147981, -2.071190, 4.434685, -2.706056)
SECOND_WEIGHT = (0.0, 0.042981, -0.293762, -1.752461, 5.682633, -3.582633)
"""What is added to the two largest weights: polynomials in 1/√n."""
UP_TO = 11
"""So many values are few: then the rest are polynomials in n, for more of them in ln n."""
FEW_LIMIT = (-2.273, 0.459)
FEW_MEAN, FEW_LOG_SD = (
    (0.5440, -0.39978, 0.025054, -6.714e-4),
    (
        1.3822,
        -0.77857,
        0.062767,
        -0.0020322,
    ),
)
MANY_MEAN, MANY_LOG_SD = (-1.5861, -0.31082, -0.083751, 0.0038915), (-0.4803, -0.082676, 0.0030302)


def shapiro_wilk_p(values: NDArray[np.float64]) -> float:
    """Give the p value of "these values are normally distributed", of six values or more.

    They may not all be equal.
    """
    n = len(values)
    away = np.sort(values) - values.mean()
    w = float(_weights(n) @ away) ** 2 / float(away @ away)
    beyond = log(max(1 - w, 1e-19))
    if n > UP_TO:
        mean, log_sd = polyval(log(n), MANY_MEAN), polyval(log(n), MANY_LOG_SD)
        return float(ndtr((mean - beyond) / exp(log_sd)))
    limit = polyval(n, FEW_LIMIT)
    if beyond >= limit:
        return 0.0
    mean, log_sd = polyval(n, FEW_MEAN), polyval(n, FEW_LOG_SD)
    return float(ndtr((mean + log(limit - beyond)) / exp(log_sd)))


def _weights(n: int) -> NDArray[np.float64]:
    """Give the weights of the sorted values: their expectations, normal, but for the outer ones."""
    expected = ndtri((np.arange(1, n + 1) - 0.375) / (n + 0.25))
    squares = float(expected @ expected)
    largest, second = (
        expected[-place] / sqrt(squares) + polyval(1 / sqrt(n), added)
        for place, added in ((1, LARGEST_WEIGHT), (2, SECOND_WEIGHT))
    )
    inner = squares - 2 * expected[-1] ** 2 - 2 * expected[-2] ** 2
    weights = expected / sqrt(inner / (1 - 2 * largest**2 - 2 * second**2))
    weights[[0, 1, -2, -1]] = -largest, -second, second, largest
    return np.asarray(weights)
