"""What a search for a capacity tries next: a pure function of its trials so far.

Short ones first, then halving, then long ones that decide. It is MLRsearch's (RFC 9971): external
search until one rate passes and one fails, internal search in logarithms, trials that grow longer
as it narrows. Three things are other. A trial passes, fails, or leaves the rate open by a binomial
bound on the share beyond an objective. The capacity is where a line through the trials near it
crosses what is allowed, not the lower end of a bracket: shares of trials are skewed, so that most
of them pass where the mean share fails (docs/validation/capacity.md). And servers that don't come
back after an overload are started again after each one, since else only the first could be found.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log, sqrt

from webdyno.model.capacity import (
    CapacitySettings,
    Level,
    Purpose,
    Trial,
    bracket,
    by_rate,
    capacity_of,
)

FIRST_SHARE = 0.8
"""Of the rate of a closed loop, where an open one begins."""
FIRST_STEP = 1.25
"""The first step upwards; each further one is its square."""
LOWEST_SHARE = 1e-3
"""Of that beginning: where not even this passes, nothing does."""
LATE_AT = 4
"""Rates, each half of the one before, at all of which the load generator was too slow: what it
can't offer in time then doesn't hang on the rate."""
SHORT = 0.25
"""Length of trials far from the capacity, as a share of what decides about a rate."""
NEAR = 1.3
"""Bounds that are so close are halved by longer trials,"""
LONGER = 0.5
"""… of this share."""
DECIDING = 4
"""Trials of full length, each where the capacity seems to be by all before it."""
MOST_LENGTH_S = 60.0
RISK = 0.05
"""Of calling a rate passing, or failing, by chance, before it was tried for as long as decides."""
MOST_TRIALS = 60
"""A search that hasn't ended by then never will: what it measures changes all the time."""


@dataclass(frozen=True)
class Ask:
    """A trial to make."""

    rate_rps: float
    length_s: float
    purpose: Purpose = "search"
    fresh: bool = False
    """Whether the servers have to be started again before."""


def next_trial(
    trials: Sequence[Trial], settings: CapacitySettings, closed_rps: float
) -> Ask | None:
    """Say what to try next; None when the capacity is known, or can't be.

    `closed_rps`: what the variant answers in a closed loop, a place to begin.
    """
    searched = [trial for trial in trials if trial.purpose == "search"]
    if not searched:
        return _ask(closed_rps * FIRST_SHARE, SHORT, settings)
    if len(trials) >= MOST_TRIALS:
        return None
    known = by_rate(searched)
    passes = {level.rate_rps: _passes(level, settings) for level in known}
    unclear = next((level for level in known if passes[level.rate_rps] is None), None)
    collapsed = any(
        past_trial.purpose == "recovery" and not past_trial.holds for past_trial in trials
    )
    fresh = collapsed and not trials[-1].holds
    if unclear is not None:
        return _ask(unclear.rate_rps, LONGER, settings, fresh=fresh)
    passing, failing = bracket(known, {rate: bool(it) for rate, it in passes.items()})
    if failing is None:
        step = FIRST_STEP ** (2 ** (len(known) - 1))
        return _ask(known[-1].rate_rps * min(step, 4.0), SHORT, settings)
    if passing is None:
        lower = failing.rate_rps / 2
        too_low = lower < closed_rps * FIRST_SHARE * LOWEST_SHARE
        given_up = too_low or client_too_slow(known)
        return None if given_up else _ask(lower, SHORT, settings, fresh=True)
    if not any(past_trial.purpose == "recovery" for past_trial in trials) and not trials[-1].holds:
        return _ask(passing.rate_rps, SHORT, settings, purpose="recovery")
    return _narrow(searched, passing, failing, settings, fresh=fresh)


def client_too_slow(known: Sequence[Level]) -> bool:
    """Tell whether it is the load generator that fails, whatever the rate is."""
    lowest = known[:LATE_AT]
    return len(lowest) == LATE_AT and all(
        trial.client_limited and not trial.holds for level in lowest for trial in level.trials
    )


def _narrow(
    trials: list[Trial], passing: Level, failing: Level, settings: CapacitySettings, *, fresh: bool
) -> Ask | None:
    apart = failing.rate_rps / passing.rate_rps
    if apart > 1 + settings.width:
        share = SHORT if apart > NEAR else LONGER
        middle_rps = sqrt(passing.rate_rps * failing.rate_rps)
        return _ask(middle_rps, share, settings, fresh=fresh)
    decided = sum(
        past_trial.length_s >= _decides_s(past_trial.rate_rps, settings) for past_trial in trials
    )
    crossing_rps = capacity_of(trials) if decided < DECIDING else None
    return _ask(crossing_rps, 1.0, settings, fresh=fresh) if crossing_rps else None


def _ask(
    rate_rps: float,
    share: float,
    settings: CapacitySettings,
    *,
    purpose: Purpose = "search",
    fresh: bool = False,
) -> Ask:
    """Ask for a trial of a share of the time that decides; no shorter than can pass."""
    least_s = _least_responses(settings) / rate_rps
    length_s = max(share * settings.deciding_s, min(least_s, MOST_LENGTH_S))
    return Ask(rate_rps, length_s, purpose, fresh)


def _decides_s(rate_rps: float, settings: CapacitySettings) -> float:
    """Give how long a rate has to be tried until what was seen there counts as it is."""
    least_s = _least_responses(settings) / rate_rps
    return 0.99 * max(settings.deciding_s, min(least_s, MOST_LENGTH_S))


def _least_responses(settings: CapacitySettings) -> int:
    """Give the fewest responses of which all have to be right for a rate to pass."""
    allowed = min(objective.allowed for objective in settings.objectives)
    return ceil(log(RISK) / log(1 - allowed))


def _passes(level: Level, settings: CapacitySettings) -> bool | None:
    """Tell whether all objectives hold at a rate; None where that isn't clear yet.

    It is clear by the bounds of Clopper and Pearson (1934) at `RISK`, or once the rate was tried
    for long enough. Responses of one trial depend on each other, so the bounds are too narrow;
    they only save time where the capacity is far away.
    """
    from scipy.special import betaincinv

    if level.length_s >= _decides_s(level.rate_rps, settings):
        return level.excess <= 1
    seen = level.seen
    if any(k and betaincinv(k, n - k + 1, RISK) > share for k, n, share in seen):
        return False
    if all(k < n and betaincinv(k + 1, n - k, 1 - RISK) <= share for k, n, share in seen):
        return True
    return None
