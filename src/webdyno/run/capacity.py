"""The search for each variant's capacity in a round: the variants take turns, a trial each."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random

from webdyno.generator.interface import AbortRule
from webdyno.judge.point_data import PointData
from webdyno.judge.validity.client import CLIENT_CEILING, CLIENT_LIMITED, SEND_LAG
from webdyno.model.capacity import CapacitySettings, Objective, Trial, trial_of
from webdyno.model.pilot import SlotSettings
from webdyno.model.records import PilotRecord, SlotRecord
from webdyno.run.planned import PlannedVariant
from webdyno.run.variant import RunningRound
from webdyno.search.capacity import FIRST_SHARE, Ask, next_trial

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
