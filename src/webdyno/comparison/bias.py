"""How far a comparison can be off: bounds of its bias, by cause.

Interference that both variants had is chance, which the interval over rounds has in it, as the
order of slots is random. Only what one had more of than chance explains counts against the verdict
(`noise.excess`). docs/validation/method.md, "Bias bounds", derives the bounds.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import exp, inf, isfinite
from statistics import fmean

from webdyno.comparison.saturation import saturation
from webdyno.core.histogram import Histogram, merge_encoded
from webdyno.core.judgement import Bias, LimitedBy
from webdyno.core.metrics import MetricRule, TimesOf, throughput_rps
from webdyno.core.records import SlotRecord
from webdyno.evidence.log_ratios import later_bounds, pair_of, times_of_look
from webdyno.evidence.noise import SURE, Share, at_equal_cpu, excess, lost, more_by_round, steepest
from webdyno.evidence.point_data import PointData
from webdyno.statistics.bounds import (
    UNBIASED,
    Bound,
    added_in_closed_loop_us,
    added_in_open_loop_us,
    cpu_when_shared,
    extra_share,
    lost_share,
    memory_under_pressure,
    of_ratio,
    quantile_when_delayed,
    quantile_when_sent_late,
    rate_when_client_limited,
    throughput_when_slowed,
    when_settling,
    when_state_grows,
)
from webdyno.statistics.interval import LARGEST_LOG, Logs, within_floats
from webdyno.validity.client import (
    CLIENT_CEILING,
    CLIENT_LIMITED,
    SEND_DELAY,
    client_was_the_limit,
    still_share,
)
from webdyno.validity.connections import link_limited
from webdyno.validity.growing_state import grows_apart, state_drift
from webdyno.validity.others import PRESSURE_LIMIT, foreign_s, memory_waiting
from webdyno.validity.over_time import OVER_THE_ROUND, TRENDS
from webdyno.validity.rule import TOO_MANY_EXCLUDED
from webdyno.validity.servers import left_over_s, stopped_s


def _lost(seconds: Share) -> Share:
    """Make a share of the time of CPU seconds on the servers' CPUs that went elsewhere."""

    def share(slot: SlotRecord) -> float:
        if slot.readings is None or not slot.readings.host.took_s:
            return 0.0
        return lost_share(seconds(slot), slot.servers.cpu_s, slot.readings.host.took_s)

    return share


def _stolen_s(slot: SlotRecord) -> float:
    return slot.readings.host.servers.steal_s if slot.readings else 0.0


def _charged_share(slot: SlotRecord) -> float:
    """Share of the servers' CPU time that may have been stolen, as some kernels count it."""
    if slot.readings is None or slot.readings.host.steal_apart:
        return 0.0
    return extra_share(_stolen_s(slot), slot.servers.cpu_s)


def _stolen(slot: SlotRecord) -> float:
    """Of servers and client together: each may have waited while the other was held up."""
    if slot.readings is None or not slot.readings.host.took_s:
        return 0.0
    host = slot.readings.host
    theirs = 0.0 if slot.readings.shared_cpus else host.client.steal_s
    return min(_lost(_stolen_s)(slot) + min(theirs / host.took_s, 1.0), 1.0)


def _cpu_starved(slot: SlotRecord) -> float:
    if slot.readings is None or slot.readings.shared_cpus:
        return 0.0
    return slot.readings.client_waiting or 0.0


def _stopped_share(slot: SlotRecord) -> float:
    took_s = slot.readings.host.took_s if slot.readings else 0.0
    return min(stopped_s(slot) / took_s, 1.0) if took_s else 0.0


OTHERS_WORK = "other-work"
CAUSES: dict[str, Share] = {
    "steal": _stolen,
    OTHERS_WORK: _lost(foreign_s),
    "left-over-work": _lost(left_over_s),
    "memory-pressure": memory_waiting,
    "client-cpu-starved": _cpu_starved,
    "client-stalled": still_share,
    "servers-stopped": _stopped_share,
}
"""Kinds of interference, with the share of a slot's time that each can have taken."""


