"""From an interval to a verdict (`answer`), or to a one-sided question's answer (`ask_within`).

A verdict is given when a run has ended, by the interval of the ratio and an exact test
(`VerdictRule`). A one-sided question (`OneSided`: `faster`, `not-slower-by 5%`) is asked after each
round, and its answer ends the run. Each look is another chance to find a difference that isn't one,
so the risk of 5% is spent bit by bit over the rounds that are planned (Lan & DeMets, "Discrete
sequential boundaries for clinical trials", Biometrika 1983), as share^1.5 of it (Kim & DeMets,
Biometrika 1987). A run that ends before all planned rounds has spent less than its risk.

Others spend it otherwise: O'Brien and Fleming's function gives next to nothing to the first looks,
so that six rounds answer only what is glaring; Pocock's costs rounds where the difference is small.
Boundaries are those of a normal mean, taken over to Student's t at equal significance levels
(Jennison & Turnbull, "Group sequential methods", 2000, section 4.4). With few rounds that answers
slightly too often, which `SPENT` makes up for. Non-inferiority: ICH E9, section 3.3.2.
"""

from dataclasses import dataclass, replace
from functools import cache
from math import ceil, exp, floor, log1p, log10
from typing import Literal

import numpy as np
from scipy.special import ndtr, stdtr

from webdyno.core.base import Interval
from webdyno.core.format import confidence_level, percent, probability
from webdyno.core.judgement import Because, OneSidedAnswer, Verdict
from webdyno.core.measure import Measure
from webdyno.core.question import OneSidedClaim
from webdyno.statistics.bounds import UNBIASED, Bound
from webdyno.statistics.interval import (
    TINY,
    Estimate,
    Logs,
    t_half_width,
    t_reach,
    within_floats,
)

MOST_ROUNDS_FORESEEN = 1_000
MOST_EQUAL = 0.1
"""Where copies of one variant (A/A) differ by more than this, nothing is called equivalent."""
RISK = 0.05
SPENT = 0.92
"""Share of the risk that is spent nominally: wrong answers then stay below the risk at any number
of planned rounds up to 30 (tests/statistics/test_one_sided.py)."""
SPENDING_POWER = 1.5
GRID, GRID_SDS = 2001, 8.0
MOST_DIGITS = 4
"""Of a percentage: what is smaller is nothing."""


@dataclass(frozen=True)
class VerdictRule:
    """By which rule a verdict is given on the log ratios of a variant and the baseline."""

    better: str
    """`higher` or `lower`: which values of the metric are good."""
    delta: float
    """Ratios within 1/(1 + delta) to 1 + delta count as equivalent."""
    alpha: float
    """Two-sided risk of calling equals different; 1 - alpha is the interval's confidence."""
    fewest_rounds: int
    floor: float = 0.0
    """So do those within 1/(1 + floor) to 1 + floor, being of less than `floor_text`."""
    floor_text: str = ""

    @property
    def limit(self) -> float:
        """The log ratio up to which there is no difference that matters."""
        return log1p(max(self.delta, self.floor))

    @property
    def limit_text(self) -> str:
        return self.floor_text if self.floor > self.delta else percent(self.delta)

    @property
    def is_too_noisy(self) -> bool:
        """Whether copies of one variant differ too much for any to be called equivalent."""
        return self.delta > MOST_EQUAL


@dataclass(frozen=True)
class Ruling:
    """The verdict, why, and how many rounds might still bring one."""

    verdict: Verdict
    because: Because
    why: str
    more_rounds: int | None = None
    negligible: bool = False


def different(ratio: Estimate | None, p: float, rule: VerdictRule) -> bool:
    """Return whether both the interval and the exact test exclude "no difference"."""
    return ratio is not None and ratio.excludes_zero() and p <= rule.alpha


def answer(ratio: Estimate | None, p: float, rounds: int, rule: VerdictRule) -> Ruling:
    """Return the verdict.

    `equivalent`: the whole interval lies within ±delta (or the metric's floor), unless delta says
    that equals differ too much here. `faster`, `slower`: the interval and the exact test both
    exclude "no difference", and the estimate lies outside. Else `inconclusive`; without a round
    `incomplete`.
    """
    interval = f"{confidence_level(1 - rule.alpha)} CI"
    limit = rule.limit_text
    if not rounds:
        fewest = rule.fewest_rounds
        why = f"No round was finished with valid figures; a verdict needs at least {fewest}."
        return Ruling(Verdict.INCOMPLETE, "no-round", why, fewest)
    if ratio is None or rounds < rule.fewest_rounds:
        return Ruling(
            Verdict.INCONCLUSIVE,
            "few-rounds",
            f"A verdict needs at least {rule.fewest_rounds} rounds; there "
            f"{'is' if rounds == 1 else 'are'} {rounds}.",
            rule.fewest_rounds - rounds,
        )
    verdict = by_interval(ratio, rule.limit, rule.better)
    if verdict is Verdict.EQUIVALENT and not _within(ratio, log1p(rule.delta)):
        return Ruling(
            verdict,
            "below-floor",
            f"The whole {interval} is a difference of less than {limit}: below the practical "
            "threshold, whatever the ratio.",
            negligible=True,
        )
    if rule.is_too_noisy and abs(ratio.centre) <= rule.limit:
        why = f"Too noisy: copies of one variant differ by {limit}."
        return Ruling(Verdict.INCONCLUSIVE, "too-noisy", why)
    if verdict is Verdict.EQUIVALENT:
        why = f"The whole {interval} lies within {percent(rule.delta)} of 1."
        return Ruling(verdict, "within-threshold", why)
    if verdict is not Verdict.INCONCLUSIVE and p <= rule.alpha:
        return Ruling(
            verdict,
            "beyond-threshold",
            f"Significant: the {interval} excludes 1, an exact permutation test agrees "
            f"({_p(p, rounds)}), and the estimate lies outside ±{limit}.",
        )
    because: Because = "near-threshold"
    if not ratio.excludes_zero():
        because = "wide-interval"
        why = f"The {interval} includes both no difference and differences of more than {limit}."
    elif p > rule.alpha:
        because = "exact-test"
        why = (
            f"The {interval} excludes 1, but an exact permutation test doesn't agree "
            f"({_p(p, rounds)})."
        )
    else:
        why = f"There is a difference, probably below {limit}, but the {interval} reaches further."
    return Ruling(Verdict.INCONCLUSIVE, because, why, more_rounds_needed(ratio, rounds, rule))


