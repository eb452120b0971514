"""From an interval to a verdict, and to what is still needed where there is none."""

from dataclasses import dataclass
from math import log1p

from webdyno.judge.interval import Estimate, t_quantile
from webdyno.judge.words import percent
from webdyno.model.judgement import Verdict

MOST_BLOCKS_FORESEEN = 1_000


@dataclass(frozen=True)
class Question:
    """What is asked of the log ratios of an arm and the baseline."""

    better: str
    """`higher` or `lower`: which values of the metric are good."""
    delta: float
    """Ratios within 1/(1 + delta) to 1 + delta count as equivalent."""
    alpha: float
    """Two-sided risk of calling equals different; 1 - alpha is the interval's confidence."""
    fewest_blocks: int


@dataclass(frozen=True)
class Answer:
    """The verdict, why, and how many blocks might still bring one."""

    verdict: Verdict
    why: str
    more_blocks: int | None = None


def different(found: Estimate | None, p: float, question: Question) -> bool:
    """Tell whether both the interval and the exact test exclude "no difference"."""
    return found is not None and found.excludes_zero() and p <= question.alpha


def answer(found: Estimate | None, p: float, blocks: int, question: Question) -> Answer:
    """Give the verdict.

    `equivalent`: the whole interval lies within ±delta. `faster`, `slower`: the interval and the
    exact test both exclude "no difference", and the estimate lies outside ±delta. Else `undecided`.
    """
    delta = percent(question.delta)
    interval = f"{(1 - question.alpha) * 100:.3g} % interval"
    if found is None or blocks < question.fewest_blocks:
        return Answer(
            Verdict.UNDECIDED,
            f"A verdict needs at least {question.fewest_blocks} blocks; there are {blocks}.",
            question.fewest_blocks - blocks,
        )
    verdict = by_interval(found, question.delta, question.better)
    if verdict is Verdict.EQUIVALENT:
        return Answer(verdict, f"The whole {interval} lies within {delta} of 1.")
    if verdict is not Verdict.UNDECIDED and p <= question.alpha:
        return Answer(
            verdict,
            f"The {interval} excludes 1, the exact sign-flip test confirms it (p = {p:.2g}), and "
            f"the estimate lies outside ±{delta}.",
        )
    if not found.excludes_zero():
        why = f"The {interval} holds both no difference and differences of more than {delta}."
    elif p > question.alpha:
        why = (
            f"The {interval} excludes 1, but the exact sign-flip test doesn't confirm it "
            f"(p = {p:.2g})."
        )
    else:
        why = (
            f"There is a difference, probably of less than {delta}, but the {interval} "
            "reaches further."
        )
    return Answer(Verdict.UNDECIDED, why, _more_blocks(found, blocks, question))


def by_interval(found: Estimate, delta: float, better: str) -> Verdict:
    """Give the verdict that an interval of a log ratio allows, whatever else is asked for."""
    limit = log1p(delta)
    if -limit <= found.low and found.high <= limit:
        return Verdict.EQUIVALENT
    if not found.excludes_zero() or abs(found.centre) <= limit:
        return Verdict.UNDECIDED
    return Verdict.FASTER if (found.centre > 0) == (better == "higher") else Verdict.SLOWER


def _more_blocks(found: Estimate, blocks: int, question: Question) -> int | None:
    """How many more blocks would bring a verdict if estimate and spread stayed as they are.

    None when it would take more than anybody would wait for.
    """
    limit = log1p(question.delta)
    distance = abs(found.centre)
    wanted = distance if distance > limit else limit - distance
    confidence = 1 - question.alpha
    spread = found.half_width * blocks**0.5 / t_quantile(blocks, confidence)
    for n in range(blocks + 1, blocks + MOST_BLOCKS_FORESEEN + 1):
        if t_quantile(n, confidence) * spread / n**0.5 <= wanted:
            return n - blocks
    return None
