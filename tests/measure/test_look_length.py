"""How long each variant is looked at, and whether a look that was interrupted is over."""

from datetime import timedelta
from typing import Any

import pytest

from builders import START, SimulatedVariant, point_data, run_head, simulated_run
from comparison.searches import Variant, searched
from evidence.stretches import Truth, stretch
from webdyno.comparison import decide, question_of
from webdyno.core.experiment import Experiment
from webdyno.core.measure import Measure
from webdyno.core.records import IncidentRecord, LongLookRecord, Record, StopRecord
from webdyno.evidence.long_look import look_at, look_words
from webdyno.evidence.look_records import thinned_samples
from webdyno.evidence.stalls import all_stalls_of
from webdyno.measure.long_look import lacking_looks, left_s, part_s

VARIANTS = {"nginx": SimulatedVariant(), "apache": SimulatedVariant()}
STOP = StopRecord(round=8, stopped_at=START, reason="precision", why="known")
DIED = IncidentRecord(round=8, variant="nginx", happened_at=START, what="nginx died")


def _experiment(budget_s: float, soak_s: float | None = None) -> Experiment:
    measure = Measure(seed=1, budget_s=budget_s, soak_s=soak_s)
    return run_head({"nginx": "nginx", "apache": "apache-event"}, measure=measure).experiment


def test_a_long_look_takes_a_share_of_the_budget() -> None:
    assert question_of(_experiment(90.0)).long_look_s == 10.0
    assert question_of(_experiment(50.0)).long_look_s == pytest.approx(6.25)
    assert question_of(_experiment(20.0)).long_look_s == 0.0
    assert question_of(_experiment(20.0, soak_s=60.0)).long_look_s == 60.0
    assert question_of(_experiment(90.0, soak_s=0.0)).long_look_s == 0.0


@pytest.mark.parametrize(
    ("look_s", "expected_s"), [(10, 10), (119, 119), (150, 75), (600, 60), (3_600, 180)]
)
def test_parts_are_minutes_or_twentieths(look_s: float, expected_s: float) -> None:
    assert part_s(look_s) == expected_s


def test_nothing_is_looked_at_before_the_rounds_are_over_or_after_a_server_died() -> None:
    run, experiment = simulated_run(VARIANTS), _experiment(90.0)
    assert lacking_looks(point_data(run.records, experiment)) == []
    assert lacking_looks(point_data([*run.records, STOP], experiment)) == ["nginx", "apache"]
    assert lacking_looks(point_data([*run.records, STOP, DIED], experiment)) == []


def test_a_look_that_was_interrupted_is_lacking_for_the_rest_of_its_time() -> None:
    run, experiment = simulated_run(VARIANTS), _experiment(90.0, soak_s=120.0)
    over = stretch(Truth(looked_s=120.0), variant="nginx")
    begun = _part(0, 0, 60.0)
    records: list[Record] = [*run.records, STOP, over, begun]
    assert lacking_looks(point_data(records, experiment)) == ["apache"]
    assert left_s([begun], experiment) == pytest.approx(60.0)
    assert left_s([begun, _part(1, 0, 60.0)], experiment) == 0


def test_a_look_goes_on_for_stalls_unless_its_length_was_given() -> None:
    seen = stretch(Truth(every_s=6.0, stall_s=1.0, looked_s=10.0))
    assert 10 <= left_s([seen], _experiment(90.0)) <= 30
    assert left_s([seen], _experiment(90.0, soak_s=10.0)) == 0


def test_no_time_is_kept_for_looks_that_are_on_record() -> None:
    run, experiment = simulated_run(VARIANTS), _experiment(90.0)
    looked = [*run.records, stretch(Truth(), variant="nginx")]
    assert question_of(experiment).reserved_s(point_data(run.records, experiment)) == 20.0
    assert question_of(experiment).reserved_s(point_data(looked, experiment)) == 10.0


def test_parts_of_a_stretch_are_as_one() -> None:
    """A stall across the edge of two parts is one; what is summed up goes on."""
    whole = stretch(Truth(looked_s=24.0, every_s=6.0, stall_s=1.0, stolen=True), seed=3)
    parts = _cut(whole, 8.0)
    a, b = look_at(whole), look_at(*parts)
    assert len(parts) == 3
    assert [it.cause for it in a.excused] == [it.cause for it in b.excused]
    assert [it.at_s for it in b.excused] == pytest.approx([it.at_s for it in a.excused], abs=0.05)
    assert b.looked_s == pytest.approx(a.looked_s, abs=0.1)
    assert b.breaks == []


