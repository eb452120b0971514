"""The search for each variant's capacity in a round: the variants take turns, a trial each.

After it, where there is time, one more look at each: what it does when more is asked than it can.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from math import inf
from random import Random

from webdyno.comparison import question_of
from webdyno.comparison.capacity_rules import deciding_trials, has_time_beyond, known_rps
from webdyno.comparison.saturation import settled_s
from webdyno.core.capacity import Trial, capacity_of, is_at_least, trial_of
from webdyno.core.looks import SlotSettings
from webdyno.core.measure import CapacitySettings
from webdyno.core.objectives import Objective
from webdyno.core.records import SlotRecord
from webdyno.evidence.point_data import PointData
from webdyno.evidence.slot_stalls import own_stall_s
from webdyno.load.interface import AbortRule, LoadOrder
from webdyno.measure.backend import ServersHost
from webdyno.measure.capacity_search import FIRST_SHARE, Ask, Begin, is_down, near, next_trial
from webdyno.measure.planned import PlannedVariant
from webdyno.measure.variant import RunningRound
from webdyno.planning.fitting import fitted_trials, pilots_on_record
from webdyno.servers.service import StackDied
from webdyno.validity.client import CLIENT_CEILING, CLIENT_LIMITED, SEND_DELAY

RAMP_UP_SHARE = 0.25
"""Ramp-up as a share of a trial's length: a queue takes a while to reach its full length."""
SLOWEST_RPS = 1.0
OVERLOAD_LEAD_S, OVERLOAD_S = 2.0, 2.0
"""Ramp-up and length of an overload."""
RETURN_SHARE, RETURN_S = 0.5, (1.0, 9.0)
"""Of the capacity, and for how long, to see when objectives hold again; longer where they don't."""
REST_S = 3.0
"""Longest wait until an overloaded variant is at rest, before another variant's trial begins."""
SURELY_MISSED = 4.0
"""A trial in which this many times the share that an objective allows is late has failed, whatever
becomes of the rest: it ends then, instead of waiting for time-outs."""
WINDOWS_OF_WAIT, SHORTEST_WINDOW_S = 2, 0.025
"""Windows in the longest latency allowed: a stall that breaks an objective is quiet for as many."""
SEEN_IN_WINDOW = 25
"""Requests that are due in a window at least, so that one without responses is no chance."""
CLIENT_RULES = (CLIENT_LIMITED, CLIENT_CEILING)
"""Where one is broken, a trial may have failed because of the load generator."""


def search_capacities(
    running: RunningRound,
    variants: Sequence[PlannedVariant],
    settings: CapacitySettings,
    times: SlotSettings,
    rng: Random,
) -> list[str]:
    """Search until each variant's capacity is known, then ask for more than that.

    Return the variants in the order of their trials.
    """
    point, question = running.point, question_of(running.point.experiment)
    rounds = max(question.fewest_rounds - point.finished_rounds, 1)  # this one included
    measure = point.experiment.measure
    budget_s = min(measure.budget_s, measure.limit_s)
    left_s = budget_s - point.used_s - question.reserved_s(point.data)
    search_s = left_s / len(variants) / rounds
    settings = fitted_trials(settings, point.data, rounds, left_s)
    loads = SearchLoads(running, settings, times)
    _search(loads, variants, search_s, rng)
    if has_time_beyond(settings, search_s):
        for variant in rng.sample(variants, len(variants)):
            overload(loads, variant)
            running.waits_for_rest(REST_S)
    return loads.order


def _search(
    loads: "SearchLoads", variants: Sequence[PlannedVariant], search_s: float, rng: Random
) -> None:
    begins = {variant.name: _begin(loads, variant, search_s, rng) for variant in variants}
    for variant in rng.sample(variants, len(variants)):
        loads.warm_up(variant, begins[variant.name].closed_rps)
    going = list(variants)
    while going:
        for variant in rng.sample(going, len(going)):
            begin = begins[variant.name]
            ask = next_trial(loads.trials_of(variant), loads.settings, begin)
            if ask is None:
                going.remove(variant)
                continue
            if ask.fresh:
                loads.start(variant, begin.closed_rps)
            if not loads.trial(variant, ask).holds:
                loads.running.waits_for_rest(REST_S)


def _begin(loads: "SearchLoads", variant: PlannedVariant, search_s: float, rng: Random) -> Begin:
    """Begin near where the rounds before ended; so many trials decide as there is time for."""
    data, found_rps = loads.running.point.data, known_rps(loads.running.point.data, variant.name)
    return Begin(
        closed_rps(data, variant.name),
        near(found_rps, rng.random()) if found_rps else None,
        deciding_trials(loads.settings, search_s),
    )


