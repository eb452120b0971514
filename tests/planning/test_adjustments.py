"""Settings of slots: from pilots, from adjustments, from users; causes planted in records."""

from collections.abc import Sequence
from dataclasses import replace
from math import exp

import pytest

from builders import SimulatedRun, SimulatedVariant, pilot_record, point_data, simulated_run
from validity.broken import readings_with
from webdyno.comparison import judge
from webdyno.core.judgement import Verdict
from webdyno.core.load_result import Times, Window
from webdyno.core.measure import Measure
from webdyno.core.records import AdjustmentRecord, PilotRecord, Record, SlotRecord
from webdyno.planning.adjustments import due_adjustment
from webdyno.planning.settings import slot_settings
from webdyno.validity import counting_share

VARIANTS = {
    "nginx": SimulatedVariant(),
    "apache": SimulatedVariant("apache-event", throughput_rps=20_000),
}
BUDGET_S = 1000.0
LATENCY_S = 0.0015


def measured(measure: Measure | None = None, rounds: int = 4) -> SimulatedRun:
    """A run without trouble."""
    given = measure or Measure(seed=1, budget_s=BUDGET_S)
    return simulated_run(VARIANTS, rounds=rounds, measure=given, slot_sd=0.001)


def pilot(variant: str, warmup_s: float, ramp_up_s: float, window_s: float) -> PilotRecord:
    """What was found of a variant."""
    return pilot_record(
        variant, warmup_s=warmup_s, ramp_up_s=ramp_up_s, window_s=window_s, took_s=3.0
    )


PILOTS: list[Record] = [pilot("nginx", 0.1, 0.3, 0.5), pilot("apache", 0.7, 0.1, 1.5)]


def due(run: SimulatedRun, used_s: float = 0.0) -> AdjustmentRecord | None:
    return due_adjustment(run.data, used_s)


def planted(run: SimulatedRun, variant: str, **load: object) -> SimulatedRun:
    """The same run, the load's results of one variant changed."""

    def change(record: Record) -> Record:
        if not isinstance(record, SlotRecord) or record.variant != variant:
            return record
        return record.model_copy(update={"load": record.load.model_copy(update=load)})

    return replace(run, records=[change(record) for record in run.records])


def test_nothing_is_adjusted_where_nothing_is_wrong() -> None:
    assert due(measured()) is None
    assert due(measured(rounds=0)) is None


def silent(run: SimulatedRun) -> SimulatedRun:
    """Variant apache has answered nothing, and nothing has failed."""
    load = slot_of(run, "apache").load
    requests = load.requests.model_copy(update={"completed": 0, "drained": 64})
    return planted(run, "apache", requests=requests, whole=None)


def slot_of(run: SimulatedRun, variant: str) -> SlotRecord:
    return next(it for it in run.records if isinstance(it, SlotRecord) and it.variant == variant)


def test_a_page_that_is_only_slow_gets_longer_slots() -> None:
    adjustment = due(silent(measured(rounds=1)))
    assert adjustment
    assert (adjustment.rule, adjustment.variant, adjustment.again) == (
        "no-responses",
        "apache",
        True,
    )
    assert adjustment.settings
    assert adjustment.settings.window_s == 2
    assert adjustment.what == (
        "variant apache gave no response in 4 slots of 0.5 s: slots take 2 s from now on"
    )


def test_slots_of_the_users_choice_stay_as_they_are() -> None:
    assert due(silent(measured(Measure(slot_s=0.5)))) is None


def drifting(change: float, measure: Measure | None = None) -> SimulatedRun:
    """Variant nginx's throughput changes from slot to slot of each round."""
    run = measured(measure)
    by_position: dict[int, int] = {}

    def drift(record: Record) -> Record:
        if not isinstance(record, SlotRecord) or record.variant != "nginx":
            return record
        place = by_position[record.round] = by_position.get(record.round, -1) + 1
        load, factor = record.load, exp(change * place)
        completed = round(load.requests.completed * factor)
        requests = load.requests.model_copy(update={"completed": completed})
        update = {"requests": requests, "throughput_rps": load.throughput_rps * factor}
        return record.model_copy(update={"load": load.model_copy(update=update)})

    return replace(run, records=[drift(record) for record in run.records])


