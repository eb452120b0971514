"""When a run stops."""

from dataclasses import replace

import pytest

from builders import SimulatedRun, SimulatedVariant, point_data, simulated_run
from validity.broken import readings_with
from webdyno.comparison import Stop, decide, next_variants
from webdyno.comparison.stop import OUTNUMBERED, seconds_for_a_variant
from webdyno.core.experiment import Experiment
from webdyno.core.findings import Advice
from webdyno.core.measure import Measure
from webdyno.core.records import SlotRecord
from webdyno.questions.compare.settings import OneSidedSettings
from webdyno.questions.explain.settings import AdviceSettings

EQUAL = {"nginx": SimulatedVariant(), "apache": SimulatedVariant()}
APART = {"nginx": SimulatedVariant(), "apache": SimulatedVariant(throughput_rps=10_000)}
LESS_APART = {"nginx": SimulatedVariant(), "apache": SimulatedVariant(throughput_rps=30_000)}


def run(
    variants: dict[str, SimulatedVariant], rounds: int, noise: float, measure: Measure | None = None
) -> SimulatedRun:
    """A run with the same noise of restarts and slots."""
    return simulated_run(variants, rounds=rounds, restart_sd=noise, slot_sd=noise, measure=measure)


def prompt_s(variants: dict[str, SimulatedVariant], within_s: float = 25.0) -> float:
    """Until when rounds may end, for a prompt answer."""
    of_a_variant_s = seconds_for_a_variant(Measure(answer_within_s=within_s))
    assert of_a_variant_s
    return of_a_variant_s * len(variants)


def stop(made: SimulatedRun, elapsed_s: float = 10.0) -> Stop | None:
    """What the rule says."""
    return decide(made.data, elapsed_s)


def reason(found: Stop | None) -> str | None:
    """The reason as a word."""
    return found.reason if found else None


def test_before_any_round_it_goes_on() -> None:
    assert stop(run(EQUAL, 0, 0.001), elapsed_s=1_000) is None


@pytest.mark.parametrize("rounds", [1, 5])
def test_never_before_the_fewest_rounds_even_out_of_budget(rounds: int) -> None:
    assert stop(run(EQUAL, rounds, 0.001), elapsed_s=1_000) is None


def test_a_narrow_interval_stops() -> None:
    assert reason(stop(run(EQUAL, 6, 0.002))) == "precision"


def test_a_large_difference_needs_not_be_known_as_well() -> None:
    made = run(APART, 6, 0.03)
    found = stop(made)
    assert found is not None
    assert found.why == "precise enough for a difference this large"
    assert stop(run(EQUAL, 6, 0.03)) is None


def test_a_clear_difference_that_is_not_known_well_goes_on() -> None:
    assert stop(run(APART, 8, 0.14)) is None


def test_a_large_difference_is_reported_with_the_last_round_that_ends_soon_enough() -> None:
    made = run(APART, 8, 0.14)
    round_s = made.data.round_s
    last_look_s = prompt_s(APART) - 0.9 * round_s
    assert stop(made, last_look_s - 0.2 * round_s) is None
    assert stop(made, last_look_s + round_s) is None
    found = stop(made, last_look_s)
    assert reason(found) == "precision"
    assert found is not None
    assert "the difference is large and clear" in found.why


def test_who_sets_a_budget_has_a_large_difference_measured_well() -> None:
    made = run(APART, 8, 0.14, Measure(budget_s=90.0))
    assert stop(made, prompt_s(APART) - 0.5 * made.data.round_s) is None


@pytest.mark.parametrize(("within_s", "reported"), [(0.0, False), (15.0, False), (25.0, True)])
def test_how_soon_a_large_difference_is_reported_is_a_setting(
    within_s: float, *, reported: bool
) -> None:
    made = run(APART, 8, 0.14, Measure(answer_within_s=within_s))
    usual_s = prompt_s(APART) - 0.5 * made.data.round_s
    assert (stop(made, usual_s) is not None) == reported
    if within_s:
        its_own_s = prompt_s(APART, within_s) - 0.5 * made.data.round_s
        assert stop(made, its_own_s) is not None


@pytest.mark.parametrize(("variants", "noise"), [(APART, 0.4), (LESS_APART, 0.03)])
def test_what_is_less_known_or_less_different_gets_its_rounds(
    variants: dict[str, SimulatedVariant], noise: float
) -> None:
    made = run(variants, 8, noise)
    round_s = made.data.round_s
    assert stop(made, prompt_s(variants) - 0.5 * round_s) is None


