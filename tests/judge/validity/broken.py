"""Runs with something wrong in them, for the tests of validity rules."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from builders import START, SimulatedArm, SimulatedRun, simulated_run
from webdyno.judge.validity import findings
from webdyno.model.judgement import Finding
from webdyno.model.load_result import LoadResult
from webdyno.model.records import IncidentRecord, Record, SlotRecord

ARMS = {"nginx": SimulatedArm(), "apache": SimulatedArm()}
BLOCKS = 6


def run_with(change: Callable[[SlotRecord], SlotRecord], *, arm: str = "apache") -> SimulatedRun:
    """A run in which every measured slot of an arm is changed."""
    run = simulated_run(ARMS, blocks=BLOCKS)
    records: list[Record] = [
        change(record)
        if isinstance(record, SlotRecord) and record.arm == arm and record.phase == "measure"
        else record
        for record in run.records
    ]
    return SimulatedRun(run.head, records)


def load_with(**changes: Any) -> Callable[[SlotRecord], SlotRecord]:  # noqa: ANN401
    """Change fields of a slot's load: a dict changes fields of the model inside."""

    def change(slot: SlotRecord) -> SlotRecord:
        return slot.model_copy(update={"load": _changed(slot.load, changes)})

    return change


def _changed(load: LoadResult, changes: dict[str, Any]) -> LoadResult:
    update = {
        name: inner.model_copy(update=value)
        if isinstance(value, dict) and not isinstance(inner := getattr(load, name), dict)
        else value
        for name, value in changes.items()
    }
    return load.model_copy(update=update)


def found_in(run: SimulatedRun) -> dict[str, Finding]:
    """The findings by rule; each rule at most once."""
    found = findings(run.head, run.records)
    by_rule = {finding.rule: finding for finding in found}
    assert len(by_rule) == len(found)
    return by_rule


def incident(arm: str = "apache", **changes: Any) -> IncidentRecord:  # noqa: ANN401
    """A server that died."""
    return IncidentRecord(
        block=2,
        arm=arm,
        happened_at=START + timedelta(seconds=20),
        what="service apache ended with signal 9",
        **changes,
    )
