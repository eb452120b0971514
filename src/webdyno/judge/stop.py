"""When a run has measured enough. Never because a difference became significant."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log1p

from webdyno.judge.alone import is_alone, is_known
from webdyno.judge.answer_time import seconds_for_an_arm
from webdyno.judge.comparison import (
    ALPHA,
    compare_as_asked,
    fewest_blocks,
    hard_to_tell,
    is_large_and_known,
    shown_estimate,
)
from webdyno.judge.endpoints import together
from webdyno.judge.gate import answer_at
from webdyno.judge.interval import estimate
from webdyno.judge.league import blocks_to_a_look, is_look
from webdyno.judge.log_ratios import LogRatios, log_ratios
from webdyno.judge.look_length import reserved_s
from webdyno.judge.more_starts import most_blocks
from webdyno.judge.point_data import PointData, derived
from webdyno.judge.race import hopeless, still_racing
from webdyno.judge.validity import valid_for
from webdyno.model.experiment import Experiment
from webdyno.model.format import count, duration, percent
from webdyno.model.gate import GateAnswer
from webdyno.model.judgement import Comparison
from webdyno.model.measure import Measure
from webdyno.model.metrics import metric_rule
from webdyno.model.records import StopReason

SPARE_BLOCKS = 2
"""At most so many blocks are measured in place of spoilt ones when the budget is used up, because
without them there would be no verdict."""
OUTNUMBERED = 2
"""Times the fewest blocks: by then a disturbance that passed by has spoilt no more than half of the
slots, and those are left out (`DISTURBANCES_TOLERATED`) instead of counted as bounds."""

ELSEWHERE = "the gate fails at another endpoint, whatever comes of this one"


@dataclass(frozen=True)
class Stop:
    """Why to stop, as a word and as a sentence."""

    reason: StopReason
    why: str


def blocks_for_an_answer(experiment: Experiment) -> int:
    """Give how many blocks an experiment needs at least; a gate asks for no exact test."""
    if experiment.is_league:
        return blocks_to_a_look(experiment)
    if experiment.race is not None:
        return 1
    measure = experiment.measure
    return measure.min_blocks if experiment.gate else fewest_blocks(measure, together(experiment))


def decide(data: PointData, elapsed_s: float) -> Stop | None:
    """Tell, after each block, whether to stop; None means go on.

    `elapsed_s` is how long the run has taken so far. It stops when the intervals of all ratios on
    the deciding metric are as narrow as `precision` asks for and their verdicts survive all bounds,
    or can't come to do so (or the one-sided question is answered, if there is one), at
    `max_blocks`, or when another block wouldn't fit into the budget any more (`patience` times as
    many and as much while a ratio is hard to tell); but never before a verdict is possible, unless
    an arm has nothing valid to show or more blocks were spoilt than can be replaced.
    """
    measure = data.measure
    if data.experiment.race is not None:
        return _race_over(data, elapsed_s)
    finished = len(data.blocks)
    valid = valid_for(data, measure.decide_on)
    staying = still_racing(data)
    for arm in hopeless(data):
        if arm in staying:
            what = "capacity" if data.experiment.capacity else "valid slot"
            why = f"arm {arm} has no {what} in {count(finished, 'block')}"
            return Stop("nothing-valid", why)
    elapsed_for_all_s = elapsed_s + reserved_s(data)
    if is_alone(data.experiment):
        return _alone_over(valid, elapsed_for_all_s)
    if len(staying) < 2:
        return Stop("nothing-valid", f"nothing works that {staying[0]} could be compared with")
    data = data.among(staying)
    valid = valid_for(data, measure.decide_on)
    pairs = deciding_pairs(valid)
    fewest = blocks_for_an_answer(data.experiment)
    judgeable = min(len(pair.d) for pair in pairs)
    if judgeable < fewest and finished < fewest + SPARE_BLOCKS:
        return None
    if judgeable >= fewest and data.experiment.gate:
        answer = answer_at(data)
        if answer is not GateAnswer.CANT_TELL:
            return Stop("question", f"the gate's answer is known: {answer}")
    elif judgeable >= fewest and (known := _known(valid, fewest) or _prompt(valid, elapsed_s)):
        return known
    measure = measure.replace(max_blocks=most_blocks(data))
    ended = _used_up(data, measure, elapsed_for_all_s)
    if ended is None or judgeable < fewest or not _worth_patience(pairs, measure):
        return ended
    return _used_up(data, measure, elapsed_for_all_s, measure.patience)


def _alone_over(valid: PointData, elapsed_s: float) -> Stop | None:
    """Stop where the capacity of the only arm is known well enough, or time is used up."""
    blocks = len(valid.blocks)
    if blocks < valid.measure.min_blocks:
        return None
    known = is_known(valid)
    return Stop("precision", known) if known else _used_up(valid, valid.measure, elapsed_s)


def _race_over(data: PointData, elapsed_s: float) -> Stop | None:
    """Stop where nobody is left to race, or, not before a league's first look, time is used up."""
    blocks = len(data.blocks)
    if data.experiment.is_league:
        # Comparing each two arms takes a while: only where it can have changed.
        if is_look(blocks, data.experiment) and len(still_racing(data)) < 2:
            return Stop("precision", "every place is settled")
    elif blocks and len(still_racing(data)) <= 2:
        return Stop("precision", "no more than one arm is left beside the baseline")
    if blocks < blocks_for_an_answer(data.experiment):
        return None
    return _used_up(data, data.measure, elapsed_s)


