"""Rules that end a run: known well enough, asked often enough, out of time.

Never because a difference became significant. Which of them hold for an experiment its question
says (`judge/questions`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log1p
from typing import NamedTuple

from webdyno.judge.comparison import (
    ALPHA,
    SEQUENTIAL_FACTOR,
    compare_as_asked,
    is_large_and_known,
    shown_estimate,
    too_noisy,
    wanted_half_width,
)
from webdyno.judge.interval import Estimate, estimate, t_quantile
from webdyno.judge.log_ratios import LogRatios, log_ratios
from webdyno.judge.point_data import PointData, derived
from webdyno.model.format import count, duration, percent
from webdyno.model.judgement import Comparison
from webdyno.model.measure import Measure
from webdyno.model.metrics import metric_rule
from webdyno.model.records import StopReason

OWN_S = 1.3
"""Of the time within which a clear difference is to be told, what isn't measuring: to start, to
judge, to print. 1.2 s were seen (nginx against Apache on two CPUs), and 0.1 s are for luck."""
ARMS = 2
"""That time is that of so many arms; each further one gets as much as one of these."""
SPARE_BLOCKS = 2
"""At most so many blocks are measured in place of invalidated ones when the budget is used up,
because without them there would be no verdict."""
OUTNUMBERED = 2
"""Times the fewest blocks: by then a disturbance that passed by has invalidated no more than half
of the slots, and those are excluded (`DISTURBANCES_TOLERATED`) instead of counted as bounds."""


@dataclass(frozen=True)
class Stop:
    """Why to stop, as a word and as a sentence."""

    reason: StopReason
    why: str


def seconds_for_an_arm(measure: Measure) -> float | None:
    """Give how long an arm's pilot and slots may take where a difference is clear.

    None for as long as they take. It moves when a run ends and how long short slots are, and
    nothing else: no interval and no verdict looks at it. `docs/validation/coverage.md` says what it
    costs.
    """
    if not measure.answer_within_s:
        return None
    return (measure.answer_within_s - OWN_S) / ARMS


def used_up(data: PointData, measure: Measure, elapsed_s: float, times: float = 1.0) -> Stop | None:
    """Stop where the most blocks or the budget, or so many times of them, are used up."""
    finished, budget_s = len(data.blocks), measure.budget_s * times
    if finished >= measure.max_blocks * times:
        return Stop("max-blocks", f"{count(finished, 'block')} are the most that were asked for")
    if elapsed_s + data.block_s > budget_s:
        longest = f"{times:g} times the budget" if times > 1 else "the budget"
        why = f"no other block fits into {longest} of {measure.budget_s:g} s"
        return Stop("budget", why)
    return None


def worth_patience(pairs: Sequence[LogRatios]) -> bool:
    """Whether a ratio is so little known that a run takes longer than it should.

    Only the interval's width against the difference counts, as for `precision`: going on until a
    difference is significant would find too many that aren't.
    """
    confidence = 1 - ALPHA / len(pairs)
    return any(too_noisy(pair.d, confidence) for pair in pairs)


def known_well(valid: PointData, fewest: int) -> Stop | None:
    """Stop where the answer is there, or where more blocks can't bring it.

    A run that goes on for its bounds looks again at each `fewest` blocks only: looking after each
    block until a difference survives would find too many that aren't.
    """
    measure = valid.measure
    blocks = len(valid.blocks)
    unsettled = _unsettled(valid, fewest)
    since_look = blocks % fewest
    if unsettled is None or (since_look and _unsettled(valid.first(blocks - since_look), fewest)):
        return None
    if not unsettled:
        return Stop("precision", _how_well(deciding_pairs(valid), measure))
    if any(_may_settle(it, blocks, fewest, measure) for it in unsettled):
        return None
    why = " ".join(it.why for it in unsettled)
    return Stop("bounds", f"more rounds would not help: {why[0].lower()}{why[1:].rstrip('.')}")


def told_promptly(valid: PointData, elapsed_s: float) -> Stop | None:
    """Stop where a difference is large and another block would end too late to be told promptly.

    Such a difference needn't be known as well as others. It is one look, at a moment that the
    ratios don't choose, and only at an interval's width. Who sets limits (or goes on with a run)
    has time.
    """
    measure = valid.measure
    of_an_arm_s = seconds_for_an_arm(measure)
    if of_an_arm_s is None or measure.patience == 1:
        return None
    prompt_s = of_an_arm_s * len(valid.experiment.arms)
    if not 0 <= prompt_s - elapsed_s < valid.block_s:
        return None
    pairs = deciding_pairs(valid)
    confidence = 1 - ALPHA / len(pairs)
    if not all(is_large_and_known(pair.d, confidence) for pair in pairs):
        return None
    if any(it.verdict is not it.as_measured for it in compare_as_asked(valid)):
        return None
    known = "stopped early: the difference is large and clear"
    longer = f"another round would take longer than {duration(round(prompt_s))}"
    return Stop("precision", f"{known}, and {longer}")


def _unsettled(valid: PointData, fewest: int) -> list[Comparison] | None:
    """Give the verdicts that don't survive their bounds; None while ratios aren't known well."""
    pairs = deciding_pairs(valid)
    enough = min(len(pair.d) for pair in pairs) >= fewest
    if not enough or not _precise(pairs, valid.measure):
        return None
    return [it for it in compare_as_asked(valid) if it.verdict is not it.as_measured]


def _may_settle(comparison: Comparison, blocks: int, fewest: int, measure: Measure) -> bool:
    """Whether the verdict as measured may come to survive its bounds within the blocks asked for.

    Blocks narrow the interval, and they outnumber a disturbance that passes by. They don't show
    what an arm can do for which client or link are too slow.
    """
    needed = comparison.more_blocks
    if needed is not None and blocks + needed <= measure.max_blocks:
        return True
    return not comparison.limited_by and blocks < OUTNUMBERED * fewest


def _how_well(pairs: Sequence[LogRatios], measure: Measure) -> str:
    """Say how well the ratios are known: as asked for, or a large one to an eighth of itself."""
    if all(estimate(pair.d, 1 - ALPHA).half_width <= log1p(measure.precision) for pair in pairs):
        return f"as precise as requested, ±{percent(measure.precision)}"
    return "precise enough for a difference this large"


@derived
def deciding_pairs(valid: PointData) -> list[LogRatios]:
    """Give each arm's ratios to the baseline on the deciding metric, by block."""
    rule = metric_rule(valid.measure.decide_on)
    return log_ratios({arm: valid.values(arm, rule) for arm in valid.experiment.arms})


def _precise(pairs: Sequence[LogRatios], measure: Measure) -> bool:
    """Whether all ratios are known well enough, each at the level of Holm's first step."""
    confidence = 1 - ALPHA / len(pairs)
    return all(shown_estimate(pair.d, measure, confidence)[1] for pair in pairs)


class Foresight(NamedTuple):
    """How far a run is from stopping by itself, by the ratio that lacks most."""

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


def foresight(data: PointData, valid: PointData, fewest: int) -> Foresight | None:
    """Foresee when the intervals will be narrow enough, if their spread stays as it is.

    None before there is an interval, and for a single arm, which has no ratio.
    """
    measure, pairs = data.measure, deciding_pairs(valid)
    if not pairs or any(len(pair.d) < 2 for pair in pairs):
        return None
    confidence = 1 - ALPHA / len(pairs)
    seen = [_foresight_of(pair, measure, confidence, fewest) for pair in pairs]
    worst = max(seen, key=lambda it: it.found.half_width / it.wanted)
    more = max(worst.blocks - len(data.blocks), 0)
    return worst._replace(left_s=more * data.block_s)


def _foresight_of(pair: LogRatios, measure: Measure, confidence: float, fewest: int) -> Foresight:
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
