"""When a run stops."""

from dataclasses import replace

import pytest

from builders import SimulatedArm, SimulatedRun, simulated_run
from webdyno.judge import Stop, decide
from webdyno.model.experiment import Measure

EQUAL = {"nginx": SimulatedArm(), "apache": SimulatedArm()}
APART = {"nginx": SimulatedArm(), "apache": SimulatedArm(rate_rps=10_000)}


def run(
    arms: dict[str, SimulatedArm], blocks: int, noise: float, measure: Measure | None = None
) -> SimulatedRun:
    """A run with the same noise of restarts and slots."""
    return simulated_run(arms, blocks=blocks, restart_sd=noise, slot_sd=noise, measure=measure)


def stop(made: SimulatedRun, elapsed_s: float = 10.0) -> Stop | None:
    """What the rule says."""
    return decide(made.records, made.head.experiment, elapsed_s)


def reason(found: Stop | None) -> str | None:
    """The reason as a word."""
    return found.reason if found else None


def test_before_any_block_it_goes_on() -> None:
    assert stop(run(EQUAL, 0, 0.001), elapsed_s=1_000) is None


@pytest.mark.parametrize("blocks", [1, 5])
def test_never_before_the_fewest_blocks_even_out_of_budget(blocks: int) -> None:
    assert stop(run(EQUAL, blocks, 0.001), elapsed_s=1_000) is None


def test_a_narrow_interval_stops() -> None:
    assert reason(stop(run(EQUAL, 6, 0.002))) == "precision"


def test_a_large_difference_needs_not_be_known_as_well() -> None:
    made = run(APART, 6, 0.03)
    found = stop(made)
    assert found is not None
    assert found.why == "the ratio is known to a tenth of the difference, in logarithms"
    assert stop(run(EQUAL, 6, 0.03)) is None


def test_a_clear_difference_that_is_not_known_well_goes_on() -> None:
    assert stop(run(APART, 8, 0.1)) is None


def test_the_most_blocks_stop() -> None:
    measure = Measure(max_blocks=8, budget_s=1_000)
    assert reason(stop(run(APART, 8, 0.1, measure))) == "max-blocks"


def test_a_block_that_would_not_fit_into_the_budget_is_not_begun() -> None:
    made = run(APART, 8, 0.1, Measure(budget_s=60))
    assert stop(made, elapsed_s=50) is None
    assert reason(stop(made, elapsed_s=55)) == "budget"


def spoilt(made: SimulatedRun, block: int) -> SimulatedRun:
    """The same run, in whose block one arm answered with errors."""
    broken = EQUAL | {"apache": SimulatedArm(wrong_status=404)}
    wrong = run(broken, block + 1, 0.01).records
    right = [record for record in made.records if record.block != block]
    return replace(made, records=[*right, *(record for record in wrong if record.block == block)])


def test_a_spoilt_block_is_replaced_even_beyond_the_budget() -> None:
    six, seven = (spoilt(run(EQUAL, blocks, 0.03), block=2) for blocks in (6, 7))
    assert stop(six, elapsed_s=1_000) is None
    assert reason(stop(seven, elapsed_s=1_000)) == "budget"


def test_only_so_many_blocks_are_replaced() -> None:
    seven, eight = (run(EQUAL, blocks, 0.03) for blocks in (7, 8))
    for block in (1, 2, 3):
        seven, eight = (spoilt(made, block) for made in (seven, eight))
    assert stop(seven, elapsed_s=1_000) is None
    assert reason(stop(eight, elapsed_s=1_000)) == "budget"


def test_three_arms_must_all_be_known() -> None:
    noisy = {"a": SimulatedArm(), "b": SimulatedArm(), "c": SimulatedArm()}
    assert stop(run(noisy, 6, 0.001)) is None
    assert reason(stop(run(noisy, 7, 0.001))) == "precision"


def test_an_arm_that_never_works_ends_the_run() -> None:
    broken = {"nginx": SimulatedArm(), "apache": SimulatedArm(wrong_status=404)}
    assert stop(run(broken, 1, 0.01)) is None
    found = stop(run(broken, 2, 0.01))
    assert found is not None
    assert found.reason == "nothing-valid"
    assert "apache" in found.why


def test_the_deciding_metric_decides_when_to_stop() -> None:
    client_bound = {"nginx": SimulatedArm(busy=0.99), "apache": SimulatedArm()}
    by_times = Measure(decide_on="response_p50_us")
    assert reason(stop(run(client_bound, 6, 0.001, by_times))) == "nothing-valid"
    by_cpu = Measure(decide_on="server_cpu_us")
    assert reason(stop(run(client_bound, 6, 0.001, by_cpu))) == "precision"
