"""Who is in the next round."""

import pytest

from builders import SimulatedRun, SimulatedVariant, point_data, simulated_run
from webdyno.comparison import decide, next_variants, question_of
from webdyno.core.records import IncidentRecord, Record
from webdyno.core.run import RunHead
from webdyno.questions.tune.decide import gains_on_baseline
from webdyno.questions.tune.settings import HalvingSettings

RATES = {"default": 10.0, "a": 5.0, "b": 20.0, "c": 40.0, "d": 10.0, "e": 15.0}


def halving(rounds: int) -> SimulatedRun:
    variants = {name: SimulatedVariant(throughput_rps=1_000 * rate) for name, rate in RATES.items()}
    run = simulated_run(variants, rounds=rounds)
    return run.asking(HalvingSettings())


def racing(head: RunHead, records: list[Record]) -> set[str]:
    return set(next_variants(point_data(records, head.experiment)))


@pytest.mark.parametrize(
    ("rounds", "left"),
    [
        (0, set(RATES)),
        (1, {"default", "b", "c", "e"}),
        (2, {"default", "b", "c"}),
        (3, {"default", "c"}),
    ],
)
def test_the_worse_half_goes_after_each_round(rounds: int, left: set[str]) -> None:
    run = halving(rounds)
    assert racing(run.head, run.records) == left


def test_the_race_is_over_when_one_is_left_next_to_the_baseline() -> None:
    two, three = halving(2), halving(3)
    assert decide(two.data, 1.0) is None
    stop = decide(three.data, 1.0)
    assert stop
    assert stop.reason == "precision"
    assert question_of(two.head.experiment).fewest_rounds == 1


def test_a_variant_that_failed_is_out_at_once() -> None:
    run = halving(0)
    died = IncidentRecord(round=1, variant="c", happened_at=run.head.started_at, what="c died")
    assert racing(run.head, [*run.records, died]) == set(RATES) - {"c"}


def test_without_a_race_all_variants_are_in_each_round() -> None:
    run = simulated_run(
        {"a": SimulatedVariant(), "b": SimulatedVariant(throughput_rps=1e5)}, rounds=12
    )
    assert next_variants(run.data) == ["a", "b"]


def test_gains_are_reported_round_by_round_against_the_baseline() -> None:
    run = halving(3)
    gains = gains_on_baseline(run.data)
    assert {variant: len(it) for variant, it in gains.items()} == dict.fromkeys("abcde", 3)
    assert gains["c"] == pytest.approx([1.386] * 3, abs=0.1)
    cheaper = run.head.experiment.measure.model_copy(update={"decide_on": "server_cpu_us"})
    by_cpu = run.head.experiment.model_copy(update={"measure": cheaper})
    gains = gains_on_baseline(point_data(run.records, by_cpu))
    assert gains["c"] == pytest.approx([0.0] * 3, abs=0.1)