def _used_up(
    data: PointData, measure: Measure, elapsed_s: float, times: float = 1.0
) -> Stop | None:
    """Stop where the most blocks or the budget, or so many times of them, are used up."""
    finished, budget_s = len(data.blocks), measure.budget_s * times
    if finished >= measure.max_blocks * times:
        return Stop("max-blocks", f"{count(finished, 'block')} are the most that were asked for")
    if elapsed_s + data.block_s > budget_s:
        longest = f"{times:g} times the budget" if times > 1 else "the budget"
        why = f"no other block fits into {longest} of {measure.budget_s:g} s"
        return Stop("budget", why)
    return None


def _worth_patience(pairs: Sequence[LogRatios], measure: Measure) -> bool:
    """Whether a ratio is so little known that a run takes longer than it should.

    Only the interval's width against the difference counts, as for `precision`: going on until a
    difference is significant would find too many that aren't.
    """
    confidence = 1 - ALPHA / len(pairs)
    return measure.question is None and any(hard_to_tell(pair.d, confidence) for pair in pairs)


def fails_gate(data: PointData) -> bool:
    """Tell whether a gate has failed at this point, and so as a whole."""
    enough = len(data.blocks) >= blocks_for_an_answer(data.experiment)
    gate = data.experiment.gate is not None
    return gate and enough and answer_at(data) is GateAnswer.FAIL


def _known(valid: PointData, fewest: int) -> Stop | None:
    """Stop where the answer is there, or where more blocks can't bring it.

    A run that goes on for its bounds looks again at each `fewest` blocks only: looking after each
    block until a difference survives would find too many that aren't.
    """
    measure = valid.measure
    if measure.question is not None:
        asked = compare_as_asked(valid)
        answered = all(it.one_sided and it.one_sided.answer != "undecided" for it in asked)
        why = f"the question is answered: {measure.question}"
        return Stop("question", why) if answered else None
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
    return Stop("bounds", f"more blocks would not tell more: {why[0].lower()}{why[1:].rstrip('.')}")


def _prompt(valid: PointData, elapsed_s: float) -> Stop | None:
    """Stop where a difference is large and another block would end too late to be told promptly.

    Such a difference needn't be known as well as others. It is one look, at a moment that the
    ratios don't choose, and only at an interval's width. Who sets limits (or goes on with a run)
    has time.
    """
    measure = valid.measure
    of_an_arm_s = seconds_for_an_arm(measure)
    if of_an_arm_s is None or measure.question is not None or measure.patience == 1:
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
    known = "the ratio is known to a quarter of the difference, in logarithms"
    return Stop("precision", f"{known}; no other block ends within {duration(round(prompt_s))}")


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
        return f"the ratio is known to ±{percent(measure.precision)}"
    return "the ratio is known to an eighth of the difference, in logarithms"


@derived
def deciding_pairs(valid: PointData) -> list[LogRatios]:
    """Give each arm's ratios to the baseline on the deciding metric, by block."""
    rule = metric_rule(valid.measure.decide_on)
    return log_ratios({arm: valid.values(arm, rule) for arm in valid.experiment.arms})


def _precise(pairs: Sequence[LogRatios], measure: Measure) -> bool:
    """Whether all ratios are known well enough, each at the level of Holm's first step."""
    confidence = 1 - ALPHA / len(pairs)
    return all(shown_estimate(pair.d, measure, confidence)[1] for pair in pairs)
