"""One-sided questions, answered as soon as they can be: `faster`, `not-slower-by 5%`.

A run that looks after every round and stops when the answer is there would find differences that
aren't: each look is another chance. So the risk of 5% is spent bit by bit over the rounds that are
planned (Lan & DeMets, "Discrete sequential boundaries for clinical trials", Biometrika 1983), as
share^1.5 of it (Kim & DeMets, Biometrika 1987): O'Brien and Fleming's function gives next to
nothing to the first looks, so that six rounds answer only what is glaring, Pocock's costs rounds
where the difference is small. Boundaries are those of a normal mean, taken over to Student's t at
equal significance levels (Jennison & Turnbull, "Group sequential methods", 2000, section 4.4),
which for few rounds is slightly too lavish: hence `SPENT`. A run that ends before all planned
rounds has spent less than its risk. Non-inferiority: ICH E9, section 3.3.2.
"""

from dataclasses import dataclass
from functools import cache
from math import ceil, exp, expm1, floor, log1p, log10
from typing import Literal

import numpy as np
from scipy.special import ndtr, stdtr, stdtrit

from webdyno.core.base import Interval
from webdyno.core.format import percent
from webdyno.core.judgement import OneSidedAnswer
from webdyno.core.measure import Measure
from webdyno.core.question import OneSidedClaim
from webdyno.statistics.bounds import Bound
from webdyno.statistics.interval import TINY, Logs, within_floats

RISK = 0.05
SPENT = 0.92
"""Share of the risk that is spent nominally: wrong answers then stay below the risk at any number
of planned rounds up to 30 (tests/statistics/test_one_sided.py)."""
SPENDING_POWER = 1.5
GRID, GRID_SDS = 2001, 8.0
MOST_DIGITS = 4
"""Of a percentage: what is smaller is nothing."""


@dataclass(frozen=True)
class OneSided:
    """Whether the variant is better than the baseline, or not worse than `tolerance` allows."""

    tolerance: float
    """0 asks for `faster`; 0.05 asks whether the ratio is at least 1/1.05."""
    better: Literal["higher", "lower"]
    """Which values of the metric are good."""
    most_rounds: int
    """Planned before anything of a difference was seen."""
    fewest_rounds: int = 6
    risk: float = RISK
    """Of a wrong yes, and of a wrong no, over all looks together."""
    words: str = ""
    """As the experiment has it; empty where it was asked by webdyno."""

    @property
    def margin(self) -> float:
        """The log gain above which the answer is yes."""
        return -log1p(self.tolerance)


def ask_by_sampling(d: Logs, question: OneSided) -> OneSidedAnswer | None:
    """Answer from the rounds' log ratios so far; None while there are too few to look.

    The bounds are repeated confidence bounds (Jennison & Turnbull, JRSS B 1989): they hold at
    whichever round the run stops.
    """
    n = len(d)
    if n < question.fewest_rounds:
        return None
    level = look_level(n, question.fewest_rounds, question.most_rounds, question.risk)
    gain = d if question.better == "higher" else -d
    mean, sd = float(gain.mean()), max(float(gain.std(ddof=1)), TINY**0.5)
    reach = float(stdtrit(n - 1, 1 - level)) * sd / n**0.5
    low, high = mean - reach, mean + reach
    p = 1 - float(stdtr(n - 1, (mean - question.margin) / (sd / n**0.5)))
    question_text = (
        f"a gain above {percent(exp(question.margin) - 1)}" if question.tolerance else "a gain"
    )
    answer: Literal["yes", "no", "inconclusive"] = "inconclusive"
    why = (
        f"{question_text} is neither certain nor ruled out after {n} rounds "
        f"(p = {p:.2g}, {level:.2g} required)"
    )
    if low > question.margin:
        answer, why = "yes", f"{question_text} is certain: at least {percent(expm1(low))}"
    elif high < question.margin:
        answer, why = "no", f"{question_text} is ruled out: at most {percent(expm1(high))}"
    return OneSidedAnswer(
        question=question.words, answer=answer, at_least=exp(low), at_most=exp(high), why=why
    )