def test_a_variant_that_rises_over_the_round_is_warmed_up_longer() -> None:
    adjustment = due(drifting(0.1))
    assert adjustment
    assert (adjustment.rule, adjustment.variant, adjustment.again) == ("trend", "nginx", True)
    assert adjustment.settings
    assert adjustment.settings.warmup_s["nginx"] > 1
    assert adjustment.settings.warmup_s["apache"] == 1


def test_what_writes_is_not_warmed_up_longer_where_it_falls() -> None:
    """More load before what counts would write more."""
    run = drifting(-0.1)
    given = run.head.experiment.model_dump(exclude={"load": {"paths"}})
    given["requests"] = [{"path": "/notes", "method": "POST"}]
    experiment = type(run.head.experiment).model_validate(given)
    assert due(run)
    assert due(replace(run, head=run.head.replace(experiment=experiment))) is None


def test_rounds_are_not_given_up_where_no_more_would_fit() -> None:
    assert due(drifting(0.1), used_s=BUDGET_S - 5) is None


def test_a_warm_up_of_the_users_choice_stays_as_it_is() -> None:
    assert due(drifting(0.1, Measure(seed=1, warmup_s=1, budget_s=BUDGET_S))) is None


def test_a_percentile_gets_the_answers_that_it_needs() -> None:
    run = measured(Measure(seed=1, decide_on="latency_p99_us"))
    load = slot_of(run, "apache").load
    few = load.requests.model_copy(update={"completed": 40})
    times = Times(histogram="aGRy")
    adjustment = due(planted(run, "apache", requests=few, latency_us=times))
    assert adjustment
    assert (adjustment.rule, adjustment.again) == ("few-samples", True)
    assert adjustment.settings
    assert adjustment.settings.slots_per_variant == 8


def with_left_over(cpu_s: float, rounds: int = 4) -> SimulatedRun:
    """Nginx goes on working while apache is loaded."""
    run = measured(rounds=rounds)

    def work(record: Record) -> Record:
        if not isinstance(record, SlotRecord) or record.variant != "apache":
            return record
        return readings_with(other_variants_cpu_s={"nginx": cpu_s})(record)

    return replace(run, records=[work(record) for record in run.records])


@pytest.mark.parametrize(("share", "again"), [(0.3, True), (0.05, False)])
def test_what_is_left_of_a_load_is_waited_for(share: float, again: bool) -> None:
    adjustment = due(with_left_over(share))
    assert adjustment
    assert (adjustment.rule, adjustment.variant, adjustment.again) == (
        "left-over-work",
        "apache",
        again,
    )
    assert adjustment.settings
    assert adjustment.settings.rest_s > 0
    assert due(with_left_over(0.001)) is None


def test_what_is_left_though_it_was_waited_for_is_not_waited_for_twice() -> None:
    """A limit of time may have shortened the waits."""
    run = with_left_over(0.05)
    adjustment = due(run)
    assert adjustment
    assert adjustment.settings
    shorter = adjustment.replace(settings=adjustment.settings.replace(rest_s=0.5))
    assert due(replace(run, records=[*run.records, shorter])) is None


def test_a_trend_of_slots_with_interference_is_the_neighbours() -> None:
    run = drifting(0.1)
    assert due(run)
    stolen_from = readings_with(host={"servers": {"steal_s": 0.1}})
    interfered = [stolen_from(it) if isinstance(it, SlotRecord) else it for it in run.records]
    assert due(replace(run, records=interfered)) is None


def climbing(windows: float, noise: float, throughput_rps: float, sd: float = 0.01) -> SimulatedRun:
    """Thirteen rounds; one variant's throughput climbs in each slot, in some more than others."""
    run = simulated_run(
        {"nginx": SimulatedVariant(), "apache": SimulatedVariant(throughput_rps=throughput_rps)},
        rounds=13,
        measure=Measure(seed=1),
        slot_sd=sd,
    )
    return with_rises(run, [windows + noise * (this_round % 3 - 1) for this_round in range(1, 14)])


def with_rises(run: SimulatedRun, rises: Sequence[float]) -> SimulatedRun:
    """The same run; apache's throughput rises so much from a round's first third to its last."""

    def change(record: Record) -> Record:
        if not isinstance(record, SlotRecord) or record.variant != "apache":
            return record
        rise = rises[record.round - 1]
        thirds = [
            Window(at_s=at * 0.2, length_s=0.2, completed=round(6_800 * exp(at * rise / 2)))
            for at in range(3)
        ]
        load = record.load.model_copy(update={"windows": thirds})
        return record.model_copy(update={"load": load})

    return replace(run, records=[change(record) for record in run.records])