def test_a_long_part_keeps_what_shows_of_stalls_and_the_least_memory() -> None:
    whole = stretch(Truth(looked_s=60.0, every_s=20.0, stall_s=1.0, stolen=True, pages=50_000.0))
    found = look_at(whole).excused
    part = thinned_samples(whole, found)
    assert len(part.samples) < len(whole.samples) / 4
    assert look_at(part).excused == found
    held = [it.memory_bytes for it in whole.samples if it.memory_bytes is not None]
    kept = [it.memory_bytes for it in part.samples if it.memory_bytes is not None]
    assert min(kept) == min(held)


@pytest.mark.parametrize("evidence", [{"waited": True}, {"stolen": True}, {}])
def test_causes_are_as_sure_when_a_long_part_is_on_record(evidence: dict[str, Any]) -> None:
    whole = stretch(Truth(every_s=7.0, stall_s=0.2, looked_s=60.0, **evidence))
    found = all_stalls_of(whole)
    part = thinned_samples(whole, found)
    assert len(part.samples) < len(whole.samples) / 2
    assert len(found) > 5
    assert [it.cause for it in all_stalls_of(part)] == [it.cause for it in found]


def test_memory_that_is_taken_when_connections_are_opened_again_is_no_leak() -> None:
    parts = []
    for number in range(8):
        part = stretch(Truth(looked_s=12.0), seed=number)
        samples = [
            it.model_copy(update={"memory_bytes": it.memory_bytes and 10**8 + number * 5_000_000})
            for it in part.samples
        ]
        parts.append(part.model_copy(update={"part": number, "samples": samples}))
    look = look_at(*parts)
    assert look.growth is None
    (memory,) = [it.per_hour for it in look.slopes if it.metric == "memory_bytes"]
    assert memory.low <= 0 <= memory.high


def test_an_interruption_is_reported_and_a_fresh_start_is_no_drift() -> None:
    before = _part(0, 0, 60.0).model_copy(update={"took_s": 70.0})
    after = stretch(Truth(looked_s=60.0, throughput_rps=30_000.0), variant="apache").model_copy(
        update={"stretch": 1, "started_at": START + timedelta(seconds=370)}
    )
    look = look_at(before, after)
    assert [(it.at_s, it.pause_s) for it in look.breaks] == [(60.0, 300.0)]
    assert look.drifts == []
    assert look.looked_s == pytest.approx(120.0)
    assert look.unbroken_s == pytest.approx(60.0)
    assert look_words(look) == "2 min of load with 1 restart"
    assert look_words(look, 30.0) == "30 s of load without a restart"


def _part(stretch_number: int, part: int, looked_s: float) -> LongLookRecord:
    record = stretch(Truth(looked_s=looked_s), variant="apache", seed=stretch_number)
    update = {"stretch": stretch_number, "part": part, "ended_by": None}
    return record.model_copy(update=update)


def _cut(whole: LongLookRecord, every_s: float) -> list[LongLookRecord]:
    """Cut a stretch into parts, each with sums and times of its own."""
    windows = round(every_s / whole.window_s)
    parts = []
    for number in range(len(whole.responses) // windows):
        begin_s = number * every_s
        own = [it for it in whole.samples if begin_s <= it.at_s <= begin_s + every_s]
        samples = [
            it.model_copy(
                update={
                    "at_s": it.at_s - begin_s,
                    "cpu_s": it.cpu_s - own[0].cpu_s,
                    "busy_s": it.busy_s - own[0].busy_s,
                    "stolen_s": it.stolen_s - own[0].stolen_s,
                }
            )
            for it in own
        ]
        responses = whole.responses[number * windows : (number + 1) * windows]
        update = {"part": number, "samples": samples, "responses": responses}
        parts.append(whole.model_copy(update=update))
    return parts


def test_the_search_for_one_systems_capacity_leaves_time_for_its_look() -> None:
    run = searched(nginx=Variant(capacity_rps=1_000.0))
    experiment = run.head.experiment
    noisy = experiment.measure.model_copy(update={"precision": 0.0001, "patience": 1.0})
    experiment = experiment.model_copy(update={"measure": noisy})
    round_s = run.data.round_s
    used_s = noisy.budget_s - round_s - 1.0
    stop = decide(point_data(run.records, experiment), used_s)
    assert stop is not None
    assert stop.reason == "budget"
    looked = [*run.records, stretch(Truth(), variant="nginx")]
    assert decide(point_data(looked, experiment), used_s) is None