def one_sided_of(
    claim: OneSidedClaim, measure: Measure, better: Literal["higher", "lower"]
) -> OneSided:
    """Return the question whether a claim holds."""
    return OneSided(
        claim.tolerance, better, measure.max_rounds, measure.min_rounds, words=claim.words
    )


def ask_within(d: Logs, bound: Bound, question: OneSided) -> OneSidedAnswer | None:
    """Answer in the worst case of interference: yes and no rest on it."""
    worst, best = (d - bound.up, d + bound.down)
    if question.better == "lower":
        worst, best = best, worst
    pessimist, optimist = (
        ask_by_sampling(within_floats(moved), question) for moved in (worst, best)
    )
    if pessimist is None or optimist is None:
        return None
    if pessimist.answer == "yes":
        return pessimist.replace(at_most=optimist.at_most)
    if optimist.answer == "no":
        return optimist.replace(at_least=pessimist.at_least)
    why = pessimist.why
    if pessimist.answer != optimist.answer:
        why = "interference may have caused or hidden the difference"
    return pessimist.replace(answer="inconclusive", at_most=optimist.at_most, why=why)


def look_level(n: int, fewest: int, most: int, risk: float = RISK) -> float:
    """Give the one-sided significance level at which the look after round n answers."""
    levels = _levels(fewest, max(most, fewest), risk)
    return levels[min(n - fewest, len(levels) - 1)]


@cache
def _levels(fewest: int, most: int, risk: float) -> tuple[float, ...]:
    """Give the level of each look, from `fewest` rounds to `most`.

    The sum of the rounds walks on a grid: what crosses the boundary is taken out, the rest goes on
    (Armitage, McPherson, Rowe, JRSS A 1969). At each look the boundary lies where what crosses is
    what may be spent.
    """
    reach = GRID_SDS * most**0.5
    x = np.linspace(-reach, reach, GRID)
    step = x[1] - x[0]
    width = ceil(GRID_SDS / step)
    one_round = _normal(np.arange(-width, width + 1) * step, 1) * step
    inside, spent, levels = _normal(x, fewest), 0.0, []
    for n in range(fewest, most + 1):
        if n > fewest:
            inside = np.convolve(inside, one_round, mode="same")
        may_be_spent = SPENT * risk * (n / most) ** SPENDING_POWER
        # What lies beyond the middle between a point of the grid and the one before.
        beyond = np.cumsum(inside[::-1])[::-1] * step
        boundary = float(np.interp(spent - may_be_spent, -beyond, x - step / 2))
        levels.append(1 - float(ndtr(boundary / n**0.5)))
        spent = may_be_spent
        inside = np.where(x < boundary, inside, 0.0)
    return tuple(levels)


def _normal(x: Logs, variance: float) -> Logs:
    return np.asarray(np.exp(-(x**2) / (2 * variance)) / (2 * np.pi * variance) ** 0.5)


def ruled_out_difference(ratio: Interval) -> float:
    """Give the difference, as a share, that no true ratio in the interval exceeds."""
    return max(ratio.high, 1 / ratio.low) - 1


def ruled_out(ratio: Interval) -> str:
    """Say between which ends a difference lies, rounded so that it stays true."""
    low, high = (_rounded_away(share) for share in (ratio.low - 1, ratio.high - 1))
    return f"the difference is between {low} and {high}"


def _rounded_away(share: float) -> str:
    """Write a share of one in per cent with its sign, rounded away from zero."""
    per_cent = abs(share) * 100
    digits = min(max(0, 1 - floor(log10(per_cent))), MOST_DIGITS) if per_cent > 0 else 1
    rounded = ceil(round(per_cent * 10**digits, 6)) / 10**digits
    sign = "" if not rounded else "\N{MINUS SIGN}" if share < 0 else "+"
    return f"{sign}{rounded:g}%"
