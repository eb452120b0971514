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
from webdyno.judge.measured import Measured
from webdyno.judge.more_starts import most_blocks
from webdyno.judge.race import hopeless, still_racing
from webdyno.judge.validity import left_out_slots, valid_for
from webdyno.model.experiment import Experiment
from webdyno.model.format import count, duration, percent
from webdyno.model.gate import GateAnswer
from webdyno.model.judgement import Comparison
from webdyno.model.measure import Measure
from webdyno.model.metrics import metric_rule
from webdyno.model.records import Record, StopReason

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


def decide(records: Sequence[Record], experiment: Experiment, elapsed_s: float) -> Stop | None:
    """Tell, after each block, whether to stop; None means go on.

    `elapsed_s` is how long the run has taken so far. It stops when the intervals of all ratios on
    the deciding metric are as narrow as `precision` asks for and their verdicts survive all bounds,
    or can't come to do so (or the one-sided question is answered, if there is one), at
    `max_blocks`, or when another block wouldn't fit into the budget any more (`patience` times as
    many and as much while a ratio is hard to tell); but never before a verdict is possible, unless
    an arm has nothing valid to show or more blocks were spoilt than can be replaced.
    """
    measure = experiment.measure
    measured = Measured.of(records)
    if experiment.race is not None:
        return _race_over(records, experiment, elapsed_s)
    finished = len(measured.blocks)
    valid = valid_for(measured, left_out_slots(measured), measure.decide_on)
    staying = still_racing(records, experiment)
    for arm in hopeless(measured, experiment):
        if arm in staying:
            what = "capacity" if experiment.capacity else "valid slot"
            why = f"arm {arm} has no {what} in {count(finished, 'block')}"
            return Stop("nothing-valid", why)
    elapsed_for_all_s = elapsed_s + reserved_s(experiment, measured)
    if is_alone(experiment):
        return _alone_over(valid, experiment, elapsed_for_all_s)
    if len(staying) < 2:
        return Stop("nothing-valid", f"nothing works that {staying[0]} could be compared with")
    experiment = _with_arms(experiment, staying)
    pairs = deciding_pairs(valid, experiment)
    fewest = blocks_for_an_answer(experiment)
    judgeable = min(len(pair.d) for pair in pairs)
    if judgeable < fewest and finished < fewest + SPARE_BLOCKS:
        return None
    if judgeable >= fewest and experiment.gate:
        answer = answer_at(measured, experiment)
        if answer is not GateAnswer.CANT_TELL:
            return Stop("question", f"the gate's answer is known: {answer}")
    elif judgeable >= fewest and (
        known := _known(valid, experiment, fewest) or _prompt(valid, experiment, elapsed_s)
    ):
        return known
    measure = measure.replace(max_blocks=most_blocks(measured, experiment))
    ended = _used_up(measured, measure, elapsed_for_all_s)
    if ended is None or judgeable < fewest or not _worth_patience(pairs, measure):
        return ended
    return _used_up(measured, measure, elapsed_for_all_s, measure.patience)


def _alone_over(valid: Measured, experiment: Experiment, elapsed_s: float) -> Stop | None:
    """Stop where the capacity of the only arm is known well enough, or time is used up."""
    blocks = len(valid.blocks)
    if blocks < experiment.measure.min_blocks:
        return None
    known = is_known(valid, experiment)
    return Stop("precision", known) if known else _used_up(valid, experiment.measure, elapsed_s)


def _race_over(records: Sequence[Record], experiment: Experiment, elapsed_s: float) -> Stop | None:
    """Stop where nobody is left to race, or, not before a league's first look, time is used up."""
    measured = Measured.of(records)
    blocks = len(measured.blocks)
    if experiment.is_league:
        # Comparing each two arms takes a while: only where it can have changed.
        if is_look(blocks, experiment) and len(still_racing(records, experiment)) < 2:
            return Stop("precision", "every place is settled")
    elif blocks and len(still_racing(records, experiment)) <= 2:
        return Stop("precision", "no more than one arm is left beside the baseline")
    if blocks < blocks_for_an_answer(experiment):
        return None
    return _used_up(measured, experiment.measure, elapsed_s)


def _with_arms(experiment: Experiment, names: Sequence[str]) -> Experiment:
    return experiment.replace(arms={name: experiment.arms[name] for name in names})


