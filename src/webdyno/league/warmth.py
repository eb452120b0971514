"""Whether a stack of a league had warmed up before it was measured.

A run of many stacks cuts warm-ups, of which a virtual machine's compilers need seconds.
"""

from math import log

import numpy as np

from webdyno.core.format import percent
from webdyno.evidence.point_data import PointData, Round
from webdyno.statistics.interval import estimate, fitted_line
from webdyno.validity.over_time import OVER_THE_ROUND, pace, share_of, work_rate

WARM = 0.1
"""A stack counts as warm up to this rise: within a round, or by a warm-up of twice the length."""
FEWEST_BURSTS, FEWEST_LAST = 6, 3
"""Of a warm-up that shows a rise, and of its last quarter: fewer are as uneven as bursts are."""
FEWEST_ROUNDS = 2
RISE_CONFIDENCE = 0.9
"""Of a rise in warm-ups: one warm stack in twenty is measured again for nothing, which costs less
than a wrong rank."""


def why_cold(data: PointData, stack: str) -> str | None:
    """Say why a stack would be faster, had there been more load before; None where it was warm.

    Slots that are a second apart show only a steep rise. A slow one shows in a long warm-up: in
    one of 11 s, the throughput of Spring Boot with a database rose by 7% in the last 2.5 s, of
    which slots of 0.25 s showed nothing.
    """
    change = OVER_THE_ROUND.sure_change(data, stack)
    if change and (rise := share_of(change)) > WARM:
        return f"it hadn't warmed up: {pace(data, stack)} rose by {percent(rise)} within a round"
    gain = _gain_of_twice_the_warmup(data, stack)
    if gain is not None and gain > WARM:
        return (
            "it hadn't warmed up: its throughput still rose in its warm-up, and twice as long a "
            f"one might make it {percent(gain)} faster"
        )
    return None


def _gain_of_twice_the_warmup(data: PointData, stack: str) -> float | None:
    """Return the share by which a warm-up of twice the length would raise throughput, if surely.

    None where it isn't sure, and for a warm-up that the pilot chose: that ends as soon as
    throughput rises no more, right after the steepest part.
    """
    if data.experiment.warmup_s_of(stack) is None:
        return None
    gains = [gain for each in data.rounds if (gain := _gain_in(each, stack)) is not None]
    if len(gains) < FEWEST_ROUNDS:
        return None
    mean = estimate(np.array(gains), RISE_CONFIDENCE)
    return share_of(mean) if mean.low > 0 else None


def _gain_in(this_round: Round, stack: str) -> float | None:
    """Return what twice as many bursts would add to ln(throughput); None where too few say it.

    By a line through the last quarter of them, over the logarithm of their number: compilers begin
    with what runs most often, so equal gains take ever longer.
    """
    bursts = this_round.warmups_of(stack)
    first = len(bursts) - max(len(bursts) // 4, FEWEST_LAST)
    rates = {
        number: rate
        for number, burst in enumerate(bursts, 1)
        if number > first and burst.load.loop == "closed" and (rate := work_rate(burst))
    }
    if len(bursts) < FEWEST_BURSTS or len(rates) < FEWEST_LAST:
        return None
    return fitted_line(np.log(list(rates)), np.log(list(rates.values()))).slope * log(2)
