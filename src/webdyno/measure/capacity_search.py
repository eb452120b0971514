"""What a search for a capacity tries next: a pure function of its trials so far.

Short ones first, then halving, then long ones that decide. It is MLRsearch's (RFC 9971): external
search until one rate passes and one fails, internal search in logarithms, trials that grow longer
as it narrows. Three things are other. A trial passes, fails, or leaves the rate open by a binomial
bound on the share beyond an objective. The capacity is where a line through the trials near it
crosses what is allowed, not the lower end of a bracket: shares of trials are skewed, so that most
of them pass where the mean share fails (docs/validation/capacity.md). And servers that don't come
back after an overload are started again after each one, since else only the first could be found.

From the second round on a search begins near where those before ended, and no nearer: brackets as
narrow as the deciding trials need, placed by earlier rounds, would make rounds depend on each other
(docs/validation/capacity.md).

Sweeps may follow, which stand next to the capacities: latency by arrival rate, throughput by
connections.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil, exp, log, sqrt

from webdyno.core.capacity import Level, Purpose, Trial, bracket, by_rate, capacity_of
from webdyno.core.experiment import Experiment
from webdyno.core.measure import MOST_DECIDING, CapacitySettings
from webdyno.core.run import SWEEPS

FIRST_SHARE = 0.8
"""Of the rate of a closed loop, where an open one begins."""
FIRST_STEP = 1.25
"""The first step away from what was tried; each further one is its square."""
LOWEST_SHARE = 1e-3
"""Share of that first rate: where not even this passes, nothing does."""
LATE_AT, LATE_OVER = 4, 7.9
"""At so many rates, so many times apart from first to last, the load generator was too slow: what
it can't offer in time then doesn't hang on the rate."""
NEARBY = 0.1
"""Largest distance (ln) of a search's beginning, drawn at random, from what rounds before found:
where its bracket lies is new in each round."""
MOST_UP, MOST_DOWN = 4.0, 2.0
"""The longest step away from what was tried."""
SHORT = 0.25
"""Length of trials far from the capacity, as a share of what decides about a rate."""
NEAR = 1.3
"""Bounds that are so close are halved by longer trials,"""
LONGER = 0.5
"""… of this share."""
MOST_LENGTH_S = 60.0
RISK = 0.05
"""Of calling a rate passing, or failing, by chance, before it was tried for as long as decides."""
MOST_TRIALS = 60
"""A search that hasn't ended by then never will: what it measures changes all the time."""
SWEEP_SHARES = (0.25, 0.5, 0.75, 0.9, 1.0, 1.1, 1.2)
"""Rates around a capacity, as shares of it."""
LEAST_RATIO = 1.05
"""Least ratio between two rates of a sweep: closer ones show nothing new."""
CONNECTIONS_FACTOR = 8
"""Factor from one number of connections to the next."""


@dataclass(frozen=True)
class Ask:
    """A trial to make."""

    rate_rps: float
    length_s: float
    purpose: Purpose = "search"
    fresh: bool = False
    """Whether the servers have to be started again before."""


@dataclass(frozen=True)
class Begin:
    """Where a search begins, and how much of it decides."""

    closed_rps: float
    """What the variant answers in a closed loop."""
    near_rps: float | None = None
    """A place near what the rounds before found; None in the first one."""
    deciding: int = MOST_DECIDING
    """Trials of full length."""

    def first(self, settings: CapacitySettings) -> Ask:
        """Return the first trial."""
        below_rps = self.closed_rps * FIRST_SHARE
        if self.near_rps is not None:
            below_rps = self.near_rps / sqrt(FIRST_STEP)
        return _ask(below_rps, SHORT, settings)

    def lower_by(self, tried: int) -> float:
        """Return the step down from so many rates that all failed."""
        return MOST_DOWN if self.near_rps is None else min(_step(tried), MOST_DOWN)


def near(known_rps: float, draw: float) -> float:
    """Return a place near a known capacity; `draw` is a random number from 0 to 1."""
    return known_rps * exp(NEARBY * (2 * draw - 1))


def _step(tried: int) -> float:
    """Return the step away from so many rates: the first one, then each time its square."""
    return float(FIRST_STEP ** (2 ** (tried - 1)))