def test_the_most_rounds_stop() -> None:
    measure = Measure(max_rounds=8, budget_s=1_000)
    assert reason(stop(run(APART, 8, 0.14, measure))) == "max-rounds"


def test_a_round_that_would_not_fit_into_the_budget_is_not_begun() -> None:
    made = run(APART, 8, 0.14, Measure(budget_s=60, soak_s=0))
    assert stop(made, elapsed_s=50) is None
    assert reason(stop(made, elapsed_s=55)) == "budget"


def test_a_long_look_has_its_share_of_the_budget() -> None:
    made = run(APART, 8, 0.14, Measure(budget_s=60))
    assert stop(made, elapsed_s=35) is None
    assert reason(stop(made, elapsed_s=50)) == "budget"


def test_a_ratio_that_is_too_noisy_gets_more_time() -> None:
    made = run(EQUAL, 12, 0.1)
    assert stop(made, elapsed_s=100) is None
    assert reason(stop(made, elapsed_s=359)) == "budget"
    assert reason(stop(run(EQUAL, 31, 0.3), elapsed_s=50)) is None
    assert reason(stop(run(EQUAL, 120, 0.5), elapsed_s=50)) == "max-rounds"


@pytest.mark.parametrize(("variants", "noise"), [(APART, 0.13), (EQUAL, 0.018)])
def test_what_is_known_to_a_quarter_of_the_difference_or_to_2_5_percent_is_no_longer_hard(
    variants: dict[str, SimulatedVariant], noise: float
) -> None:
    made = run(variants, 12, noise)
    assert stop(made, elapsed_s=50) is None
    assert reason(stop(made, elapsed_s=100)) == "budget"


@pytest.mark.parametrize("given", [{"budget_s": 90.0}, {"max_rounds": 30}])
def test_who_sets_a_limit_has_it_kept(given: dict[str, float]) -> None:
    assert Measure.model_validate(given).patience == 1
    assert Measure.model_validate(given | {"patience": 2.0}).patience == 2
    assert Measure().patience > 1


def invalidated(made: SimulatedRun, round_number: int) -> SimulatedRun:
    """The same run, in whose round one variant answered with errors."""
    broken = EQUAL | {"apache": SimulatedVariant(wrong_status=404)}
    wrong = run(broken, round_number + 1, 0.01).records
    right = [record for record in made.records if record.round != round_number]
    return replace(
        made, records=[*right, *(record for record in wrong if record.round == round_number)]
    )


def test_a_invalidated_round_is_replaced_even_beyond_the_budget() -> None:
    six, seven = (invalidated(run(EQUAL, rounds, 0.03), round_number=2) for rounds in (6, 7))
    assert stop(six, elapsed_s=1_000) is None
    assert reason(stop(seven, elapsed_s=1_000)) == "budget"


def test_only_so_many_rounds_are_replaced() -> None:
    seven, eight = (run(EQUAL, rounds, 0.03) for rounds in (7, 8))
    for round_number in (1, 2, 3):
        seven, eight = (invalidated(made, round_number) for made in (seven, eight))
    assert stop(seven, elapsed_s=1_000) is None
    assert reason(stop(eight, elapsed_s=1_000)) == "budget"


def test_three_variants_must_all_be_known() -> None:
    noisy = {"a": SimulatedVariant(), "b": SimulatedVariant(), "c": SimulatedVariant()}
    assert stop(run(noisy, 6, 0.001)) is None
    assert reason(stop(run(noisy, 7, 0.001))) == "precision"


def test_a_variant_that_never_works_ends_the_run() -> None:
    broken = {"nginx": SimulatedVariant(), "apache": SimulatedVariant(wrong_status=404)}
    assert stop(run(broken, 1, 0.01)) is None
    found = stop(run(broken, 2, 0.01))
    assert found is not None
    assert found.reason == "nothing-valid"
    assert "apache" in found.why


def tried(rounds: int, **variants: SimulatedVariant) -> tuple[SimulatedRun, Experiment]:
    """A run of one variant and others that have another setting each."""
    made = simulated_run(
        {"baseline": SimulatedVariant(), **variants}, rounds=rounds, restart_sd=0.001
    )
    advice = {
        name: Advice(setting=name, now=1, tried=2, says="waits", vendor="https://x.org/")
        for name in variants
    }
    return made, made.head.experiment.replace(asks=AdviceSettings(tried=advice))


