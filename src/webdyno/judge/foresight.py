"""How far a run is from stopping by itself: for who waits for it, and no verdict."""

from typing import NamedTuple

from webdyno.judge.comparison import ALPHA, SEQUENTIAL_FACTOR, wanted_half_width
from webdyno.judge.interval import Estimate, estimate, t_quantile
from webdyno.judge.log_ratios import LogRatios
from webdyno.judge.point_data import PointData
from webdyno.judge.stop import blocks_for_an_answer, deciding_pairs
from webdyno.judge.validity import valid_for
from webdyno.model.measure import Measure


class Foresight(NamedTuple):
    """The ratio that lacks most, on the deciding metric."""

    arm: str
    """Against the baseline."""
    found: Estimate
    """ln of the ratio, as measured."""
    wanted: float
    """Half-width (ln) at which the run stops."""
    blocks: int
    """How many valid blocks it will have taken, about."""
    left_s: float = 0.0
    """How long those that are still lacking take, about."""


def foresee(data: PointData) -> Foresight | None:
    """Foresee when the intervals will be narrow enough, if their spread stays as it is.

    None before there is an interval, for a single arm, which has no ratio, and for what stops by
    other rules: races, gates, questions.
    """
    measure = data.measure
    if data.experiment.race is not None or data.experiment.gate or measure.question is not None:
        return None
    valid = valid_for(data, measure.decide_on)
    pairs = deciding_pairs(valid)
    if not pairs or any(len(pair.d) < 2 for pair in pairs):
        return None
    confidence, fewest = 1 - ALPHA / len(pairs), blocks_for_an_answer(data.experiment)
    seen = [_of(pair, measure, confidence, fewest) for pair in pairs]
    worst = max(seen, key=lambda it: it.found.half_width / it.wanted)
    more = max(worst.blocks - len(data.blocks), 0)
    return worst._replace(left_s=more * data.block_s)


def _of(pair: LogRatios, measure: Measure, confidence: float, fewest: int) -> Foresight:
    found, seen = estimate(pair.d, confidence), len(pair.d)
    wanted = wanted_half_width(found.centre, measure)
    spread = found.half_width * seen**0.5 / t_quantile(seen, confidence)
    blocks = max(seen, fewest)
    while blocks < measure.max_blocks:
        wider = SEQUENTIAL_FACTOR if blocks > measure.min_blocks else 1.0
        if wider * t_quantile(blocks, confidence) * spread / blocks**0.5 <= wanted:
            break
        blocks += 1
    return Foresight(pair.arm, found, wanted, blocks)