def test_two_rounds_that_happen_to_rise_alike_are_not_given_up() -> None:
    """As those of a run of Apache's event MPM, whose throughput swings, in 1 of 20 runs."""
    assert due(with_rises(measured(rounds=2), [0.1305, 0.132])) is None
    risen = due(with_rises(measured(rounds=4), [0.13, 0.132, 0.129, 0.131]))
    assert risen is not None
    assert risen.rule == "slot-trend"


def test_rounds_are_not_given_up_for_a_trend_that_is_small_next_to_the_ratio() -> None:
    """The bound of a rise of 20% takes no verdict away from servers that are 6.7× apart."""
    rises = [0.18, 0.182, 0.179, 0.181]
    far_apart = VARIANTS | {"apache": SimulatedVariant("apache-event", throughput_rps=6_000)}
    measure = Measure(seed=1, budget_s=BUDGET_S)
    run = simulated_run(far_apart, rounds=4, measure=measure, slot_sd=0.001)
    assert due(with_rises(run, rises)) is None
    assert due(with_rises(measured(), rises)) is not None


def test_a_late_trend_is_adjusted_where_its_bound_takes_the_verdict_away() -> None:
    adjustment = due(climbing(0.09, 0.08, throughput_rps=34_000))
    assert adjustment is not None
    assert (adjustment.rule, adjustment.variant, adjustment.again) == ("slot-trend", "apache", True)
    assert adjustment.settings
    assert adjustment.settings.ramp_up_s["apache"] > 0


def test_a_late_trend_is_left_to_its_bound_where_as_many_rounds_would_not_fit() -> None:
    run = climbing(0.09, 0.08, throughput_rps=34_000)
    had = run.data
    needed_s = had.round_s * len(had.rounds)
    measure = run.head.experiment.measure
    assert len(had.rounds) > measure.min_rounds
    patience_s = measure.budget_s * measure.patience
    assert due(run, used_s=patience_s - needed_s - 1) is not None
    assert due(run, used_s=patience_s - needed_s + 1) is None


def test_a_late_trend_that_takes_no_verdict_away_is_left_to_its_bound() -> None:
    assert due(climbing(0.09, 0.08, throughput_rps=10_000)) is None


def test_a_late_trend_is_adjusted_where_its_bound_takes_away_what_is_excluded() -> None:
    """Equal servers: without the bound no more than 5% was possible, with it 38%."""
    run = climbing(0.09, 0.08, throughput_rps=40_000, sd=0.02)
    found = judge(run.data).comparisons[0]
    assert found.sampling_verdict is found.verdict is Verdict.INCONCLUSIVE
    adjustment = due(run)
    assert adjustment is not None
    assert adjustment.rule == "slot-trend"


def test_a_rule_is_adjusted_twice_at_most() -> None:
    run = silent(measured(rounds=1))
    records = list(run.records)
    lengths = []
    while adjustment := due_adjustment(point_data(records, run.head.experiment), 0.0):
        assert adjustment.settings
        lengths.append(adjustment.settings.window_s)
        records += [adjustment, *run.records]
    assert lengths == [2, 8]
    assert slot_settings(point_data(records, run.head.experiment)).window_s == 8


def test_rounds_from_before_a_new_beginning_do_not_count() -> None:
    run = silent(measured(rounds=1))
    adjustment = due(run)
    assert adjustment
    assert not run.data.and_then(adjustment).rounds
    kept = adjustment.model_copy(update={"again": False})
    assert len(run.data.and_then(kept).rounds) == 1


def test_an_adjustment_that_is_no_setting_leaves_settings_alone() -> None:
    port = AdjustmentRecord(round=0, rule="port-taken", variant="nginx", what="moved")
    experiment = measured().head.experiment
    assert slot_settings(point_data([*PILOTS, port], experiment)) == slot_settings(
        point_data(PILOTS, experiment)
    )


def test_the_share_of_time_that_counts() -> None:
    run = measured(rounds=2)
    rounds_s = 2 * (2 * 1.02 + 8 * 0.52 + 0.4)
    assert counting_share([run.data]) == pytest.approx(8 / rounds_s)
    assert counting_share([point_data([*PILOTS, *run.records])]) == pytest.approx(
        8 / (rounds_s + 6)
    )
    assert counting_share([]) is None
