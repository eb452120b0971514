"""All that is judged of a recorded run, as plain JSON: nothing that is computed is excluded.

What is only shown (sentences of reports, charts) has snapshots of its own in tests/report.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic_core import to_jsonable_python

from webdyno.judge import decide, foresee, next_variants, question_of
from webdyno.judge.adjustments import due_adjustment
from webdyno.judge.fleet import judge_fleet, judge_machine
from webdyno.judge.look_length import lacking_looks
from webdyno.judge.point_data import PointData
from webdyno.judge.questions.interventions import advice_evidence
from webdyno.judge.runs import compare_sweeps
from webdyno.judge.settings import slot_settings, slots_per_variant
from webdyno.judge.sweep import judge_sweep
from webdyno.judge.validity import used_s
from webdyno.model.records import RoundRecord
from webdyno.run.folder import RunFolder

DECIDED_AFTER = slice(1, 8, 2)
"""The rounds after which is decided again what comes next, beside the end: 2, 4, 6 and 8."""


def verdicts_of(folder: RunFolder) -> object:
    """Judge a run as a whole, and decide again what was decided while it went on."""
    run = folder.data()
    return _plain(
        {
            "judged": judge_sweep(run),
            "gate": question_of(run.head.experiment).judge_all_points(run),
            "suspected": {data.point.label: _suspected(data) for data in run.points},
            "decided": {data.point.label: list(_decided(data)) for data in run.points},
        }
    )


def fleet_verdict_of(folders: Mapping[str, RunFolder]) -> object:
    """Judge runs of one experiment on several machines together."""
    machines = {name: judge_machine(it.data()) for name, it in folders.items()}
    return _plain(judge_fleet(machines))


def change_verdict_of(before: RunFolder, after: RunFolder) -> object:
    """Judge what changed between two runs of one experiment."""
    return _plain(compare_sweeps(before.data(), after.data()))


def _plain(value: object) -> object:
    return to_jsonable_python(value, inf_nan_mode="constants")


def _suspected(data: PointData) -> dict[str, object]:
    """What a run shows of each variant when settings are looked for that make it slow."""
    shown = {variant: advice_evidence(data, variant) for variant in data.experiment.variants}
    # A set's order is another one in each process.
    return {variant: vars(it) | {"broken": sorted(it.broken)} for variant, it in shown.items()}


def _decided(data: PointData) -> Iterator[dict[str, Any]]:
    """What comes next, after some rounds and at the end."""
    ends = [n for n, record in enumerate(data.records, 1) if isinstance(record, RoundRecord)]
    for end in [*ends[DECIDED_AFTER], len(data.records)]:
        yield _next(PointData.of(data.head, data.records[:end], data.point))


def _next(data: PointData) -> dict[str, Any]:
    used = used_s(data)
    return {
        "used_s": used,
        "variants": next_variants(data),
        "stop": decide(data, used),
        "forecast": foresee(data),
        "fix": due_adjustment(data, used),
        "slots": slot_settings(data),
        "slots_per_variant": slots_per_variant(data),
        "fails_gate": question_of(data.experiment).stops_elsewhere([data]) is not None,
        "lacking_looks": lacking_looks(data),
    }
