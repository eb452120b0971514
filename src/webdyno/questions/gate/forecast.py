"""How long a gate's limits take, by the noise that was seen, and where more time hardly helps.

While it is measured this is foreseen of no change. Once it has ended, what is open is foreseen of
the change that was found, as comparisons are (`more_rounds_needed`): near its limit no time is
enough.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import expm1, inf, log1p

from webdyno.comparison.sentences import MOST_MINUTES
from webdyno.core.format import count, listed, minutes, percent
from webdyno.core.limits import GateClaim
from webdyno.core.measure import Measure
from webdyno.core.metrics import CPU_TIME, METRICS
from webdyno.questions.gate.claims import MeasuredClaim
from webdyno.questions.gate.words import change_estimate, limit_words
from webdyno.statistics.interval import t_reach
from webdyno.statistics.verdict import RISK, look_level

FEWEST_ROUNDS = 2
MOST_ROUNDS = 2_000
"""Beyond that nobody waits."""
WITHIN = 1.0
"""A wider range says nothing of a change."""
OF_HEAD, OF_COPIES = 1.5, 2.0
"""Variances of head's distance from the mean of both copies, and of the copies from each other, in
those of one variant."""
NOISY = "this machine is noisy"


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
    """Foresee the rounds that claims take by their metrics, and what the given rounds can say.

    A claim is open as long as its bounds reach further than its limit. How far they will reach
    after more rounds hangs on the noise of a round alone, which head and both copies of the
    baseline show: the difference of the copies has twice the variance of a variant, head's distance
    from their mean one and a half times. What a difference of head's own would add is left aside:
    this is the time for "no change" to be reported.
    """
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
            expm1(_reach(sd, given_rounds, claim, measure) + bias),
        )
        known = needs.get(new.metric)
        if known is None or (new.rounds, new.within) > (known.rounds, known.within):
            needs[new.metric] = new
    return list(needs.values())


def _noise(claim: MeasuredClaim) -> float | None:
    """Return the standard deviation of head's distance in a round, in ln; None with one round."""
    freedom = 2 * (len(claim.d) - 1)
    if len(claim.d) < FEWEST_ROUNDS:
        return None
    squares = len(claim.d) * (float(claim.d.var()) / OF_HEAD + float(claim.again.var()) / OF_COPIES)
    return float((squares / freedom * OF_HEAD) ** 0.5)


def _reach(sd: float, rounds: int, claim: MeasuredClaim, measure: Measure) -> float:
    """Return how far a bound will be from the mean after so many rounds."""
    most = claim.most_rounds or measure.max_rounds
    level = look_level(min(rounds, most), measure.min_rounds, most, RISK)
    return t_reach(rounds, sd, level)


def _rounds(sd: float, half_width: float, claim: MeasuredClaim, measure: Measure) -> float:
    if half_width <= 0 or _reach(sd, MOST_ROUNDS, claim, measure) > half_width:
        return inf
    possible = range(measure.min_rounds, MOST_ROUNDS)
    further = bisect_left(
        possible, True, key=lambda rounds: _reach(sd, rounds, claim, measure) <= half_width
    )
    return measure.min_rounds + further


def longest_rounds(needed: Sequence[NeededRounds]) -> float:
    """Return how many rounds it takes until all limits are decided."""
    return max((need.rounds for need in needed), default=0.0)


def noisy_words(
    needed: Sequence[NeededRounds], round_s: float, given_rounds: int, *, measured: bool = False
) -> str | None:
    """Return how long limits take at all endpoints; None where the given rounds suffice.

    While it is measured also what these will show.
    """
    longest = longest_rounds(needed)
    if longest <= given_rounds:
        return None
    limits = listed(dict.fromkeys(f"±{percent(need.limit)}" for need in needed))
    if longest == inf:
        takes = f"no time is enough for {limits} here"
    else:
        in_all = " in all" if measured else ""
        takes = f"{limits} would take about {minutes(longest * round_s)}{in_all} here"
    cpu = next((need for need in needed if need.metric == CPU_TIME), None)
    if cpu and cpu.rounds < longest:
        takes += f", CPU per request alone about {minutes(cpu.rounds * round_s)}"
    given = _given(given_rounds, round_s)
    if measured:
        return f"{NOISY}: {takes}; {given} were measured"
    near = [need for need in needed if need.within < WITHIN]
    widths = listed(f"±{percent(need.within)} in {METRICS[need.metric].short}" for need in near)
    return f"{NOISY}: {takes}; {given} show {widths or 'no change'}"


@dataclass(frozen=True)
class OpenClaim:
    """A claim that is open, and how many rounds decide it if its estimate stays as it is."""

    claim: GateClaim
    rounds: float
    """Infinite where none do."""


def slowest_to_decide(
    claims: Iterable[tuple[MeasuredClaim, GateClaim]], measure: Measure
) -> OpenClaim | None:
    """Return the open claim that takes most rounds; None where none of them foresees any."""
    open_ = [
        OpenClaim(reported, _rounds(sd, _left_to_limit(claim), claim, measure))
        for claim, reported in claims
        if reported.answer == "inconclusive" and change_estimate(reported)
        if (sd := _noise(claim)) is not None
    ]
    return max(open_, key=lambda each: each.rounds, default=None)


def _left_to_limit(claim: MeasuredClaim) -> float:
    """Return how far the estimate is from the limit, less what interference can have moved it."""
    mean = float(claim.d.mean())
    worse = mean if claim.rule.metric.better == "lower" else -mean
    return abs(log1p(claim.worse_share) - worse) - max(claim.bound.up, claim.bound.down)


@dataclass(frozen=True)
class Forecast:
    """What more time would bring, now that it was measured."""

    words: str
    needs_s: float
    """Infinite where no time is enough."""


def forecast(
    needed: Sequence[NeededRounds], slowest: OpenClaim | None, round_s: float, rounds: int
) -> Forecast | None:
    """Return what the answer takes by the noise, or by a change that is near its limit; else None.

    No time is promised in which an estimate has to move for an answer.
    """
    longest = longest_rounds(needed)
    if slowest is None or slowest.rounds <= max(longest, rounds):
        words = noisy_words(needed, round_s, rounds, measured=True)
        return Forecast(words, (longest - rounds) * round_s) if words else None
    takes_s = slowest.rounds * round_s
    then, needs_s = "more time would hardly decide", inf
    if takes_s <= MOST_MINUTES * 60:
        then = f"an answer takes about {minutes(takes_s)} in all"
        needs_s = takes_s - rounds * round_s
    claim = slowest.claim
    what = f"{METRICS[claim.metric].short} of {claim.endpoint}"
    stays = f"if {what} stays at {change_estimate(claim)} (limit {limit_words(claim)}), {then}"
    noisy = f"{NOISY}: " if longest > rounds else ""
    return Forecast(f"{noisy}{stays}; {_given(rounds, round_s)} were measured", needs_s)


def _given(rounds: int, round_s: float) -> str:
    return f"{count(rounds, 'round')} ({minutes(rounds * round_s)})"
