"""Runs with something wrong in them, for the tests of validity rules."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar

from pydantic import BaseModel

from builders import START, SimulatedRun, SimulatedVariant, simulated_run
from webdyno.core.judgement import ValidityWarning
from webdyno.core.load_result import Window
from webdyno.core.readings import CpuUse, HostUse, NetworkUse, PressureUse, Readings
from webdyno.core.records import IncidentRecord, Record, SlotRecord
from webdyno.validity import warnings_of

VARIANTS = {"nginx": SimulatedVariant(), "apache": SimulatedVariant()}
ROUNDS = 6
THIRD_S = 0.5 / 3


def run_with(
    change: Callable[[SlotRecord], SlotRecord], *, variant: str = "apache"
) -> SimulatedRun:
    """A run in which every measured slot of a variant is changed."""
    run = simulated_run(VARIANTS, rounds=ROUNDS)
    records: list[Record] = [
        change(record)
        if isinstance(record, SlotRecord)
        and record.variant == variant
        and record.phase == "measure"
        else record
        for record in run.records
    ]
    return SimulatedRun(run.head, records)


def load_with(**changes: Any) -> Callable[[SlotRecord], SlotRecord]:  # noqa: ANN401
    """Change fields of a slot's load: a dict changes fields of the model inside."""

    def change(slot: SlotRecord) -> SlotRecord:
        return slot.model_copy(update={"load": _changed(slot.load, changes)})

    return change


def readings_with(**changes: Any) -> Callable[[SlotRecord], SlotRecord]:  # noqa: ANN401
    """Give a slot probe readings in which nothing is wrong but for the changes."""

    def change(slot: SlotRecord) -> SlotRecord:
        return slot.model_copy(update={"readings": _changed(quiet_readings(slot), changes)})

    return change


M = TypeVar("M", bound=BaseModel)


def _changed(model: M, changes: dict[str, Any]) -> M:
    """Change fields; a dict for a field that is a model changes fields of that."""
    update = {}
    for name, value in changes.items():
        now = getattr(model, name)
        nested = isinstance(now, BaseModel) and isinstance(value, dict)
        update[name] = _changed(now, value) if nested else value
    return model.model_copy(update=update)


def quiet_readings(slot: SlotRecord) -> Readings:
    """What the probes read on a quiet host: half of the CPU time is idle."""
    used_s = slot.servers.cpu_s
    servers = CpuUse(
        user_s=used_s / 3, system_s=used_s / 3, interrupts_s=used_s / 3, idle_s=0.5, steal_s=0.0
    )
    return Readings(
        services={},
        network=NetworkUse(
            dropped=0,
            received_bytes=5_000_000,
            received_packets=40_000,
            sent_bytes=5_000_000,
            sent_packets=40_000,
            listen_overflows=0,
            listen_drops=0,
            retransmits=0,
            syn_retransmits=0,
            time_wait=100,
            ephemeral_ports=28_232,
        ),
        host=HostUse(
            took_s=0.5,
            servers=servers,
            client=CpuUse(user_s=0.1, system_s=0.3, interrupts_s=0.1, idle_s=0.5, steal_s=0.0),
            context_switches=30_000,
            load_1m=2.0,
            pressure=PressureUse(cpu_s=0.1, memory_s=0.0, io_s=0.0),
        ),
        client_waiting=0.0,
    )


def with_thirds(slot: SlotRecord, responses: tuple[int, int, int], **load: object) -> SlotRecord:
    """Give a slot windows with so many responses, and other fields of its load."""
    windows = [
        Window(at_s=number * THIRD_S, length_s=THIRD_S, completed=count)
        for number, count in enumerate(responses)
    ]
    return slot.model_copy(
        update={"load": slot.load.model_copy(update={"windows": windows, **load})}
    )


def found_in(run: SimulatedRun) -> dict[str, ValidityWarning]:
    """The warnings by rule; each rule at most once."""
    found = warnings_of(run.data)
    by_rule = {warning.rule: warning for warning in found}
    assert len(by_rule) == len(found)
    return by_rule


def incident(
    variant: str | None = "apache",
    *,
    round_number: int = 2,
    **changes: Any,  # noqa: ANN401
) -> IncidentRecord:
    """A server that died."""
    return IncidentRecord(
        round=round_number,
        variant=variant,
        happened_at=START + timedelta(seconds=20),
        what="service apache ended with signal 9",
        **changes,
    )
