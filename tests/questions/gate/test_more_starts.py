"""Gates of servers whose starts differ spend their time on starts; others go on as before."""

from random import Random

from builders import START, SimulatedRun, SimulatedVariant, point_data, simulated_run
from webdyno.comparison import decide, question_of
from webdyno.core.limits import BASELINE, BASELINE_AGAIN, HEAD
from webdyno.core.measure import Measure
from webdyno.core.records import SlotRecord, StopRecord
from webdyno.measure.long_look import lacking_looks
from webdyno.planning.settings import slot_settings, slots_per_variant
from webdyno.questions.compare.settings import CompareSettings
from webdyno.questions.gate.decide import WINDOW_S, short_window_s
from webdyno.questions.gate.settings import GateSettings

VARIANTS = {
    BASELINE: SimulatedVariant(),
    BASELINE_AGAIN: SimulatedVariant(),
    HEAD: SimulatedVariant(),
}
MEASURE = Measure(seed=1, decide_on="server_cpu_us", budget_s=3600.0)


def gate_run(
    factor: float, *, rounds: int = 8, measure: Measure = MEASURE, seed: int = 1
) -> SimulatedRun:
    """Each start draws whether its requests cost so many times as much."""
    run = simulated_run(
        VARIANTS, rounds=rounds, measure=measure, restart_sd=0.004, slot_sd=0.006, seed=seed
    )
    random = Random(seed)
    dear = {(n, variant): random.random() < 0.5 for n in range(rounds) for variant in VARIANTS}
    for n, it in enumerate(run.records):
        if isinstance(it, SlotRecord) and dear[it.round, it.variant]:
            use = it.servers
            more = {
                "cpu_user_s": use.cpu_user_s * factor,
                "cpu_sys_s": use.cpu_sys_s * factor,
            }
            run.records[n] = it.model_copy(update={"servers": use.model_copy(update=more)})
    return run.asking(GateSettings())


def most(run: SimulatedRun) -> int:
    return question_of(run.head.experiment).most_rounds(run.data)


def test_more_rounds_are_planned_where_starts_decide() -> None:
    assert most(gate_run(1.12)) == 60
    assert most(gate_run(1.0)) == 30
    assert most(gate_run(1.12, rounds=5)) == 30


def test_the_most_rounds_that_the_user_gives_are_kept() -> None:
    assert most(gate_run(1.12, measure=MEASURE.model_copy(update={"max_rounds": 12}))) == 12


def test_runs_that_are_no_gates_go_on_as_before() -> None:
    run = gate_run(1.12)
    alone = run.head.experiment.replace(asks=CompareSettings())
    assert question_of(alone).most_rounds(point_data(run.records, alone)) == 30
    assert slot_settings(point_data(run.records, alone)).window_s == 0.5


def test_slots_are_short_and_few_once_starts_are_known_to_decide() -> None:
    run = gate_run(1.12)
    assert slot_settings(run.data).window_s == WINDOW_S
    assert slots_per_variant(run.data) == 2
    steady = gate_run(1.0)
    assert slot_settings(steady.data).window_s == 0.5


def test_short_slots_have_answers_enough() -> None:
    slow = {name: SimulatedVariant(throughput_rps=500) for name in VARIANTS}
    measured = simulated_run(slow, rounds=6).data
    assert WINDOW_S < short_window_s(0.5, measured) <= 0.5


def test_a_gate_goes_on_beyond_the_usual_rounds_for_its_starts() -> None:
    """Thirty rounds that don't answer it: 40% apart."""
    run = gate_run(1.4, rounds=30, seed=4)
    assert decide(run.data, elapsed_s=0.0) is None
    found = question_of(run.head.experiment).judge_all_points(run.whole)
    assert found
    notes = [it for it in found.notes if "its starts is in one of two states, 1.00 and 1.4" in it]
    assert notes
    assert all("More starts help, longer slots don't" in it for it in notes)


def test_gates_have_no_long_look_and_nothing_is_reserved_for_one() -> None:
    """Whatever budget they have: they stop at the moments of before there were long looks."""
    for budget_s in (60.0, 600.0, 3600.0):
        measure = Measure(seed=1, decide_on="server_cpu_us", budget_s=budget_s)
        run = gate_run(1.0, measure=measure)
        experiment = run.head.experiment
        question = question_of(experiment)
        assert question.long_look_s == 0.0
        assert question.reserved_s(point_data(run.records, experiment)) == 0.0
        stop = StopRecord(round=7, reason="question", why="it is answered", stopped_at=START)
        assert not lacking_looks(point_data([*run.records, stop], experiment))


def test_a_gates_budget_is_used_up_to_the_last_round_that_fits() -> None:
    measure = Measure(seed=1, decide_on="server_cpu_us", budget_s=100.0)
    run = gate_run(1.12, measure=measure)
    round_s = run.data.round_s
    assert decide(run.data, elapsed_s=100.0 - round_s - 0.1) is None
    stop = decide(run.data, elapsed_s=100.0 - round_s + 0.1)
    assert stop
    assert stop.reason == "budget"
