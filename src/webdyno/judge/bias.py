"""How far a comparison can be off: what of variants' slots bounds their bias, by cause.

Up to a rule's limit, what both variants had of interference counts as alike, since they take turns
in slots of seconds; only what one had more than the other counts. Beyond it all of it counts, of
both variants. docs/validation/method.md, "Bias bounds", derives the bounds.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp, inf, isfinite
from statistics import fmean

import numpy as np

from webdyno.judge.bounds import (
    REFILL_S,
    SHORTEST_STEAL_S,
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
from webdyno.judge.interval import LARGEST_LOG, Logs, within_floats
from webdyno.judge.log_ratios import later_bounds, times_of_look
from webdyno.judge.point_data import PointData
from webdyno.judge.saturation import saturation
from webdyno.judge.validity.client import (
    CLIENT_CEILING,
    CLIENT_LIMITED,
    SEND_LAG,
    STILL_LIMIT,
    WAITING_LIMIT,
    client_was_the_limit,
    still_share,
)
from webdyno.judge.validity.network import link_limited
from webdyno.judge.validity.over_time import TRENDS
from webdyno.judge.validity.rule import TOO_MANY_EXCLUDED
from webdyno.judge.validity.servers import (
    FOREIGN_LIMIT,
    LEFT_OVER_LIMIT,
    PRESSURE_LIMIT,
    STEAL_LIMIT,
    foreign_s,
    left_over_s,
    memory_waiting,
    stopped_s,
)
from webdyno.judge.validity.state import grows_apart, state_drift
from webdyno.model.histogram import Histogram, merge_encoded
from webdyno.model.judgement import Bias, LimitedBy
from webdyno.model.metrics import MetricRule, TimesOf, throughput_rps
from webdyno.model.records import SlotRecord

Share = Callable[[SlotRecord], float]

MIN_SHARED_EFFECT = 0.5
"""Of what both variants had of a cause, up to its limit, each minds at least this share. An
assumption: docs/validation/method.md has what it costs and what it is worth."""


@dataclass(frozen=True)
class Interference:
    """Interference: what of a slot's time it can have taken, and of the servers' CPU time."""

    name: str
    limit: float
    """Share of the time up to which both variants are taken to mind alike what both had, as far as
    `MIN_SHARED_EFFECT` says."""
    of_time: Share
    of_cpu: Share | None = None
    """What of the counted CPU time may not be the servers' own work."""


def _lost(seconds: Share) -> Share:
    """Make a share of the time of CPU seconds on the servers' CPUs that went elsewhere."""

    def share(slot: SlotRecord) -> float:
        if slot.readings is None or not slot.readings.host.took_s:
            return 0.0
        return lost_share(seconds(slot), slot.servers.cpu_s, slot.readings.host.took_s)

    return share


def _extra(seconds: Share) -> Share:
    return lambda slot: extra_share(seconds(slot), slot.servers.cpu_s)


def _stolen_s(slot: SlotRecord) -> float:
    return slot.readings.host.servers.steal_s if slot.readings else 0.0


def _charged_s(slot: SlotRecord) -> float:
    """Give what stolen time can have added to the servers' CPU time: all, or cold caches."""
    apart = slot.readings is not None and slot.readings.host.steal_apart
    return _stolen_s(slot) * (REFILL_S / SHORTEST_STEAL_S if apart else 1.0)


def _stolen(slot: SlotRecord) -> float:
    """Of servers and client together: each may have waited while the other was held up."""
    host = slot.readings.host if slot.readings else None
    if host is None or slot.readings is None or not host.took_s:
        return 0.0
    theirs = 0.0 if slot.readings.shared_cpus else host.client.steal_s
    return min(_lost(_stolen_s)(slot) + min(theirs / host.took_s, 1.0), 1.0)


def _refilling_s(others_s: Share) -> Share:
    """Make CPU seconds that the servers' caches can have cost after others ran."""

    def seconds(slot: SlotRecord) -> float:
        services = slot.readings.services.values() if slot.readings else ()
        switches = sum(use.switches_involuntary for use in services)
        return min(others_s(slot), switches * REFILL_S)

    return seconds


def _reclaiming_s(slot: SlotRecord) -> float:
    """On all of the servers' CPUs, whenever a task waited for memory."""
    return memory_waiting(slot) * slot.readings.host.servers.total_s if slot.readings else 0.0


def _cpu_starved(slot: SlotRecord) -> float:
    if slot.readings is None or slot.readings.shared_cpus:
        return 0.0
    return slot.readings.client_waiting or 0.0