@dataclass(frozen=True)
class VariantSlots:
    """One of the two variants of a comparison, and its slots that count for a metric."""

    data: PointData
    variant: str
    other: str

    @cached_property
    def mine(self) -> list[SlotRecord]:
        return self.data.of_variant(self.variant)

    @property
    def is_open(self) -> bool:
        return self.mine[0].load.loop == "open"

    def rate_bounds(self) -> list[Bound]:
        """Bound the throughput."""
        equal = at_equal_cpu(self.data)
        if equal:
            # The inverse of a cost, which is also too high by what others did for the variant:
            # where it surely had more of their work than the other one, and by CPUs left idle.
            worked = excess(self.data, self.variant, self.other, CAUSES[OTHERS_WORK], SURE)
            helped = throughput_when_slowed(OTHERS_WORK, worked)
            idle = Bound("idle-cpus", up=equal.too_high(self.variant, self.other))
            return [*_turn_round([*self.cpu(), helped]), idle]
        offered, throughput = self.mine[0].load.offered_rps, throughput_rps(self.mine)
        of_offered = throughput / offered if offered and throughput else None
        return [
            throughput_when_slowed(cause, self._excess(of_time), of_offered)
            for cause, of_time in CAUSES.items()
        ]

    def cpu(self) -> list[Bound]:
        """Bound CPU per request; caches that others left cold are part of its cost."""
        return [cpu_when_shared("steal", self._excess(_charged_share))]

    def memory(self) -> list[Bound]:
        """Bound memory: pages that are taken away under pressure can't be counted."""
        pressed = fmean(map(memory_waiting, self.mine))
        return [memory_under_pressure(pressed if pressed > PRESSURE_LIMIT else 0.0)]

    def times(self, rule: MetricRule, quantile: float, look_times: Histogram | None) -> list[Bound]:
        """Bound a quantile of latency, or of `look_times`, those of the long look if they count."""
        of = rule.times_of
        times = look_times or merge_encoded(of(slot.load).histogram for slot in self.mine)
        bounds = [
            self._bound_of_delay(cause, share, rule, quantile, times)
            for cause, of_time in CAUSES.items()
            if (share := self._excess(of_time)) > 0
        ]
        delays = [slot.load.send_delay_us for slot in self.mine if SEND_DELAY.broken(slot)]
        if delays:
            worst = (
                max(delay.p50 or 0.0 for delay in delays),
                max(delay.p99 or 0.0 for delay in delays),
                max(delay.max or delay.p99 or 0.0 for delay in delays),
            )
            bounds.append(quantile_when_sent_late(times, quantile, worst, self._utilisation()))
        return bounds

    def _excess(self, share: Share) -> float:
        return excess(self.data, self.variant, self.other, share)

    def _bound_of_delay(
        self, cause: str, share: float, rule: MetricRule, quantile: float, times: Histogram
    ) -> Bound:
        """Bound a quantile by a cause of which the variant had so much more than by chance."""
        added_us = self._added_us(share, rule.times_of)
        bound = quantile_when_delayed(cause, times, quantile, added_us)
        pair = pair_of(self.data, self.variant, self.other, rule)
        more = more_by_round(self.data, self.variant, self.other, CAUSES[cause])
        seen = lost(share) * steepest(more, dict(zip(pair.rounds, pair.d.tolist(), strict=True)))
        return replace(bound, up=min(bound.up, seen))

    def _added_us(self, share: float, of: TimesOf) -> float:
        if self.is_open:
            took_s = fmean(slot.load.measured_s for slot in self.mine)
            lost_s = share * took_s
            return added_in_open_loop_us(lost_s, lost_s, took_s, self._utilisation())
        mean_us = fmean(of(slot.load).mean or 0.0 for slot in self.mine)
        return added_in_closed_loop_us(share, mean_us)

    def _utilisation(self) -> float:
        known = _busy_share(self.mine)
        return 1.0 if known is None else known


def _busy_share(slots: Sequence[SlotRecord]) -> float | None:
    hosts = [slot.readings.host.servers for slot in slots if slot.readings]
    total_s = sum(host.total_s for host in hosts)
    return sum(host.busy_s for host in hosts) / total_s if total_s else None


def bounds_of(data: PointData, variant: str, other: str, rule: MetricRule) -> list[Bound]:
    """Return how far each cause can have moved a variant's metric in the slots that count."""
    slots = VariantSlots(data, variant, other)
    if not slots.mine or not rule.decides:
        return []
    bounds: list[Bound] = []
    match rule.kind:
        case "throughput":
            bounds = slots.rate_bounds() + (
                [] if slots.is_open else _settling(data, variant, other)
            )
        case "latency" if rule.quantile is not None:
            look_times = times_of_look(data, variant, rule)
            bounds = slots.times(rule, rule.quantile, look_times)
            bounds += _turn_round(_settling(data, variant, other))
        case "work":
            bounds = slots.cpu() + _turn_round(_settling(data, variant, other))
        case "memory":
            bounds = slots.memory()
    bounds += later_bounds(data, variant, rule)
    return [bound for bound in bounds if bound.down or bound.up]