def next_trial(trials: Sequence[Trial], settings: CapacitySettings, begin: Begin) -> Ask | None:
    """Return what to try next; None when the capacity is known, or can't be."""
    searched = [trial for trial in trials if trial.purpose == "search"]
    if not searched:
        return begin.first(settings)
    if len(trials) >= MOST_TRIALS:
        return None
    known = by_rate(searched)
    passes = {level.rate_rps: _passes(level, settings) for level in known}
    unclear = next((level for level in known if passes[level.rate_rps] is None), None)
    fresh = is_down(trials)
    if unclear is not None:
        return _ask(unclear.rate_rps, LONGER, settings, fresh=fresh)
    passing, failing = bracket(known, {rate: bool(passed) for rate, passed in passes.items()})
    if failing is None:
        return _ask(known[-1].rate_rps * min(_step(len(known)), MOST_UP), SHORT, settings)
    if passing is None:
        lower_rps = known[0].rate_rps / begin.lower_by(len(known))
        too_low = lower_rps < begin.closed_rps * FIRST_SHARE * LOWEST_SHARE
        in_vain = too_low or client_too_slow(known)
        return None if in_vain else _ask(lower_rps, SHORT, settings, fresh=True)
    if not any(past_trial.purpose == "recovery" for past_trial in trials) and not trials[-1].holds:
        return _ask(passing.rate_rps, SHORT, settings, purpose="recovery")
    return _narrow(searched, passing, failing, settings, begin.deciding, fresh=fresh)


def is_down(trials: Sequence[Trial]) -> bool:
    """Return whether the last trial left servers down for good, as an earlier one did."""
    collapsed = any(trial.purpose == "recovery" and not trial.holds for trial in trials)
    return collapsed and not trials[-1].holds and not trials[-1].died


def client_too_slow(known: Sequence[Level]) -> bool:
    """Return whether it is the load generator that fails, whatever the rate is."""
    lowest = known[:LATE_AT]
    if len(lowest) < LATE_AT or lowest[-1].rate_rps < LATE_OVER * lowest[0].rate_rps:
        return False
    return all(
        trial.client_limited and not trial.holds for level in lowest for trial in level.trials
    )


def _narrow(
    trials: list[Trial],
    passing: Level,
    failing: Level,
    settings: CapacitySettings,
    deciding: int,
    *,
    fresh: bool,
) -> Ask | None:
    apart = failing.rate_rps / passing.rate_rps
    if apart > 1 + settings.width:
        middle_rps = sqrt(passing.rate_rps * failing.rate_rps)
        return _ask(middle_rps, SHORT if apart > NEAR else LONGER, settings, fresh=fresh)
    decided = sum(
        past_trial.length_s >= _decides_s(past_trial.rate_rps, settings) for past_trial in trials
    )
    crossing_rps = capacity_of(trials) if decided < deciding else None
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
    """Return how long a rate has to be tried until what was seen there counts as it is."""
    least_s = _least_responses(settings) / rate_rps
    return 0.99 * max(settings.deciding_s, min(least_s, MOST_LENGTH_S))


def _least_responses(settings: CapacitySettings) -> int:
    """Return the fewest responses of which all have to be right for a rate to pass."""
    allowed = min(objective.allowed for objective in settings.objectives)
    return ceil(log(RISK) / log(1 - allowed))


def _passes(level: Level, settings: CapacitySettings) -> bool | None:
    """Return whether all objectives hold at a rate; None where that isn't clear yet.

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


def capacity_sweeps(
    experiment: Experiment, capacities_rps: Iterable[float]
) -> Iterator[tuple[str, Experiment]]:
    """Return the sweeps next to a search that found these capacities, each with its folder.

    None where none was requested; without a capacity there are no rates to go to.
    """
    asked = experiment.capacity
    if asked is None or asked.sweep_s is None:
        return
    each_s = asked.sweep_s / len(SWEEPS)
    if rates := rates_around(capacities_rps):
        load = experiment.load.replace(**asked.of_load, rate_per_s=rates[0])
        there = experiment.replace(load=load)
        yield (
            "rates",
            _with_factor(there, "rates", "load.rate_per_s", rates, "latency_p99_us", each_s),
        )
    numbers = connections_up_to(experiment.load.connections)
    yield (
        "connections",
        _with_factor(
            experiment, "connections", "load.connections", numbers, "throughput_rps", each_s
        ),
    )


def _with_factor(
    experiment: Experiment,
    name: str,
    factor: str,
    levels: Sequence[float],
    decide_on: str,
    budget_s: float,
) -> Experiment:
    swept = experiment.replace(
        title=f"{experiment.title}: {SWEEPS[name]}",
        asks=experiment.asks.without_claim,
        capacity=None,
        factors={factor: [*levels]},
    )
    return swept.with_measure(decide_on=decide_on, budget_s=budget_s, patience=1.0)


def rates_around(capacities_rps: Iterable[float]) -> list[float]:
    """Return rates around each of some capacities, three digits each; none too near to another."""
    wanted = sorted(float(f"{rps * share:.3g}") for rps in capacities_rps for share in SWEEP_SHARES)
    kept: list[float] = []
    for rate in wanted:
        if not kept or rate > LEAST_RATIO * kept[-1]:
            kept.append(rate)
    return kept


def connections_up_to(most: int) -> list[int]:
    """Return 1, 8, 64 and so on, and the most."""
    numbers = [1]
    while numbers[-1] * CONNECTIONS_FACTOR < most:
        numbers.append(numbers[-1] * CONNECTIONS_FACTOR)
    return sorted({*numbers, most})
