"""All that is judged of a recorded run, as plain JSON: nothing that is computed is left out.

What is only shown (sentences of reports, charts) has snapshots of its own in tests/report.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic_core import to_jsonable_python

from webdyno.judge import decide, foresee
from webdyno.judge.advice import evidence
from webdyno.judge.fleet import judge_fleet, judge_machine
from webdyno.judge.gate import judge_gate
from webdyno.judge.look_length import lacking_looks
from webdyno.judge.measured import Measured
from webdyno.judge.race import still_racing
from webdyno.judge.remedies import due_remedy
from webdyno.judge.runs import compare_sweeps
from webdyno.judge.settings import slot_settings, slots_per_arm
from webdyno.judge.stop import fails_gate
from webdyno.judge.sweep import PointRun, judge_sweep, runs_by_point
from webdyno.model.experiment import Experiment
from webdyno.model.records import BlockRecord, PilotRecord, Record
from webdyno.run.folder import RunFolder

DECIDED_AFTER = slice(1, 8, 2)
"""The blocks after which is decided again what comes next, beside the end: 2, 4, 6 and 8."""


def verdicts_of(folder: RunFolder) -> object:
    """Judge a run as a whole, and decide again what was decided while it went on."""
    head, records = folder.head, folder.records()
    points = runs_by_point(head, records)
    return _plain(
        {
            "judged": judge_sweep(head, records),
            "gate": judge_gate(head, records) if head.experiment.gate else None,
            "suspected": {point.point.label: _suspected(point) for point in points},
            "decided": {point.point.label: list(_decided(point)) for point in points},
        }
    )


def fleet_verdict_of(folders: Mapping[str, RunFolder]) -> object:
    """Judge runs of one experiment on several machines together."""
    machines = {name: judge_machine(it.head, it.records()) for name, it in folders.items()}
    return _plain(judge_fleet(machines))


def change_verdict_of(before: RunFolder, after: RunFolder) -> object:
    """Judge what changed between two runs of one experiment."""
    return _plain(compare_sweeps(*((it.head, it.records()) for it in (before, after))))


def _plain(value: object) -> object:
    return to_jsonable_python(value, inf_nan_mode="constants")


def _suspected(point: PointRun) -> dict[str, object]:
    """What a run shows of each arm when settings are looked for that make it slow."""
    experiment, servers = point.head.experiment, point.head.machine.split.servers
    measured = Measured.of(point.records)
    shown = {arm: evidence(measured, arm, experiment, len(servers)) for arm in experiment.arms}
    # A set's order is another one in each process.
    return {arm: vars(it) | {"broken": sorted(it.broken)} for arm, it in shown.items()}


def _decided(point: PointRun) -> Iterator[dict[str, Any]]:
    """What comes next, after some blocks and at the end."""
    experiment = point.head.experiment
    ends = [n for n, record in enumerate(point.records, 1) if isinstance(record, BlockRecord)]
    for end in [*ends[DECIDED_AFTER], len(point.records)]:
        yield _next(point.records[:end], experiment)


def _next(records: Sequence[Record], experiment: Experiment) -> dict[str, Any]:
    used_s = sum(it.took_s for it in records if isinstance(it, BlockRecord | PilotRecord))
    return {
        "used_s": used_s,
        "arms": still_racing(records, experiment),
        "stop": decide(records, experiment, used_s),
        "forecast": foresee(records, experiment),
        "remedy": due_remedy(records, experiment, used_s),
        "slots": slot_settings(records, experiment),
        "slots_per_arm": slots_per_arm(records, experiment),
        "fails_gate": fails_gate(records, experiment),
        "lacking_looks": lacking_looks(records, experiment),
    }
