"""How long a gate needs here, foreseen from its first rounds: some machines are too noisy.

A claim is open as long as its bounds reach further than its limit. How far they will reach after
more rounds hangs on the noise of a round alone, which head and both copies of the baseline show:
the difference of the copies has twice the variance of a variant, head's distance from their mean
one and a half times. What a difference of head's own would add is left aside: this is the time for
"no change" to be told.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import expm1, inf, log1p

from scipy.special import stdtrit

from webdyno.judge.one_sided import RISK, look_level
from webdyno.judge.questions.claims import MeasuredClaim
from webdyno.model.format import count, listed, minutes, percent
from webdyno.model.measure import Measure
from webdyno.model.metrics import CPU_TIME, METRICS

FEWEST_ROUNDS = 2
MOST_ROUNDS = 2_000
"""Beyond that nobody waits."""
WITHIN = 1.0
"""A wider range says nothing of a change."""
OF_HEAD, OF_COPIES = 1.5, 2.0
"""Variances of head's distance from the mean of both copies, and of the copies from each other, in
those of one variant."""


@dataclass(frozen=True)
class NeededRounds:
    """What the limit of a metric takes here, at the endpoint that takes most."""

    metric: str
    limit: float
    """As a share, as it was asked for."""
    rounds: float
    """At each endpoint; infinite where interference alone outweighs the limit."""
    within: float
    """The change that can be ruled out in the time given, as a share."""


def needed_rounds(
    claims: Iterable[MeasuredClaim], measure: Measure, given_rounds: int
) -> list[NeededRounds]:
    """Foresee the rounds that claims take by their metrics, and what the given rounds can tell."""
    needs: dict[str, NeededRounds] = {}
    for claim in claims:
        if claim.limited or (sd := _noise(claim)) is None:
            continue
        bias = max(claim.bound.up, claim.bound.down)
        wanted_half_width = log1p(claim.worse_share) - bias
        new = NeededRounds(
            claim.rule.name,
            claim.tolerance,
            _rounds(sd, wanted_half_width, claim, measure),
            expm1(_reach(sd, max(given_rounds, measure.min_rounds), claim, measure) + bias),
        )
        known = needs.get(new.metric)
        if known is None or (new.rounds, new.within) > (known.rounds, known.within):
            needs[new.metric] = new
    return list(needs.values())


def _noise(claim: MeasuredClaim) -> float | None:
    """Give the standard deviation of head's distance in a round, in ln; None with one round."""
    freedom = 2 * (len(claim.d) - 1)
    if len(claim.d) < FEWEST_ROUNDS:
        return None
    squares = len(claim.d) * (float(claim.d.var()) / OF_HEAD + float(claim.again.var()) / OF_COPIES)
    return float((squares / freedom * OF_HEAD) ** 0.5)


def _reach(sd: float, rounds: int, claim: MeasuredClaim, measure: Measure) -> float:
    """Give how far a bound will be from the mean after so many rounds."""
    most = claim.most_rounds or measure.max_rounds
    level = look_level(min(rounds, most), measure.min_rounds, most, RISK)
    return float(stdtrit(rounds - 1, 1 - level) * sd / rounds**0.5)


def _rounds(sd: float, half_width: float, claim: MeasuredClaim, measure: Measure) -> float:
    if half_width <= 0 or _reach(sd, MOST_ROUNDS, claim, measure) > half_width:
        return inf
    low, high = measure.min_rounds - 1, MOST_ROUNDS
    while high - low > 1:
        middle = (low + high) // 2
        if _reach(sd, middle, claim, measure) <= half_width:
            high = middle
        else:
            low = middle
    return high


def noisy_words(needed: Sequence[NeededRounds], round_s: float, given_rounds: int) -> str | None:
    """Say how long the limits take here, and what the given rounds tell; None where they suffice.

    `round_s`: of a round at all endpoints.
    """
    longest = max((need.rounds for need in needed), default=0.0)
    if longest <= given_rounds:
        return None
    limits = listed(dict.fromkeys(f"±{percent(need.limit)}" for need in needed))
    if longest == inf:
        takes = f"no time is enough for {limits} here"
    else:
        takes = f"{limits} would take about {minutes(longest * round_s)} here"
    cpu = next((need for need in needed if need.metric == CPU_TIME), None)
    if cpu and cpu.rounds < longest:
        takes += f", CPU per request alone about {minutes(cpu.rounds * round_s)}"
    telling = [need for need in needed if need.within < WITHIN]
    widths = listed(f"±{percent(need.within)} in {METRICS[need.metric].short}" for need in telling)
    given = f"{count(given_rounds, 'round')} ({minutes(given_rounds * round_s)})"
    return f"this machine is noisy: {takes}; {given} show {widths or 'no change'}"
