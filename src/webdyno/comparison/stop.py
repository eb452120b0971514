"""Rules that end a run: known well enough, enough rounds, out of time.

Never because a difference became significant. An experiment's question chooses among them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log1p
from typing import NamedTuple

from webdyno.comparison.comparison import (
    ALPHA,
    SEQUENTIAL_FACTOR,
    compare_as_asked,
    is_large_and_known,
    shown_estimate,
    too_noisy,
    wanted_half_width,
)
from webdyno.core.format import count, duration, lower_first, percent
from webdyno.core.judgement import Comparison
from webdyno.core.measure import Measure
from webdyno.core.metrics import METRICS
from webdyno.core.records import StopReason
from webdyno.core.text import Prose
from webdyno.evidence.log_ratios import LogRatios, log_ratios
from webdyno.evidence.noise import judged_values
from webdyno.evidence.point_data import PointData, compute_once
from webdyno.statistics.interval import Estimate, estimate, t_quantile
from webdyno.validity import used_s

OWN_S = 1.3
"""Of the time within which a clear difference is to be reported, what isn't measuring. 1.2 s were
seen (nginx against Apache on two CPUs), and 0.1 s are for luck."""
VARIANTS = 2
"""Variants that share that time; each further one gets as much as one of these."""
SPARE_ROUNDS = 2
"""Rounds at most in place of invalidated ones when the budget is used up, lest there be no
verdict."""
OUTNUMBERED = 2
"""Times the fewest rounds: by then interference that passed has invalidated no more than half of
the slots, and those are excluded (`INTERFERENCE_TOLERATED`) instead of counted as bounds."""


@dataclass(frozen=True)
class Stop:
    """Why to stop, as a word and as a sentence."""

    reason: StopReason
    why: Prose


def seconds_for_a_variant(measure: Measure) -> float | None:
    """Return how long a variant's pilot and slots may take where a difference is clear, if limited.

    It moves when a run ends and how long short slots are: no interval and no verdict hangs on it.
    `docs/validation/coverage.md` has what it costs.
    """
    if not measure.answer_within_s:
        return None
    return (measure.answer_within_s - OWN_S) / VARIANTS


def used_up(data: PointData, measure: Measure, elapsed_s: float, times: float = 1.0) -> Stop | None:
    """Stop where the most rounds or the budget, or so many times of them, are used up."""
    finished, budget_s = len(data.rounds), measure.budget_s * times
    if finished >= measure.max_rounds * times:
        return Stop("max-rounds", f"{count(finished, 'round')} are the most that were asked for")
    if elapsed_s + data.round_s > budget_s:
        longest = f"{times:g} times the budget" if times > 1 else "the budget"
        return Stop("budget", f"no other round fits into {longest} of {measure.budget_s:g} s")
    return None


def worth_patience(pairs: Sequence[LogRatios]) -> bool:
    """Whether a ratio is so little known that a run takes longer than it should.

    Only the interval's width against the difference counts, as for `precision`: going on until a
    difference is significant would find too many that aren't.
    """
    confidence = 1 - ALPHA / len(pairs)
    return any(too_noisy(pair.d, confidence) for pair in pairs)


def known_well(valid: PointData, fewest: int) -> Stop | None:
    """Stop where the answer is there, or where more rounds can't bring it.

    A run that goes on for its bounds looks again at each `fewest` rounds only: looking after each
    round until a difference survives would find too many that aren't.
    """
    measure = valid.measure
    rounds = len(valid.rounds)
    unsettled = _unsettled_comparisons(valid, fewest)
    since_look = rounds % fewest
    if unsettled is None or (
        since_look and _unsettled_comparisons(valid.first(rounds - since_look), fewest)
    ):
        return None
    if not unsettled:
        return Stop("precision", _how_well(deciding_pairs(valid), measure))
    if any(_may_settle(comparison, rounds, fewest, measure) for comparison in unsettled):
        return None
    why = " ".join(comparison.why for comparison in unsettled)
    return Stop("bounds", f"more rounds would not help: {lower_first(why).rstrip('.')}")


def reported_promptly(valid: PointData, elapsed_s: float) -> Stop | None:
    """Stop where a difference is large and another round would end too late.

    Such a difference needn't be known as well as others. It is one look, at a moment that the
    ratios don't choose, and only at an interval's width. Runs with limits or resumed ones go on.
    """
    measure = valid.measure
    of_a_variant_s = seconds_for_a_variant(measure)
    if of_a_variant_s is None or measure.patience == 1:
        return None
    prompt_s = of_a_variant_s * len(valid.experiment.variants)
    if not 0 <= prompt_s - elapsed_s < valid.round_s:
        return None
    pairs = deciding_pairs(valid)
    confidence = 1 - ALPHA / len(pairs)
    if not all(is_large_and_known(pair.d, confidence) for pair in pairs):
        return None
    if any(each.verdict is not each.sampling_verdict for each in compare_as_asked(valid)):
        return None
    known = "stopped early: the difference is large and clear"
    longer = f"another round would take longer than {duration(round(prompt_s))}"
    return Stop("precision", f"{known}, and {longer}")


def _unsettled_comparisons(valid: PointData, fewest: int) -> list[Comparison] | None:
    """Return the verdicts that don't survive their bounds; None while ratios aren't known well."""
    pairs = deciding_pairs(valid)
    confidence = 1 - ALPHA / len(pairs)  # of Holm's first step
    if min(len(pair.d) for pair in pairs) < fewest:
        return None
    if not all(shown_estimate(pair.d, valid.measure, confidence)[1] for pair in pairs):
        return None
    compared = compare_as_asked(valid)
    return [each for each in compared if each.verdict is not each.sampling_verdict]


def _may_settle(comparison: Comparison, rounds: int, fewest: int, measure: Measure) -> bool:
    """Whether the sampling verdict may come to survive the worst case within the rounds requested.

    Rounds narrow the interval and outnumber passing interference. They don't show what a variant
    can do for which client or link are too slow.
    """
    needed = comparison.more_rounds
    if needed is not None and rounds + needed <= measure.max_rounds:
        return True
    return not comparison.limited_by and rounds < OUTNUMBERED * fewest


def _how_well(pairs: Sequence[LogRatios], measure: Measure) -> str:
    if all(estimate(pair.d, 1 - ALPHA).half_width <= log1p(measure.precision) for pair in pairs):
        return f"as precise as requested, ±{percent(measure.precision)}"
    return "precise enough for a difference this large"


@compute_once
def deciding_pairs(valid: PointData) -> list[LogRatios]:
    """Return each variant's ratios to the baseline on the deciding metric, by round."""
    rule = METRICS[valid.measure.decide_on]
    return log_ratios(
        {variant: judged_values(valid, variant, rule) for variant in valid.experiment.variants}
    )


