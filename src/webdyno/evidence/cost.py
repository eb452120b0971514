"""What variants cost at an arrival rate, and while nobody asks them anything."""

from collections.abc import Mapping, Sequence
from typing import TypeVar

from webdyno.core.experiment import Experiment
from webdyno.core.explain import THOUSAND_RPS, CostAtRate, CostAtRest, OverRounds
from webdyno.core.files import MIB
from webdyno.core.judgement import Comparison, ValidityWarning, VariantValue
from webdyno.core.metrics import CPU_TIME
from webdyno.core.records import InstructionsRecord, RestRecord
from webdyno.evidence.point_data import PointData

Look = TypeVar("Look", InstructionsRecord, RestRecord)
US_PER_S = 1e6
KIB = 2**10
FEWEST_HELD = 200
"""Connections whose memory can be known: that of fewer is lost in what a process has at hand."""


def cost_rate_rps(experiment: Experiment, variant: str) -> float | None:
    """Give the arrival rate at which an experiment asks for costs; None where it asks for none."""
    if experiment.measure.decide_on != CPU_TIME:
        return None
    return experiment.load_of(variant).offered_rps


def costs_at_rate(
    data: PointData, values: Sequence[VariantValue], warnings: Sequence[ValidityWarning]
) -> list[CostAtRate]:
    """Give what each variant costs; what a rule says can't be believed has no cost."""
    experiment, counted = data.experiment, _finished(data, InstructionsRecord)
    uncounted = next((record.fault for record in counted if record.fault), "")
    return [
        CostAtRate(
            variant=value.variant,
            rate_rps=rate_rps,
            cores_per_1000_rps=value.interval.mapped(lambda us: us / US_PER_S * THOUSAND_RPS),
            instructions=_per_response([one for one in counted if one.variant == value.variant]),
            uncounted=uncounted,
        )
        for value in values
        if value.metric == CPU_TIME
        and value.interval is not None
        and (rate_rps := cost_rate_rps(experiment, value.variant))
        and not any(warning.invalidates(CPU_TIME, [value.variant]) for warning in warnings)
    ]


def _per_response(counted: Sequence[InstructionsRecord]) -> OverRounds | None:
    return OverRounds.of(
        [
            record.instructions / record.responses
            for record in counted
            if record.instructions is not None and record.responses
        ]
    )


def with_costs(comparison: Comparison, known: Mapping[str, CostAtRate]) -> Comparison:
    """Add to a comparison of CPU times what both variants cost, where that is known."""
    pair = [known[name] for name in (comparison.a, comparison.b) if name in known]
    if comparison.metric != CPU_TIME or len(pair) < 2:
        return comparison
    return comparison.replace(costs=pair)


def costs_at_rest(data: PointData) -> list[CostAtRest]:
    """Give what each variant used while nobody asked, in the rounds that came to their end."""
    looks = _finished(data, RestRecord)
    by_variant = {
        variant: [look for look in looks if look.variant == variant]
        for variant in data.experiment.variants
    }
    costs = (_at_rest(variant, mine) for variant, mine in by_variant.items())
    return [cost for cost in costs if cost]


def _finished(data: PointData, kind: type[Look]) -> list[Look]:
    """Give the records of a kind in the rounds that came to their end, the last of each."""
    finished = {this_round.record.round for this_round in data.rounds}
    looks = {
        (record.variant, record.round): record
        for record in data.records
        if isinstance(record, kind) and record.round in finished
    }
    return list(looks.values())


def _at_rest(variant: str, looks: Sequence[RestRecord]) -> CostAtRest | None:
    cpu_share = OverRounds.of([look.cpu_s / look.rested_s for look in looks])
    wake_ups_per_s = OverRounds.of([look.wake_ups / look.rested_s for look in looks])
    if cpu_share is None or wake_ups_per_s is None:
        return None
    return CostAtRest(
        variant=variant,
        rounds=len(looks),
        cpu_share=cpu_share,
        wake_ups_per_s=wake_ups_per_s,
        memory_mib=OverRounds.of(
            [look.memory_bytes / MIB for look in looks if look.memory_bytes is not None]
        ),
        connection_kib=OverRounds.of(
            [kib for look in looks if (kib := _connection_kib(look)) is not None]
        ),
    )


def _connection_kib(look: RestRecord) -> float | None:
    before, after = look.memory_bytes, look.memory_with_held_bytes
    if before is None or after is None or look.held < FEWEST_HELD:
        return None
    return max(after - before, 0) / look.held / KIB