def _used_up(
    measured: Measured, measure: Measure, elapsed_s: float, times: float = 1.0
) -> Stop | None:
    """Stop where the most blocks or the budget, or so many times of them, are used up."""
    finished, budget_s = len(measured.blocks), measure.budget_s * times
    if finished >= measure.max_blocks * times:
        return Stop("max-blocks", f"{count(finished, 'block')} are the most that were asked for")
    if elapsed_s + measured.block_s > budget_s:
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


def fails_gate(records: Sequence[Record], experiment: Experiment) -> bool:
    """Tell whether a gate has failed at this point, and so as a whole."""
    measured = Measured.of(records)
    enough = len(measured.blocks) >= blocks_for_an_answer(experiment)
    gate = experiment.gate is not None
    return gate and enough and answer_at(measured, experiment) is GateAnswer.FAIL


def _known(valid: Measured, experiment: Experiment, fewest: int) -> Stop | None:
    """Stop where the answer is there, or where more blocks can't bring it.

    A run that goes on for its bounds looks again at each `fewest` blocks only: looking after each
    block until a difference survives would find too many that aren't.
    """
    measure = experiment.measure
    if measure.question is not None:
        asked = compare_as_asked(valid, experiment)
        answered = all(it.one_sided and it.one_sided.answer != "undecided" for it in asked)
        why = f"the question is answered: {measure.question}"
        return Stop("question", why) if answered else None
    blocks = len(valid.blocks)
    unsettled = _unsettled(valid, experiment, fewest)
    since_look = blocks % fewest
    if unsettled is None or (
        since_look and _unsettled(valid.first(blocks - since_look), experiment, fewest)
    ):
        return None
    if not unsettled:
        return Stop("precision", _how_well(deciding_pairs(valid, experiment), measure))
    if any(_may_settle(it, blocks, fewest, measure) for it in unsettled):
        return None
    why = " ".join(it.why for it in unsettled)
    return Stop("bounds", f"more blocks would not tell more: {why[0].lower()}{why[1:].rstrip('.')}")


def _prompt(valid: Measured, experiment: Experiment, elapsed_s: float) -> Stop | None:
    """Stop where a difference is large and another block would end too late to be told promptly.

    Such a difference needn't be known as well as others. It is one look, at a moment that the
    ratios don't choose, and only at an interval's width. Who sets limits (or goes on with a run)
    has time.
    """
    measure = experiment.measure
    of_an_arm_s = seconds_for_an_arm(measure)
    if of_an_arm_s is None or measure.question is not None or measure.patience == 1:
        return None
    prompt_s = of_an_arm_s * len(experiment.arms)
    if not 0 <= prompt_s - elapsed_s < valid.block_s:
        return None
    pairs = deciding_pairs(valid, experiment)
    confidence = 1 - ALPHA / len(pairs)
    if not all(is_large_and_known(pair.d, confidence) for pair in pairs):
        return None
    if any(it.verdict is not it.as_measured for it in compare_as_asked(valid, experiment)):
        return None
    known = "the ratio is known to a quarter of the difference, in logarithms"
    return Stop("precision", f"{known}; no other block ends within {duration(round(prompt_s))}")


def _unsettled(valid: Measured, experiment: Experiment, fewest: int) -> list[Comparison] | None:
    """Give the verdicts that don't survive their bounds; None while ratios aren't known well."""
    pairs = deciding_pairs(valid, experiment)
    enough = min(len(pair.d) for pair in pairs) >= fewest
    if not enough or not _precise(pairs, experiment.measure):
        return None
    return [it for it in compare_as_asked(valid, experiment) if it.verdict is not it.as_measured]


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


def deciding_pairs(valid: Measured, experiment: Experiment) -> list[LogRatios]:
    """Give each arm's ratios to the baseline on the deciding metric, by block."""
    rule = metric_rule(experiment.measure.decide_on)
    return log_ratios({arm: valid.values(arm, rule) for arm in experiment.arms})


def _precise(pairs: Sequence[LogRatios], measure: Measure) -> bool:
    """Whether all ratios are known well enough, each at the level of Holm's first step."""
    confidence = 1 - ALPHA / len(pairs)
    return all(shown_estimate(pair.d, measure, confidence)[1] for pair in pairs)