def test_a_setting_with_which_nothing_works_does_not_end_the_others_run() -> None:
    fast, broken = SimulatedVariant(throughput_rps=40_000), SimulatedVariant(wrong_status=404)
    made, experiment = tried(2, fast=fast, broken=broken)
    assert next_variants(point_data(made.records, experiment)) == ["baseline", "fast"]
    assert decide(point_data(made.records, experiment), 10.0) is None
    made, experiment = tried(7, fast=fast, broken=broken)
    assert reason(decide(point_data(made.records, experiment), 10.0)) == "precision"
    made, experiment = tried(2, broken=broken)
    found = decide(point_data(made.records, experiment), 10.0)
    assert found
    assert found.why == "nothing works that baseline could be compared with"


def test_the_deciding_metric_decides_when_to_stop() -> None:
    client_bound = {"nginx": SimulatedVariant(busy=0.99), "apache": SimulatedVariant()}
    by_times = Measure(decide_on="latency_p50_us")
    assert reason(stop(run(client_bound, 6, 0.001, by_times))) == "nothing-valid"
    by_cpu = Measure(decide_on="server_cpu_us")
    assert reason(stop(run(client_bound, 6, 0.001, by_cpu))) == "precision"


NEXT_TO = {"nginx": SimulatedVariant(), "apache": SimulatedVariant(throughput_rps=44_000)}
"""A tenth apart."""


def stolen(made: SimulatedRun, steal_s: float, rounds: int = 1_000) -> SimulatedRun:
    """The same run, whose slower variant had so much CPU time taken from it in the first rounds.

    A slot is 0.5 s long, and its servers use 0.4 s of CPU time.
    """
    servers = {"steal_s": steal_s}
    interfered = readings_with(host={"servers": servers})
    quiet = readings_with()
    records = [
        (interfered if it.variant == "nginx" and it.round < rounds else quiet)(it)
        if isinstance(it, SlotRecord)
        else it
        for it in made.records
    ]
    return replace(made, records=records)


def test_a_ratio_that_is_known_but_may_come_from_interference_goes_on() -> None:
    """A tenth, known to 2%, of which up to 8.3% may be interference."""
    made = run(NEXT_TO, 6, 0.009)
    assert reason(stop(stolen(made, 0.0))) == "precision"
    assert stop(stolen(made, 0.04)) is None
    assert stop(stolen(run(NEXT_TO, 11, 0.009), 0.04)) is None, (
        "it looks again at the twelfth round"
    )
    assert reason(stop(stolen(run(NEXT_TO, 12, 0.009), 0.04))) == "precision"


def test_what_more_rounds_can_not_narrow_stops_and_says_so() -> None:
    """Interference as large as the difference; it might have passed by until the twelfth round."""
    most = 6 * OUTNUMBERED
    assert stop(stolen(run(NEXT_TO, most - 1, 0.005), 0.2)) is None
    found = stop(stolen(run(NEXT_TO, most, 0.005), 0.2))
    assert found is not None
    assert found.reason == "bounds"
    assert found.why.startswith(
        "more rounds would not help: looks faster, but interference could explain all of it: "
    )


def test_interference_that_both_had_is_no_reason_to_go_on() -> None:
    """Which slots it hits is chance, as their order is random."""
    made = run(NEXT_TO, 6, 0.005)
    both = readings_with(host={"servers": {"steal_s": 0.2}})
    records = [both(it) if isinstance(it, SlotRecord) else it for it in made.records]
    assert reason(stop(replace(made, records=records))) == "precision"


def test_what_the_client_is_too_slow_for_is_not_waited_for() -> None:
    """More rounds don't show what a variant could do."""
    bound = run(NEXT_TO | {"nginx": SimulatedVariant(busy=0.99)}, 6, 0.005)
    found = stop(bound)
    assert found is not None
    assert found.reason == "bounds"


def test_what_is_known_but_inconclusive_by_the_sampling_ci_stops() -> None:
    """Half a δ apart: no bound has a part in that."""
    near = EQUAL | {"apache": SimulatedVariant(throughput_rps=40_400)}
    assert reason(stop(stolen(run(near, 6, 0.009), 0.002))) == "precision"


def test_a_question_that_is_answered_has_a_reason_of_its_own() -> None:
    asking = OneSidedSettings(claim="faster")
    found = stop(run(NEXT_TO, 6, 0.01).asking(asking))
    assert found == Stop("question", "the question is answered: faster")
    assert stop(run(EQUAL, 6, 0.01).asking(asking)) is None