def _stopped(slot: SlotRecord) -> float:
    took_s = slot.readings.host.took_s if slot.readings else 0.0
    return min(stopped_s(slot) / took_s, 1.0) if took_s else 0.0


CAUSES = (
    Interference("steal", STEAL_LIMIT, _stolen, _extra(_charged_s)),
    Interference("other-work", FOREIGN_LIMIT, _lost(foreign_s), _extra(_refilling_s(foreign_s))),
    Interference(
        "left-over-work", LEFT_OVER_LIMIT, _lost(left_over_s), _extra(_refilling_s(left_over_s))
    ),
    Interference("memory-pressure", PRESSURE_LIMIT, memory_waiting, _extra(_reclaiming_s)),
    Interference("client-cpu-starved", WAITING_LIMIT, _cpu_starved),
    Interference("client-stalled", STILL_LIMIT, still_share),
    Interference("servers-stopped", 0.0, _stopped),
)


def _mean(slots: Sequence[SlotRecord], share: Share) -> float:
    return float(np.mean([share(slot) for slot in slots])) if slots else 0.0


@dataclass(frozen=True)
class VariantSlots:
    """One of the two variants of a comparison, and its slots that count for a metric."""

    mine: Sequence[SlotRecord]
    theirs: Sequence[SlotRecord]
    """The other variant's."""

    @property
    def is_open(self) -> bool:
        """Whether requests are due by a timetable, which makes the throughput."""
        return self.mine[0].load.loop == "open"

    def throughput(self) -> list[Bound]:
        """Bound the throughput."""
        offered, throughput = self.mine[0].load.offered_rps, throughput_rps(self.mine)
        of_offered = throughput / offered if offered and throughput else None
        return [
            throughput_when_slowed(cause.name, self._counted(cause, cause.of_time), of_offered)
            for cause in CAUSES
        ]

    def cpu(self) -> list[Bound]:
        """Bound CPU per request."""
        return [
            cpu_when_shared(cause.name, self._counted(cause, cause.of_cpu))
            for cause in CAUSES
            if cause.of_cpu
        ]

    def memory(self) -> list[Bound]:
        """Bound memory: pages that are taken away under pressure can't be counted."""
        pressed = _mean(self.mine, memory_waiting)
        return [memory_under_pressure(pressed if pressed > PRESSURE_LIMIT else 0.0)]

    def times(self, quantile: float, of: TimesOf, look_times: Histogram | None) -> list[Bound]:
        """Bound a quantile: only by what exceeds a limit, since little moves its bound a lot.

        `look_times`: the latency of the long look, where the quantile is theirs.
        """
        times = look_times or merge_encoded(of(slot.load).histogram for slot in self.mine)
        bounds = [
            quantile_when_delayed(cause.name, times, quantile, self._added_us(share, of))
            for cause in CAUSES
            if (share := _mean(self.mine, cause.of_time)) > cause.limit
        ]
        lags = [slot.load.send_lag_us for slot in self.mine if SEND_LAG.broken(slot)]
        if lags:
            worst = (
                max(lag.p50 or 0.0 for lag in lags),
                max(lag.p99 or 0.0 for lag in lags),
                max(lag.max or lag.p99 or 0.0 for lag in lags),
            )
            bounds.append(quantile_when_sent_late(times, quantile, worst, self._utilisation()))
        return bounds

    def _counted(self, cause: Interference, of: Share) -> float:
        """Give the share that counts: all of it beyond the limit, else what the other may not mind.

        What the other variant had has moved its metric, too, and by `MIN_SHARED_EFFECT` of it at
        least.
        """
        share = _mean(self.mine, of)
        of_time = max(_mean(self.mine, cause.of_time), _mean(self.theirs, cause.of_time))
        if of_time > cause.limit:
            return share
        return max(share - MIN_SHARED_EFFECT * _mean(self.theirs, of), 0.0)

    def _added_us(self, share: float, of: TimesOf) -> float:
        """Give the mean time that interference has added to what is timed."""
        if self.is_open:
            took_s = fmean(slot.load.measured_s for slot in self.mine)
            lost_s = share * took_s
            return added_in_open_loop_us(lost_s, lost_s, took_s, self._utilisation())
        mean_us = fmean(of(slot.load).mean or 0.0 for slot in self.mine)
        return added_in_closed_loop_us(share, mean_us)

    def _utilisation(self) -> float:
        """Give the share of the servers' CPUs that was busy; 1 where that isn't known."""
        known = _busy_share(self.mine)
        return 1.0 if known is None else known