@dataclass
class SearchLoads:
    """The slots of a search in a round."""

    running: RunningRound
    settings: CapacitySettings
    times: SlotSettings
    position: int = 0
    """Position of the next slot in the round."""
    tried: dict[str, list[Trial]] = field(default_factory=dict)
    starts: dict[str, int] = field(default_factory=dict)
    """How often a variant was started again."""
    order: list[str] = field(default_factory=list)
    """The variants of all trials."""

    def trials_of(self, variant: PlannedVariant) -> list[Trial]:
        """Return a variant's trials so far."""
        return self.tried.setdefault(variant.name, [])

    def start(self, variant: PlannedVariant, closed_rps: float) -> None:
        """Start a variant again, and warm it up."""
        self.running.start(variant)
        self.starts[variant.name] = self.starts.get(variant.name, 0) + 1
        self.warm_up(variant, closed_rps)

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

    def trial(self, variant: PlannedVariant, ask: Ask) -> Trial:
        """Load a variant at the rate that is requested, and count what is beyond the objectives."""
        ramp_up_s = max(self.times.ramp_up_s[variant.name], RAMP_UP_SHARE * ask.length_s)
        order = self.order_at(variant, ask.rate_rps, ask.length_s, ramp_up_s)
        order = replace(order, abort_rule=abort_rule(self.settings.objectives))
        _, trial = self.measure(
            variant,
            order,
            ask.rate_rps,
            lambda record, trial: trial.replace(purpose=ask.purpose, stalled_s=own_stall_s(record)),
        )
        return trial

    def order_at(
        self, variant: PlannedVariant, rate_rps: float, length_s: float, ramp_up_s: float
    ) -> LoadOrder:
        """Return the order for a trial."""
        return self.running.order(
            at_rate(variant, self.settings, rate_rps),
            self._name,
            length_s,
            ramp_up_s=ramp_up_s,
            window_s=window_s(self.settings.objectives, rate_rps),
            turn=len(self.trials_of(variant)),
        )

    def measure(
        self,
        variant: PlannedVariant,
        order: LoadOrder,
        rate_rps: float,
        complete: Callable[[SlotRecord, Trial], Trial],
    ) -> tuple[SlotRecord, Trial]:
        """Load a variant, and put on record what that says of the objectives.

        `complete` adds to it; windows are for that alone, and not kept. Servers that die of a load
        don't carry it: they are started again.
        """
        objectives, start = self.settings.objectives, self.starts.get(variant.name, 0)

        def with_trial(record: SlotRecord) -> SlotRecord:
            limited = is_client_limited(record, rate_rps, objectives)
            trial = trial_of(record.load, rate_rps, objectives, client_limited=limited)
            spaced = self.settings.arrivals == "constant"
            trial = complete(record, trial.replace(start=start, evenly_spaced=spaced))
            if died := how_it_died(self.running.point.testbed.servers, variant.name):
                missed: list[int | None] = [max(trial.asked, 1)] * len(objectives)
                trial = trial.replace(died=died, beyond=missed, stalled_s=0.0, back_s=None)
            return record.replace(trial=trial, load=record.load.replace(windows=[]))

        record = self.running.measure(
            self.position, variant, "trial", order, with_trial, may_die=True
        )
        assert record.trial  # noqa: S101 (`with_trial` put it there)
        self.position += 1
        self.trials_of(variant).append(record.trial)
        self.order.append(variant.name)
        if record.trial.died:
            self.start(variant, closed_rps(self.running.point.data, variant.name))
        return record, record.trial

    @property
    def _name(self) -> str:
        return f"round {self.running.number} slot {self.position}"


def how_it_died(servers: ServersHost, variant: str) -> str:
    """Return what is known of the death of a variant's servers; nothing where they live."""
    try:
        servers.check_alive(variant)
    except StackDied as death:
        return death.what
    return ""