def client_limited(data: PointData, variant: str, rule: MetricRule) -> Bound:
    """Bound throughput that the client limited; nothing bounds a capacity, or shared CPUs."""
    slots = data.of_variant(variant)
    shared = any(slot.readings.shared_cpus for slot in slots if slot.readings)
    gives_bound = rule.kind == "throughput" and not shared
    return rate_when_client_limited(_busy_share(slots) if gives_bound else None)


def _settling(data: PointData, variant: str, other: str) -> list[Bound]:
    """Bound throughput, or an open loop's work per CPU second, that is sure to have changed.

    Where requests write, and slots cost more CPU time with it, nothing settles: there the bound is
    by how much more they do than the other variant's.
    """
    drift = state_drift(data, variant)
    if drift and drift.seen_in not in {"cost", "database"}:
        drift = None
    changes = [(trend, trend.sure_change(data, variant)) for trend in TRENDS]
    settling = [
        when_settling(trend.name, change, trend.seen)
        for trend, change in changes
        if change is not None and not (drift and trend is OVER_THE_ROUND and change.centre < 0)
    ]
    apart = when_state_grows(grows_apart(data, variant, other)) if drift else UNBIASED
    return [*settling, apart]


def _turn_round(bounds: Iterable[Bound]) -> list[Bound]:
    """Take a throughput's bounds for what goes down as the throughput goes up.

    Throughput that rises by a factor takes as much off the mean latency (Little's law), and at most
    as much off CPU per request.
    """
    return [Bound(bound.cause, down=bound.up, up=bound.down) for bound in bounds]


def limited_by(data: PointData, variant: str, rule: MetricRule) -> LimitedBy | None:
    """Return what kept a variant from being faster, if client, link or load did."""
    mine = data.of_variant(variant)
    if rule.kind == "capacity" and mine:
        if client_was_the_limit(data, variant):
            return "client"
        bounds = {full.variant for full in saturation(data) if full.is_lower_bound}
        return "load" if variant in bounds else None
    if rule.kind != "throughput" or not mine:
        return None
    held = [slot for slot in mine if CLIENT_LIMITED.broken(slot) or CLIENT_CEILING.broken(slot)]
    if len(held) > TOO_MANY_EXCLUDED * len(mine):
        return "client"
    return "link" if link_limited(mine) else None


@dataclass(frozen=True)
class Evidence:
    """The evidence of bias in a variant and the baseline on a metric."""

    together: Bound
    """Of their log ratio."""
    biases: list[Bias]
    limited_by: dict[str, LimitedBy]

    @property
    def has_bias(self) -> bool:
        return bool(self.together.up or self.together.down)

    def against(self, d: Logs) -> Logs:
        """Move log ratios towards "no difference" as far as they can have been moved away."""
        return within_floats(d - self.together.up if d.sum() > 0 else d + self.together.down)


def evidence_of(data: PointData, variant: str, baseline: str, rule: MetricRule) -> Evidence:
    """Bound the bias of a comparison from probe readings.

    A saturated client may have kept a variant from being faster, and so may a load whose
    connections are used up. A full link is a part of the experiment: over it nothing is faster.
    """
    bounds, limits = {}, {}
    for name, other in ((variant, baseline), (baseline, variant)):
        bounds[name] = bounds_of(data, name, other, rule)
        limit = limited_by(data, name, rule)
        if limit is not None:
            limits[name] = limit
        if limit == "client":
            bounds[name].append(client_limited(data, name, rule))
        if limit == "load":
            bounds[name].append(Bound("load-limited", down=inf))
    return Evidence(
        together=of_ratio(bounds[variant], bounds[baseline]),
        biases=[
            Bias(
                cause=bound.cause,
                variant=name,
                too_low=_factor(bound.down),
                too_high=_factor(bound.up),
            )
            for name, all_of_them in bounds.items()
            for bound in all_of_them
        ],
        limited_by=limits,
    )


def _factor(log_factor: float) -> float | None:
    return exp(log_factor) if isfinite(log_factor) and log_factor < LARGEST_LOG else None