def _busy_share(slots: Sequence[SlotRecord]) -> float | None:
    """Give the share of the servers' CPUs that was busy; None where that isn't known."""
    hosts = [slot.readings.host.servers for slot in slots if slot.readings]
    total_s = sum(host.total_s for host in hosts)
    return sum(host.busy_s for host in hosts) / total_s if total_s else None


def bounds_of(data: PointData, variant: str, other: str, rule: MetricRule) -> list[Bound]:
    """Give how far each cause can have moved a variant's metric, beside another variant.

    `measured` holds the slots that count for the metric. Side effects (switches, sizes) have none.
    """
    slots = VariantSlots(data.of_variant(variant), data.of_variant(other))
    if not slots.mine or not rule.decides:
        return []
    bounds: list[Bound] = []
    match rule.kind:
        case "throughput":
            bounds = slots.throughput() + ([] if slots.is_open else _settling(data, variant, other))
        case "latency" if rule.quantile is not None:
            look_times = times_of_look(data, variant, rule)
            bounds = slots.times(rule.quantile, rule.times_of, look_times)
            bounds += _turned(_settling(data, variant, other))
        case "work":
            bounds = slots.cpu() + _turned(_settling(data, variant, other))
        case "memory":
            bounds = slots.memory()
    bounds += later_bounds(data, variant, rule)
    return [bound for bound in bounds if bound.down or bound.up]


def client_limited(data: PointData, variant: str, rule: MetricRule) -> Bound:
    """Bound what a variant can do whose limit was the client: by its servers' CPUs.

    A capacity has no such bound, nor has throughput where the client has the same CPUs.
    """
    slots = data.of_variant(variant)
    shared = any(slot.readings.shared_cpus for slot in slots if slot.readings)
    gives_bound = rule.kind == "throughput" and not shared
    return rate_when_client_limited(_busy_share(slots) if gives_bound else None)


def _settling(data: PointData, variant: str, other: str) -> list[Bound]:
    """Bound throughput, or an open loop's work per CPU second, that is sure to have changed.

    Where requests write, and slots cost more CPU time with it, nothing settles: there the bound is
    of what the other variant hasn't of it.
    """
    drift = state_drift(data, variant)
    if drift and drift.seen_in not in {"cost", "database"}:
        drift = None
    changes = [(trend, trend.sure_change(data, variant)) for trend in TRENDS]
    settling = [
        when_settling(trend.name, change, trend.seen)
        for trend, change in changes
        if change is not None and not (drift and trend is TRENDS[0] and change.centre < 0)
    ]
    apart = when_state_grows(grows_apart(data, variant, other)) if drift else UNBIASED
    return [*settling, apart]


def _turned(bounds: Sequence[Bound]) -> list[Bound]:
    """Take a throughput's bounds for what goes down as the throughput goes up.

    Throughput that rises by a factor takes as much off the mean latency (Little's law), and
    at most as much off CPU per request, when that was all that changed.
    """
    return [Bound(bound.cause, down=bound.up, up=bound.down) for bound in bounds]


def limited_by(data: PointData, variant: str, rule: MetricRule) -> LimitedBy | None:
    """Tell what kept a variant from being faster, client, link or load, if one of them did."""
    mine = data.of_variant(variant)
    if rule.kind == "capacity" and mine:
        return _capacity_limited_by(data, variant)
    if rule.kind != "throughput" or not mine:
        return None
    held = [slot for slot in mine if CLIENT_LIMITED.broken(slot) or CLIENT_CEILING.broken(slot)]
    if len(held) > TOO_MANY_EXCLUDED * len(mine):
        return "client"
    return "link" if link_limited(mine) else None


def _capacity_limited_by(data: PointData, variant: str) -> LimitedBy | None:
    if client_was_the_limit(data, variant):
        return "client"
    bounds = {full.variant for full in saturation(data) if full.is_lower_bound}
    return "load" if variant in bounds else None


@dataclass(frozen=True)
class Evidence:
    """What the run tells of the bias of a variant and the baseline on a metric."""

    together: Bound
    """Of their log ratio."""
    biases: list[Bias]
    limited_by: dict[str, LimitedBy]

    @property
    def biased(self) -> bool:
        """Whether anything counts against the verdict."""
        return bool(self.together.up or self.together.down)

    def against(self, d: Logs) -> Logs:
        """Move log ratios towards "no difference" as far as they can have been moved away."""
        return within_floats(d - self.together.up if d.sum() > 0 else d + self.together.down)


def evidence_of(data: PointData, variant: str, baseline: str, rule: MetricRule) -> Evidence:
    """Bound the bias of a comparison from probe readings.

    A saturated client may have kept a variant from being faster, and so may a load whose
    connections are used up. A link that is full is a part of the experiment: over it nothing is
    faster.
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