def _p(p: float, rounds: int) -> str:
    """Write a p-value, with a word where so few rounds can give no smaller one."""
    shown = probability(p)
    return f"{shown}, the minimum for {rounds} rounds" if p <= 2.0 ** (1 - rounds) else shown


def answer_within(
    measured: Ruling, worst_case: Ruling, tipping: str, more_rounds: int | None
) -> Ruling:
    """Return the verdict that holds in the worst case of interference.

    `tipping`: how much interference it would take, and how much there was. `more_rounds`: until the
    sampling verdict survives the worst case.
    """
    if measured.verdict is worst_case.verdict is Verdict.INCONCLUSIVE:
        return measured
    if measured.verdict is worst_case.verdict:
        return replace(measured, why=f"{measured.why} Robust: {tipping}.")
    return Ruling(
        Verdict.INCONCLUSIVE,
        "interference",
        f"Looks {measured.verdict}, but interference could explain all of it: {tipping}.",
        more_rounds,
    )


def by_interval(ratio: Estimate, limit: float, better: str) -> Verdict:
    """Return the verdict that an interval of a log ratio allows, by `limit` to either side."""
    if _within(ratio, limit):
        return Verdict.EQUIVALENT
    if not ratio.excludes_zero() or abs(ratio.centre) <= limit:
        return Verdict.INCONCLUSIVE
    return Verdict.FASTER if (ratio.centre > 0) == (better == "higher") else Verdict.SLOWER


def _within(ratio: Estimate, limit: float) -> bool:
    return -limit <= ratio.low and ratio.high <= limit


def more_rounds_needed(
    ratio: Estimate, rounds: int, rule: VerdictRule, bound: Bound = UNBIASED
) -> int | None:
    """How many more rounds would bring a verdict if estimate, spread and bound stayed as they are.

    `ratio` is the sampling CI: rounds narrow it, but not the possible effect of interference. None
    when it would take more rounds than anybody would wait for, or none would help.
    """
    limit, centre = rule.limit, ratio.centre
    if abs(centre) > limit:
        half_width = abs(centre) - (bound.up if centre > 0 else bound.down)
    else:
        half_width = limit - max(centre + bound.down, bound.up - centre)
    level = 1 - rule.alpha
    spread = ratio.half_width / t_half_width(rounds, 1.0, level)
    for n in range(rounds + 1, rounds + MOST_ROUNDS_FORESEEN + 1):
        if t_half_width(n, spread, level) <= half_width:
            return n - rounds
    return None


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
    reach = t_reach(n, sd, level)
    low, high = mean - reach, mean + reach
    p = 1 - float(stdtr(n - 1, (mean - question.margin) / (sd / n**0.5)))
    answer: Literal["yes", "no", "inconclusive"] = "inconclusive"
    required = f"(p = {p:.2g}, {level:.2g} required)"
    said = _loss_words(question) or "a gain"
    why = f"{said} is neither certain nor ruled out after {n} rounds {required}"
    if low > question.margin:
        answer, why = "yes", f"{said} is {'ruled out' if question.tolerance else 'certain'}"
    elif high < question.margin:
        answer, why = "no", f"{said} is {'certain' if question.tolerance else 'ruled out'}"
    return OneSidedAnswer(
        question=question.words, answer=answer, at_least=exp(low), at_most=exp(high), why=why
    )


def _loss_words(question: OneSided) -> str:
    """Return the loss that isn't tolerated; empty where the question is whether there is a gain."""
    if not question.tolerance:
        return ""
    if question.better == "lower":
        return f"a rise of more than {percent(question.tolerance)}"
    return f"a fall of more than {percent(1 - exp(question.margin))}"


def one_sided_of(
    claim: OneSidedClaim, measure: Measure, better: Literal["higher", "lower"]
) -> OneSided:
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
    """Return the one-sided significance level at which the look after round n answers."""
    levels = _levels(fewest, max(most, fewest), risk)
    return levels[min(n - fewest, len(levels) - 1)]


@cache
def _levels(fewest: int, most: int, risk: float) -> tuple[float, ...]:
    """Return the level of each look, from `fewest` rounds to `most`.

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
    """Return the difference, as a share, that no true ratio in the interval exceeds."""
    return max(ratio.high, 1 / ratio.low) - 1


def ruled_out(ratio: Interval) -> str:
    """Describe between which ends a difference lies, rounded so that it stays true."""
    low, high = (_rounded_away(share) for share in (ratio.low - 1, ratio.high - 1))
    return f"the difference is between {low} and {high}"


def _rounded_away(share: float) -> str:
    """Write a share of one in per cent with its sign, rounded away from zero."""
    per_cent = abs(share) * 100
    digits = min(max(0, 1 - floor(log10(per_cent))), MOST_DIGITS) if per_cent > 0 else 1
    rounded = ceil(round(per_cent * 10**digits, 6)) / 10**digits
    sign = "" if not rounded else "\N{MINUS SIGN}" if share < 0 else "+"
    return f"{sign}{rounded:g}%"
