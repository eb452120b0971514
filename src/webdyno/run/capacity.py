"""The search for each variant's capacity in a round, and the sweeps that stand beside a capacity.

In the search the variants take turns, a trial each. What is tried next is a pure function of the
trials so far: short ones first, then halving, then long ones that decide. It is MLRsearch's (RFC
9971): external search until one rate passes and one fails, internal search in logarithms, trials
that grow longer as it narrows. Three things are other. A trial passes, fails, or leaves the rate
open by a binomial bound on the share beyond an objective. The capacity is where a line through the
trials near it crosses what is allowed, not the lower end of a bracket: shares of trials are skewed,
so that most of them pass where the mean share fails (docs/validation/capacity.md). And servers that
don't come back after an overload are started again after each one, since else only the first could
be found.

The sweeps show latency against arrival rate, and throughput against connections.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil, log, sqrt
from random import Random

from webdyno.generator.interface import AbortRule
from webdyno.judge.point_data import PointData
from webdyno.judge.validity.client import CLIENT_CEILING, CLIENT_LIMITED, SEND_LAG
from webdyno.model.capacity import (
    CapacitySettings,
    Level,
    Objective,
    Purpose,
    Trial,
    bracket,
    by_rate,
    capacity_of,
    trial_of,
)
from webdyno.model.experiment import Experiment
from webdyno.model.pilot import SlotSettings
from webdyno.model.records import PilotRecord, SlotRecord
from webdyno.model.run import SWEEPS
from webdyno.run.planned import PlannedVariant
from webdyno.run.variant import RunningRound

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
RAMP_UP_SHARE = 0.25
"""Ramp-up as a share of a trial's length: a queue takes a while to reach its full length."""
SLOWEST_RPS = 1.0
REST_S = 3.0
"""Longest wait until an overloaded variant is at rest, before another variant's trial begins."""
SURELY_MISSED = 4.0
"""A trial in which this many times the share that an objective allows is late has failed, whatever
becomes of the rest: it ends then, instead of waiting for time-outs."""
CLIENT_RULES = (CLIENT_LIMITED, CLIENT_CEILING, SEND_LAG)
"""Where one is broken, a trial may have failed because of the load generator."""
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


def search_capacities(
    running: RunningRound,
    variants: Sequence[PlannedVariant],
    settings: CapacitySettings,
    times: SlotSettings,
    rng: Random,
) -> list[str]:
    """Search until each variant's capacity is known.

    Give the variants in the order of their trials.
    """
    search = _Search(running, settings, times)
    tried: dict[str, list[Trial]] = {variant.name: [] for variant in variants}
    closed = {variant.name: closed_rps(running.point.data, variant.name) for variant in variants}
    starts = dict.fromkeys(tried, 0)
    order = list[str]()
    for variant in rng.sample(variants, len(variants)):
        search.warm_up(variant, closed[variant.name])
    going = list(variants)
    while going:
        for variant in rng.sample(going, len(going)):
            trials = tried[variant.name]
            ask = next_trial(trials, settings, closed[variant.name])
            if ask is None:
                going.remove(variant)
                continue
            if ask.fresh:
                running.start(variant)
                starts[variant.name] += 1
                search.warm_up(variant, closed[variant.name])
            trials.append(search.trial(variant, ask, starts[variant.name], turn=len(trials)))
            if not trials[-1].holds:
                running.waits_for_rest(REST_S)
            order.append(variant.name)
    return order


@dataclass
class _Search:
    """The slots of a search in a round."""

    running: RunningRound
    settings: CapacitySettings
    times: SlotSettings
    position: int = 0
    """Of the next one in the round."""

    def warm_up(self, variant: PlannedVariant, closed_rps: float) -> None:
        """Warm up a variant that was just started, where it needs that.

        Not in a closed loop: that asks for all that a server can do, which some don't survive.
        """
        gentle = at_rate(variant, self.settings, closed_rps * FIRST_SHARE)
        for load_s in self.times.warmup_loads_s(variant.name):
            order = self.running.order(gentle, self._name, load_s)
            self.running.measure(self.position, variant, "warmup", order)
            self.position += 1
            time.sleep(self.times.pause_s(variant.name))

    def trial(self, variant: PlannedVariant, ask: Ask, start: int, turn: int) -> Trial:
        """Load a variant at the rate that is requested, and count what is beyond the objectives."""
        objectives = self.settings.objectives
        order = self.running.order(
            at_rate(variant, self.settings, ask.rate_rps),
            self._name,
            ask.length_s,
            ramp_up_s=max(self.times.ramp_up_s[variant.name], RAMP_UP_SHARE * ask.length_s),
            turn=turn,
        )
        order = replace(order, abort_rule=abort_rule(objectives))

        def tell(record: SlotRecord) -> SlotRecord:
            limited = is_client_limited(record)
            trial = trial_of(record.load, ask.rate_rps, objectives, client_limited=limited)
            return record.replace(trial=trial.replace(purpose=ask.purpose, start=start))

        found = self.running.measure(self.position, variant, "trial", order, tell).trial
        assert found  # noqa: S101 (`tell` put it there)
        self.position += 1
        return found

    @property
    def _name(self) -> str:
        return f"round {self.running.number} slot {self.position}"


