"""From an interval to a verdict, and to what is still needed where there is none."""

from dataclasses import dataclass, replace
from math import log1p

from webdyno.core.format import confidence_level, percent, probability
from webdyno.core.judgement import Because, Verdict
from webdyno.statistics.bounds import UNBIASED, Bound
from webdyno.statistics.interval import Estimate, t_quantile

MOST_ROUNDS_FORESEEN = 1_000
MOST_EQUAL = 0.1
"""Where copies of one variant (A/A) differ by more than this, nothing is called equivalent."""


@dataclass(frozen=True)
class VerdictRule:
    """What is asked of the log ratios of a variant and the baseline."""

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
        """The same in words."""
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


def different(ratio: Estimate | None, p: float, question: VerdictRule) -> bool:
    """Return whether both the interval and the exact test exclude "no difference"."""
    return ratio is not None and ratio.excludes_zero() and p <= question.alpha


def answer(ratio: Estimate | None, p: float, rounds: int, question: VerdictRule) -> Ruling:
    """Give the verdict.

    `equivalent`: the whole interval lies within ±delta (or the metric's floor), unless delta says
    that equals differ too much here. `faster`, `slower`: the interval and the exact test both
    exclude "no difference", and the estimate lies outside. Else `inconclusive`; without a round
    `incomplete`.
    """
    interval = f"{confidence_level(1 - question.alpha)} CI"
    limit = question.limit_text
    if not rounds:
        fewest = question.fewest_rounds
        why = f"No round was finished with valid figures; a verdict needs at least {fewest}."
        return Ruling(Verdict.INCOMPLETE, "no-round", why, fewest)
    if ratio is None or rounds < question.fewest_rounds:
        return Ruling(
            Verdict.INCONCLUSIVE,
            "few-rounds",
            f"A verdict needs at least {question.fewest_rounds} rounds; there are {rounds}.",
            question.fewest_rounds - rounds,
        )
    verdict = by_interval(ratio, question.limit, question.better)
    if verdict is Verdict.EQUIVALENT and not _within(ratio, log1p(question.delta)):
        return Ruling(
            verdict,
            "below-floor",
            f"The whole {interval} is a difference of less than {limit}: below the practical "
            "threshold, whatever the ratio.",
            negligible=True,
        )
    if question.is_too_noisy and abs(ratio.centre) <= question.limit:
        why = f"Too noisy: copies of one variant differ by {limit}."
        return Ruling(Verdict.INCONCLUSIVE, "too-noisy", why)
    if verdict is Verdict.EQUIVALENT:
        why = f"The whole {interval} lies within {percent(question.delta)} of 1."
        return Ruling(verdict, "within-threshold", why)
    if verdict is not Verdict.INCONCLUSIVE and p <= question.alpha:
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
    elif p > question.alpha:
        because = "exact-test"
        why = (
            f"The {interval} excludes 1, but an exact permutation test doesn't agree "
            f"({_p(p, rounds)})."
        )
    else:
        why = f"There is a difference, probably below {limit}, but the {interval} reaches further."
    return Ruling(Verdict.INCONCLUSIVE, because, why, more_rounds_needed(ratio, rounds, question))


def _p(p: float, rounds: int) -> str:
    """Give a p-value; say so where so few rounds can give no smaller one, however they differ."""
    shown = probability(p)
    return f"{shown}, the minimum for {rounds} rounds" if p <= 2.0 ** (1 - rounds) else shown


def answer_within(
    measured: Ruling, worst_case: Ruling, tipping: str, more_rounds: int | None
) -> Ruling:
    """Give the verdict that holds in the worst case of interference.

    `tipping` says how much interference it would take, and how much there was; `more_rounds` how
    many rounds it takes for the sampling verdict to survive the worst case.
    """
    if measured.verdict is worst_case.verdict:
        return replace(measured, why=f"{measured.why} Robust: {tipping}.")
    return Ruling(
        Verdict.INCONCLUSIVE,
        "interference",
        f"Looks {measured.verdict}, but interference could explain all of it: {tipping}.",
        more_rounds,
    )


def by_interval(ratio: Estimate, limit: float, better: str) -> Verdict:
    """Give the verdict that an interval of a log ratio allows, whatever else is requested.

    Log ratios of up to `limit` to either side count as equivalent.
    """
    if _within(ratio, limit):
        return Verdict.EQUIVALENT
    if not ratio.excludes_zero() or abs(ratio.centre) <= limit:
        return Verdict.INCONCLUSIVE
    return Verdict.FASTER if (ratio.centre > 0) == (better == "higher") else Verdict.SLOWER


def _within(ratio: Estimate, limit: float) -> bool:
    return -limit <= ratio.low and ratio.high <= limit


def more_rounds_needed(
    ratio: Estimate, rounds: int, question: VerdictRule, bound: Bound = UNBIASED
) -> int | None:
    """How many more rounds would bring a verdict if estimate, spread and bound stayed as they are.

    `found` is the sampling CI: rounds narrow it, but not the possible effect of interference. None
    when it would take more rounds than anybody would wait for, or none would help.
    """
    limit, centre = question.limit, ratio.centre
    if abs(centre) > limit:
        half_width = abs(centre) - (bound.up if centre > 0 else bound.down)
    else:
        half_width = limit - max(centre + bound.down, bound.up - centre)
    level = 1 - question.alpha
    spread = ratio.half_width * rounds**0.5 / t_quantile(rounds, level)
    for n in range(rounds + 1, rounds + MOST_ROUNDS_FORESEEN + 1):
        if t_quantile(n, level) * spread / n**0.5 <= half_width:
            return n - rounds
    return None
