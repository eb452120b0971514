"""What variants execute for a request, counted in slots of their own after those that count."""

from collections.abc import Sequence
from datetime import UTC, datetime

from webdyno.core.metrics import responses_in
from webdyno.core.pilot import SlotSettings
from webdyno.core.records import InstructionsRecord
from webdyno.evidence.cost import cost_rate_rps
from webdyno.measure.planned import PlannedVariant
from webdyno.measure.variant import RunningRound

COUNTED_ROUNDS = 3
"""In so many first ones instructions are counted: from one to the next these differ by far less
than time does."""


def count_instructions(
    running: RunningRound, variants: Sequence[PlannedVariant], times: SlotSettings
) -> None:
    """Count what each variant that is here executes, where an experiment asks for costs.

    That has a slot of its own, since counting takes CPU time. Where servers died meanwhile, that is
    put on record, and StackDied raised.
    """
    for variant in variants:
        slot_s = times.ramp_up_s[variant.name] + times.window_s
        if _is_due(running, variant.name, slot_s) and _is_here(running, variant):
            with running.deaths_on_record(variant):
                running.point.keep(_counted(running, variant, times))


def _is_due(running: RunningRound, variant: str, slot_s: float) -> bool:
    point, is_traced = running.point, running.tracing("measure") is not None
    if running.number > COUNTED_ROUNDS or is_traced or point.left_s < slot_s:
        return False
    if cost_rate_rps(point.experiment, variant) is None:
        return False
    known = (record for record in point.data.records if isinstance(record, InstructionsRecord))
    return not any(record.fault for record in known)


def _is_here(running: RunningRound, variant: PlannedVariant) -> bool:
    return not running.up[variant.name].is_elsewhere and not variant.stack.runs_already


def _counted(
    running: RunningRound, variant: PlannedVariant, times: SlotSettings
) -> InstructionsRecord:
    testbed, started_at = running.point.testbed, datetime.now(UTC)
    tried = testbed.rest(variant.name, 0.0, "instructions").instructions
    known = InstructionsRecord(round=running.number, variant=variant.name, started_at=started_at)
    if tried is None or tried.fault:
        return known.replace(fault=tried.fault if tried else "")
    name = f"round {running.number}, instructions of {variant.name}"
    order = running.order(variant, name, times.window_s, ramp_up_s=times.ramp_up_s[variant.name])
    slot = testbed.slot(variant.name, order, "instructions")
    counted = slot.used.instructions
    return known.replace(
        instructions=counted.instructions if counted else None,
        fault=counted.fault if counted else "",
        responses=responses_in(slot.load),
    )