def overload(loads: SearchLoads, variant: PlannedVariant) -> None:
    """Ask for a multiple of a variant's capacity, then for half of it, until that is carried.

    Not where the load generator ended the search: it can't offer more.
    """
    trials, settings = loads.trials_of(variant), loads.settings
    found_rps = capacity_of(trials)
    if found_rps is None or is_at_least(trials):
        return
    if is_down(trials):
        loads.start(variant, closed_rps(loads.running.point.data, variant.name))
    times = settings.overloads[(loads.running.number - 1) % len(settings.overloads)]
    order = loads.order_at(variant, times * found_rps, OVERLOAD_S, OVERLOAD_LEAD_S)
    over, trial = loads.measure(
        variant,
        order,
        times * found_rps,
        lambda _, trial: trial.replace(purpose="overload", times=times),
    )
    if not trial.client_limited and not trial.died:
        # Half of the capacity can't come before the last responses, but might have been carried.
        waited_s = over.load.drain_s - over.load.tail_s
        ended_at = load_began_at(over) + timedelta(seconds=over.load.all_of_it.length_s - waited_s)
        _await_return(loads, variant, found_rps * RETURN_SHARE, times, ended_at)


def _await_return(
    loads: SearchLoads, variant: PlannedVariant, rate_rps: float, times: float, ended_at: datetime
) -> None:
    """Load a variant as it could carry before, for a moment, and longer where it can't yet."""

    def with_return(record: SlotRecord, trial: Trial) -> Trial:
        back_s = settled_s(record.load, rate_rps, loads.settings.objectives)
        if back_s is not None:
            back_s += max((load_began_at(record) - ended_at).total_seconds(), 0.0)
        return trial.replace(purpose="return", times=times, back_s=back_s)

    for length_s in RETURN_S:
        order = loads.order_at(variant, rate_rps, length_s, 0.0)
        order = replace(order, load=order.load.replace(arrivals="constant"))
        if loads.measure(variant, order, rate_rps, with_return)[1].back_s is not None:
            return


def load_began_at(record: SlotRecord) -> datetime:
    """Return when the first request of a slot was due: connections are opened before."""
    took_s = record.readings.host.took_s if record.readings else 0.0
    before_s = took_s - record.load.all_of_it.length_s
    return record.started_at + timedelta(seconds=max(before_s, 0.0))


def window_s(objectives: Sequence[Objective], rate_rps: float) -> float | None:
    """Return the length of windows that show stalls long enough to break an objective."""
    longest_wait_s = max(objective.within_s or 0.0 for objective in objectives)
    if not longest_wait_s:
        return None
    return max(longest_wait_s / WINDOWS_OF_WAIT, SHORTEST_WINDOW_S, SEEN_IN_WINDOW / rate_rps)


def closed_rps(data: PointData, variant: str) -> float:
    """Return what a variant answered in the second half of its pilot, in a closed loop."""
    pilots = [pilot for pilot in pilots_on_record(data) if pilot.variant == variant]
    if not pilots:
        return SLOWEST_RPS
    responses = pilots[-1].responses[len(pilots[-1].responses) // 2 :]
    seen_s = len(responses) * pilots[-1].window_s
    return max(sum(responses) / seen_s if seen_s else 0.0, SLOWEST_RPS)


def at_rate(variant: PlannedVariant, settings: CapacitySettings, rate_rps: float) -> PlannedVariant:
    return replace(variant, load=variant.load.replace(**settings.of_load, rate_per_s=rate_rps))


def is_client_limited(record: SlotRecord, rate_rps: float, objectives: Sequence[Objective]) -> bool:
    """Return whether what is beyond the objectives may be the load generator's doing.

    Where it only sent late for a moment, as another program had its CPU, it explains latencies that
    are longer by no more than that, and failures of no more requests than came together then.
    """
    if any(rule.broken(record) for rule in CLIENT_RULES):
        return True
    if not SEND_DELAY.broken(record):
        return False
    late_s = (record.load.send_delay_us.max or inf) / 1e6
    lenient = [
        replace(objective, within_s=objective.within_s + late_s)
        if objective.within_s is not None
        else objective
        for objective in objectives
    ]
    trial = trial_of(record.load, rate_rps, lenient, client_limited=True)
    together = rate_rps * late_s
    return all(
        beyond is None or beyond - together <= allowed * trial.asked
        for beyond, allowed in zip(trial.beyond, trial.allowed, strict=True)
    )


def abort_rule(objectives: Sequence[Objective]) -> AbortRule | None:
    """Return the rule that ends a trial in which no objective can hold any more.

    What is late by the longest time that any objective allows is late by all of them. None where
    failures or events alone count: failures are known only when they have timed out, and a response
    whose first event was in time goes on.
    """
    timed = [
        (objective.whole_within_s, objective.allowed)
        for objective in objectives
        if objective.whole_within_s is not None
    ]
    if not timed:
        return None
    after_s, allowed = max(timed)
    return AbortRule(min(SURELY_MISSED * allowed, (1 + allowed) / 2), after_s)