class Foresight(NamedTuple):
    """How far a run is from stopping by itself, by the least known ratio."""

    variant: str
    """Against the baseline."""
    estimate: Estimate
    """ln of the ratio, by the sampling CI."""
    wanted: float
    """Half-width (ln) at which the run stops."""
    rounds: int
    """About how many valid rounds it will have taken."""
    left_s: float = 0.0
    """About how long the missing ones take."""

    def can_be_kept(self, data: PointData) -> bool:
        """Whether it may come so: not where the run should be over, or a limit ends it before."""
        return 0 < self.left_s <= data.measure.limit_s - used_s(data)


def foresight(data: PointData, valid: PointData, fewest: int) -> Foresight | None:
    """Foresee when the intervals are narrow enough; None before there are any."""
    measure, pairs = data.measure, deciding_pairs(valid)
    if not pairs or any(len(pair.d) < 2 for pair in pairs):
        return None
    confidence = 1 - ALPHA / len(pairs)
    seen = [_foresight_of(pair, measure, confidence, fewest) for pair in pairs]
    worst = max(seen, key=lambda precision: precision.estimate.half_width / precision.wanted)
    more = max(worst.rounds - len(data.rounds), 0)
    return worst._replace(left_s=more * data.round_s)


def _foresight_of(pair: LogRatios, measure: Measure, confidence: float, fewest: int) -> Foresight:
    ratio, seen = estimate(pair.d, confidence), len(pair.d)
    half_width = wanted_half_width(ratio.centre, measure)
    spread = ratio.half_width * seen**0.5 / t_quantile(seen, confidence)
    rounds = max(seen, fewest)
    while rounds < measure.max_rounds:
        wider = SEQUENTIAL_FACTOR if rounds > measure.min_rounds else 1.0
        if wider * t_quantile(rounds, confidence) * spread / rounds**0.5 <= half_width:
            break
        rounds += 1
    return Foresight(pair.variant, ratio, half_width, rounds)
