"""The search for each arm's capacity in a block, and the sweeps that stand beside a capacity.

In the search the arms take turns, a trial each. The sweeps show response time against rate, and
rate against connections.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random

from webdyno.generator.interface import AbortRule
from webdyno.judge.point_data import PointData
from webdyno.judge.validity.client import CLIENT_BOUND, CLIENT_CEILING, SEND_LAG
from webdyno.model.capacity import CapacitySettings, Objective, Trial, trial_of
from webdyno.model.experiment import Experiment
from webdyno.model.pilot import SlotSettings
from webdyno.model.records import PilotRecord, SlotRecord
from webdyno.model.run import SWEEPS
from webdyno.run.arm import RunningBlock
from webdyno.run.planned import PlannedArm
from webdyno.search import FIRST_SHARE, Ask, next_trial

LEAD_IN_SHARE = 0.25
"""Lead-in as a share of a trial's length: a queue takes a while to reach its full length."""
SLOWEST_RPS = 1.0
REST_S = 3.0
"""Longest wait until an overloaded arm is at rest, before another arm's trial begins."""
SURELY_MISSED = 4.0
"""A trial in which this many times the share that an objective allows is late has failed, whatever
becomes of the rest: it ends then, instead of waiting for time-outs."""
CLIENT_RULES = (CLIENT_BOUND, CLIENT_CEILING, SEND_LAG)
"""Where one is broken, a trial may have failed because of the load generator."""


def search_capacities(
    running: RunningBlock,
    arms: Sequence[PlannedArm],
    settings: CapacitySettings,
    times: SlotSettings,
    rng: Random,
) -> list[str]:
    """Search until each arm's capacity is known; give the arms in the order of their trials."""
    search = _Search(running, settings, times)
    tried: dict[str, list[Trial]] = {arm.name: [] for arm in arms}
    closed = {arm.name: closed_rps(running.point.data, arm.name) for arm in arms}
    starts = dict.fromkeys(tried, 0)
    order = list[str]()
    for arm in rng.sample(arms, len(arms)):
        search.warm_up(arm, closed[arm.name])
    going = list(arms)
    while going:
        for arm in rng.sample(going, len(going)):
            trials = tried[arm.name]
            ask = next_trial(trials, settings, closed[arm.name])
            if ask is None:
                going.remove(arm)
                continue
            if ask.fresh:
                running.start(arm)
                starts[arm.name] += 1
                search.warm_up(arm, closed[arm.name])
            trials.append(search.trial(arm, ask, starts[arm.name], turn=len(trials)))
            if not trials[-1].holds:
                running.waits_for_rest(REST_S)
            order.append(arm.name)
    return order


@dataclass
class _Search:
    """The slots of a search in a block."""

    running: RunningBlock
    settings: CapacitySettings
    times: SlotSettings
    position: int = 0
    """Of the next one in the block."""

    def warm_up(self, arm: PlannedArm, closed_rps: float) -> None:
        """Warm up an arm that was just started, where it needs that.

        Not in a closed loop: that asks for all that a server can do, which some don't survive.
        """
        gentle = at_rate(arm, self.settings, closed_rps * FIRST_SHARE)
        for load_s in self.times.warmup_loads_s(arm.name):
            order = self.running.order(gentle, self._name, load_s)
            self.running.measure(self.position, arm, "warmup", order)
            self.position += 1
            time.sleep(self.times.pause_s(arm.name))

    def trial(self, arm: PlannedArm, ask: Ask, start: int, turn: int) -> Trial:
        """Load an arm at the rate that is asked for, and count what is beyond the objectives."""
        objectives = self.settings.objectives
        order = self.running.order(
            at_rate(arm, self.settings, ask.rate_rps),
            self._name,
            ask.length_s,
            lead_in_s=max(self.times.lead_in_s[arm.name], LEAD_IN_SHARE * ask.length_s),
            turn=turn,
        )
        order = replace(order, abort_rule=abort_rule(objectives))

        def tell(record: SlotRecord) -> SlotRecord:
            limited = is_client_limited(record)
            trial = trial_of(record.load, ask.rate_rps, objectives, client_limited=limited)
            return record.replace(trial=trial.replace(purpose=ask.purpose, start=start))

        found = self.running.measure(self.position, arm, "trial", order, tell).trial
        assert found  # noqa: S101 (`tell` put it there)
        self.position += 1
        return found

    @property
    def _name(self) -> str:
        return f"block {self.running.number} slot {self.position}"


def closed_rps(data: PointData, arm: str) -> float:
    """Give what an arm answered in the second half of its pilot, in a closed loop."""
    pilots = [it for it in data.records if isinstance(it, PilotRecord) and it.arm == arm]
    if not pilots:
        return SLOWEST_RPS
    answers = pilots[-1].answers[len(pilots[-1].answers) // 2 :]
    seen_s = len(answers) * pilots[-1].window_s
    return max(sum(answers) / seen_s if seen_s else 0.0, SLOWEST_RPS)


def at_rate(arm: PlannedArm, settings: CapacitySettings, rate_rps: float) -> PlannedArm:
    """Give an arm with the load of a trial at a rate."""
    return replace(arm, load=arm.load.replace(**settings.of_load, rate_per_s=rate_rps))


def is_client_limited(record: SlotRecord) -> bool:
    """Whether a trial may have failed because of the load generator."""
    return any(rule.broken(record) for rule in CLIENT_RULES)


def abort_rule(objectives: Sequence[Objective]) -> AbortRule | None:
    """Give the rule that ends a trial in which no objective can hold any more.

    What is late by the longest time that any objective allows is late by all of them. None where
    failures alone count: these are known only when they have timed out.
    """
    timed = [(it.within_s, it.allowed) for it in objectives if it.within_s is not None]
    if not timed:
        return None
    after_s, allowed = max(timed)
    return AbortRule(min(SURELY_MISSED * allowed, (1 + allowed) / 2), after_s)


SWEEP_SHARES = (0.25, 0.5, 0.75, 0.9, 1.0, 1.1, 1.2)
"""Rates around a capacity, as shares of it."""
LEAST_RATIO = 1.05
"""Least ratio between two rates of a sweep: closer ones show nothing new."""
CONNECTIONS_FACTOR = 8
"""Factor from one number of connections to the next."""


def capacity_sweeps(
    experiment: Experiment, capacities_rps: Iterable[float]
) -> Iterator[tuple[str, Experiment]]:
    """Give the sweeps beside a search that found these capacities, each with its folder.

    None where none was asked for; without a capacity there are no rates to go to.
    """
    asked = experiment.capacity
    if asked is None or asked.sweep_s is None:
        return
    each_s = asked.sweep_s / len(SWEEPS)
    if rates := rates_around(capacities_rps):
        load = experiment.load.replace(**asked.of_load, rate_per_s=rates[0])
        there = experiment.replace(load=load)
        yield "rates", _varied(there, "rates", "load.rate_per_s", rates, "response_p99_us", each_s)
    numbers = connections_up_to(experiment.load.connections)
    yield (
        "connections",
        _varied(experiment, "connections", "load.connections", numbers, "rate_rps", each_s),
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