def closed_rps(data: PointData, variant: str) -> float:
    """Give what a variant answered in the second half of its pilot, in a closed loop."""
    pilots = [
        record
        for record in data.records
        if isinstance(record, PilotRecord) and record.variant == variant
    ]
    if not pilots:
        return SLOWEST_RPS
    responses = pilots[-1].responses[len(pilots[-1].responses) // 2 :]
    seen_s = len(responses) * pilots[-1].window_s
    return max(sum(responses) / seen_s if seen_s else 0.0, SLOWEST_RPS)


def at_rate(variant: PlannedVariant, settings: CapacitySettings, rate_rps: float) -> PlannedVariant:
    return replace(variant, load=variant.load.replace(**settings.of_load, rate_per_s=rate_rps))


def is_client_limited(record: SlotRecord) -> bool:
    return any(rule.broken(record) for rule in CLIENT_RULES)


def abort_rule(objectives: Sequence[Objective]) -> AbortRule | None:
    """Give the rule that ends a trial in which no objective can hold any more.

    What is late by the longest time that any objective allows is late by all of them. None where
    failures alone count: these are known only when they have timed out.
    """
    timed = [
        (objective.within_s, objective.allowed)
        for objective in objectives
        if objective.within_s is not None
    ]
    if not timed:
        return None
    after_s, allowed = max(timed)
    return AbortRule(min(SURELY_MISSED * allowed, (1 + allowed) / 2), after_s)


def capacity_sweeps(
    experiment: Experiment, capacities_rps: Iterable[float]
) -> Iterator[tuple[str, Experiment]]:
    """Give the sweeps beside a search that found these capacities, each with its folder.

    None where none was requested; without a capacity there are no rates to go to.
    """
    asked = experiment.capacity
    if asked is None or asked.sweep_s is None:
        return
    each_s = asked.sweep_s / len(SWEEPS)
    if rates := rates_around(capacities_rps):
        load = experiment.load.replace(**asked.of_load, rate_per_s=rates[0])
        there = experiment.replace(load=load)
        yield "rates", _varied(there, "rates", "load.rate_per_s", rates, "latency_p99_us", each_s)
    numbers = connections_up_to(experiment.load.connections)
    yield (
        "connections",
        _varied(experiment, "connections", "load.connections", numbers, "throughput_rps", each_s),
    )


def _varied(
    experiment: Experiment,
    name: str,
    factor: str,
    levels: Sequence[float],
    decide_on: str,
    budget_s: float,
) -> Experiment:
    swept = experiment.replace(
        title=f"{experiment.title}: {SWEEPS[name]}", capacity=None, factors={factor: [*levels]}
    )
    return swept.with_measure(decide_on=decide_on, budget_s=budget_s, patience=1.0, question=None)


def rates_around(capacities_rps: Iterable[float]) -> list[float]:
    """Give rates around each of some capacities, three digits each; none too near to another."""
    wanted = sorted(float(f"{rps * share:.3g}") for rps in capacities_rps for share in SWEEP_SHARES)
    kept: list[float] = []
    for rate in wanted:
        if not kept or rate > LEAST_RATIO * kept[-1]:
            kept.append(rate)
    return kept


def connections_up_to(most: int) -> list[int]:
    """Give 1, 8, 64 and so on, and the most."""
    numbers = [1]
    while numbers[-1] * CONNECTIONS_FACTOR < most:
        numbers.append(numbers[-1] * CONNECTIONS_FACTOR)
    return sorted({*numbers, most})
