"""Whether a stack of a league had warmed up before it was measured.

A run of many stacks cuts warm-ups, of which a virtual machine's compilers need seconds.
"""

from math import expm1, log
from statistics import fmean

import numpy as np

from webdyno.core.format import percent
from webdyno.evidence.point_data import PointData, Round
from webdyno.statistics.interval import fitted_line
from webdyno.validity.over_time import OVER_THE_ROUND, share_of, work_rate

WARM = 0.1
"""Share by which the throughput of a stack that counts as warm may rise: within a round, or had
its warm-up in bursts been twice as long."""
FEWEST_BURSTS = 3
"""Of the last quarter of a warm-up: stalls and pauses move single ones."""
FEWEST_ROUNDS = 2
"""Whose warm-ups say how throughput rises."""


def why_cold(data: PointData, stack: str) -> str | None:
    """Say why a stack would be faster, had there been more load before; None where it was warm.

    Slots that are a second apart show only a steep rise. A slow one shows in a long warm-up in
    bursts: Spring Boot's database pages had 7% more at the end of the last 2.5 s of 11 s of load,
    of which slots of 0.25 s said nothing. There the mean is enough, sure or not: what is measured
    again costs less than a wrong rank.
    """
    change = OVER_THE_ROUND.sure_change(data, stack)
    if change and (rise := share_of(change)) > WARM:
        return f"it hadn't warmed up: its throughput rose by {percent(rise)} within a round"
    gains = [gain for each in data.rounds if (gain := _gain_of_twice(each, stack)) is not None]
    if len(gains) >= FEWEST_ROUNDS and (gain := expm1(fmean(gains))) > WARM:
        return (
            "it hadn't warmed up: as its throughput still rose, twice as long a warm-up might make "
            f"it {percent(gain)} faster"
        )
    return None


def _gain_of_twice(this_round: Round, stack: str) -> float | None:
    """Return what twice as many bursts of a warm-up would add to ln(throughput); None without any.

    By the last quarter of them, as a line over the logarithm of their number: compilers do what
    runs most often first, so equal gains take ever longer.
    """
    bursts = [burst for burst in this_round.warmups if burst.variant == stack]
    last = max(len(bursts) // 4, FEWEST_BURSTS)
    rates = {
        number: rate
        for number, burst in enumerate(bursts, 1)
        if number > len(bursts) - last and (rate := work_rate(burst))
    }
    if len(rates) < FEWEST_BURSTS:
        return None
    return fitted_line(np.log(list(rates)), np.log(list(rates.values()))).slope * log(2)
