"""Records that were damaged: refused when they are read, or judged; never a traceback."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from builders import START, SimulatedVariant, run_head, simulated_run
from evidence.stretches import Truth, stretch
from validity.broken import incident, readings_with
from webdyno.comparison import decide, judge_sweep
from webdyno.comparison.runs import compare_sweeps
from webdyno.comparison.stop import chosen_slots_per_variant
from webdyno.core.errors import UserError
from webdyno.core.records import RECORD, Record, StopRecord
from webdyno.evidence.point_data import PointData, RunData

VARIANTS = {"nginx": SimulatedVariant(), "apache": SimulatedVariant()}
HEAD = run_head({name: variant.stack for name, variant in VARIANTS.items()})
RECORDS: list[Record] = [
    *(
        readings_with()(record) if record.kind == "slot" else record
        for record in simulated_run(VARIANTS, rounds=7).records
    ),
    incident(),
    StopRecord(round=7, stopped_at=START, reason="budget", why="no other round fits"),
    *(
        stretch(Truth(looked_s=1.0)).model_copy(update={"part": part, "failed": [1] * 40})
        for part in range(2)
    ),
]
LINES = [json.loads(record.model_dump_json(by_alias=True)) for record in RECORDS]
WHOLE = (-1, 0, 1, 2**53, 2**63 - 1, 2**63, 10**400)
BROKEN = (-1e-9, 5e-324, 0.5, 1e18, 1e300, float("inf"), float("nan"))
ABSURD: st.SearchStrategy[object] = st.sampled_from([*WHOLE, *BROKEN, None, True, "", "nginx"])


def leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:  # noqa: ANN401
    """Where a line has figures and texts."""
    if isinstance(value, dict | list):
        inner = value.items() if isinstance(value, dict) else enumerate(value)
        return [leaf for key, it in inner for leaf in leaves(it, (*path, key))]
    return [path]


def damaged(line: Any, path: tuple[Any, ...], value: object) -> Any:  # noqa: ANN401
    """A copy of a line with another value in one place."""
    if not path:
        return value
    copy = line.copy()
    copy[path[0]] = damaged(line[path[0]], path[1:], value)
    return copy


@st.composite
def damaged_records(draw: st.DrawFn) -> list[Record]:
    """The run with up to four figures replaced, as far as they can be read."""
    records: list[Record] = list(RECORDS)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(LINES) - 1))
        path = draw(st.sampled_from(leaves(LINES[at])))
        text = json.dumps(damaged(LINES[at], path, draw(ABSURD)))
        try:
            records[at] = RECORD.validate_json(text)
        except ValidationError:
            continue
    return records


@contextmanager
def unless_a_histogram_is_damaged() -> Iterator[None]:
    """Accept that a histogram is refused, which is read only where it is needed; nothing else."""
    try:
        yield
    except UserError as refusal:
        if not str(refusal).startswith("a histogram of the run's slots.jsonl is damaged ("):
            raise


@given(damaged_records())
def test_damaged_records_are_refused_or_judged(records: list[Record]) -> None:
    data = PointData.of(HEAD, records)
    with unless_a_histogram_is_damaged():
        judge_sweep(RunData(HEAD, records))
        decide(data, 10.0)
        chosen_slots_per_variant(data)


@pytest.mark.parametrize(
    ("path", "value"),
    [(("load", "measured_s"), 5e-324), (("load", "requests", "completed"), 2**63 - 1)],
)
def test_what_floats_and_counters_just_hold_is_judged(path: tuple[str, ...], value: object) -> None:
    """Throughput beyond all floats, and a sum beyond all counters."""
    at = next(at for at, line in enumerate(LINES) if line.get("phase") == "measure")
    line = damaged(LINES[at], ("load", "requests", "drained"), 1)
    records = list(RECORDS)
    records[at] = RECORD.validate_json(json.dumps(damaged(line, path, value)))
    judge_sweep(RunData(HEAD, records))


@pytest.mark.parametrize("key", ["responses", "failed", "samples", "client_pauses"])
@pytest.mark.parametrize("length", [0, 1, 9])
def test_long_looks_with_less_in_them_are_judged(key: str, length: int) -> None:
    at = max(at for at, line in enumerate(LINES) if line["kind"] == "long-look")
    records = list(RECORDS)
    records[at] = RECORD.validate_json(json.dumps(LINES[at] | {key: LINES[at][key][:length]}))
    judge_sweep(RunData(HEAD, records))


@pytest.mark.parametrize("window_s", [0, 5e-324, 1e-9, 1e18])
def test_windows_of_no_length_and_beyond_all_lengths_are_refused(window_s: float) -> None:
    at = max(at for at, line in enumerate(LINES) if line["kind"] == "long-look")
    with pytest.raises(ValidationError):
        RECORD.validate_json(json.dumps(LINES[at] | {"window_s": window_s}))


def test_more_failures_in_a_window_than_a_stretch_can_sum_up_are_refused() -> None:
    at = max(at for at, line in enumerate(LINES) if line["kind"] == "long-look")
    with pytest.raises(ValidationError):
        RECORD.validate_json(json.dumps(LINES[at] | {"failed": [2**63 - 1] * 2}))


@given(damaged_records())
@settings(max_examples=15, deadline=None)
def test_damaged_runs_can_be_compared(records: list[Record]) -> None:
    """Few, since each is judged again for that, which the other test does."""
    with unless_a_histogram_is_damaged():
        compare_sweeps(RunData(HEAD, RECORDS), RunData(HEAD, records))
