"""How long what comes now and then lasts, how often it comes, and its share of the time."""

from collections.abc import Sequence
from math import exp

import numpy as np
from scipy.special import chdtri, stdtrit

from webdyno.judge.interval import LARGEST_LOG, Logs
from webdyno.model.interval import Interval
from webdyno.model.long_look import Stall, Stalls

CONFIDENCE = 0.95
REGULAR_GAPS = 2
"""So many gaps between stalls show how regular they are."""
EDGE_ERROR = 0.2
"""Of a window: how well the beginning and end of a stall are known, about."""


def sum_up(own: Sequence[Stall], looked_s: float, window_s: float) -> Stalls:
    """Estimate how long the servers' stalls are, how often they come, and their share of the time.

    Few stalls are a Poisson count (Garwood, "Fiducial limits for the Poisson distribution",
    Biometrika 1936). From three on the gaps between them tell more: their mean, with Student's t
    of its logarithm; where they scatter as much as chance, both say the same.
    """
    n, length_s = len(own), sum(stall.length_s for stall in own) / len(own)
    looked_s = max(looked_s, n * length_s)
    low, high = _poisson(n)
    share = Interval(
        low=low * length_s / looked_s,
        estimate=n * length_s / looked_s,
        high=min(high * length_s / looked_s, 1.0),
        confidence=CONFIDENCE,
    )
    gaps = np.diff([stall.at_s for stall in own])
    if len(gaps) < REGULAR_GAPS:
        return Stalls(count=n, length_s=length_s, every_s=None, share=share)
    every, lengths = np.array(gaps), np.array([stall.length_s for stall in own])
    of_gaps, of_lengths = (_relative_error(it, window_s * EDGE_ERROR) for it in (every, lengths))
    regular = _around(length_s / float(every.mean()), (of_gaps**2 + of_lengths**2) ** 0.5, n - 1)
    tells_more = regular.high / regular.low < share.high / share.low
    return Stalls(
        count=n,
        length_s=length_s,
        every_s=_around(float(every.mean()), of_gaps, n - 1),
        share=regular.replace(high=min(regular.high, 1.0)) if tells_more else share,
    )


def _poisson(n: int) -> tuple[float, float]:
    """Give the interval of the mean of a Poisson count."""
    tail = (1 - CONFIDENCE) / 2
    low = float(chdtri(2 * n, 1 - tail)) / 2 if n else 0.0
    return low, float(chdtri(2 * n + 2, tail)) / 2


def _relative_error(values: Logs, least: float) -> float:
    """Give the standard error of a mean as a share of it; single values are off by `least`."""
    spread = max(float(values.std(ddof=1)), least)
    return float(spread / len(values) ** 0.5 / float(values.mean()))


def _around(centre: float, relative_error: float, n: int) -> Interval:
    half = float(stdtrit(n - 1, (1 + CONFIDENCE) / 2)) * relative_error
    factor = exp(min(half, LARGEST_LOG))
    return Interval(low=centre / factor, estimate=centre, high=centre * factor)
