"""Variants that differ from start to start."""

from random import Random

from builders import SimulatedRun, simulated_run
from validity.broken import VARIANTS
from webdyno.core.metrics import CPU_TIME, METRICS
from webdyno.core.records import SlotRecord
from webdyno.validity import warnings_of
from webdyno.validity.starts import starts_that_differ

RULE = METRICS[CPU_TIME]


def bimodal(seed: int, rounds: int = 12, factor: float = 1.3) -> SimulatedRun:
    """Each start of nginx draws whether its requests cost so many times as much."""
    run = simulated_run(VARIANTS, rounds=rounds, restart_sd=0.005, slot_sd=0.01, seed=seed)
    random = Random(seed)
    dear = {round_number: random.random() < 0.5 for round_number in range(rounds)}
    for n, it in enumerate(run.records):
        if isinstance(it, SlotRecord) and it.variant == "nginx" and dear[it.round]:
            use = it.servers.model_copy(update={"cpu_user_s": it.servers.cpu_user_s * factor})
            use = use.model_copy(update={"cpu_sys_s": use.cpu_sys_s * factor})
            run.records[n] = it.model_copy(update={"servers": use})
    return run


def test_two_states_of_starts_are_reported() -> None:
    reported = 0
    for seed in range(20):
        found = starts_that_differ(bimodal(seed).data, "nginx", RULE)
        reported += found is not None and found.states is not None
        if found and found.states:
            assert abs(found.states[1] / found.states[0] - 1.3) < 0.03
    assert reported >= 18


def test_ordinary_noise_is_not_taken_for_starts_that_differ() -> None:
    for seed in range(20):
        run = simulated_run(VARIANTS, rounds=12, restart_sd=0.02, slot_sd=0.02, seed=seed)
        assert starts_that_differ(run.data, "nginx", RULE) is None


def test_the_warning_names_both_states_and_helps() -> None:
    run = bimodal(3)
    (found,) = (it for it in warnings_of(run.data) if it.rule == "starts-differ")
    assert found.variant == "nginx"
    assert "two states, 1.00 and 1.3" in found.what
    assert "More starts help" in found.fix


def test_what_weighs_on_all_variants_of_a_round_is_the_machines() -> None:
    run = bimodal(3)
    dear = {it.round for it in run.records if isinstance(it, SlotRecord) and it.variant == "nginx"}
    for n, it in enumerate(run.records):
        if isinstance(it, SlotRecord):
            factor = 1.3 if it.round % 2 and it.round in dear else 1.0
            use = it.servers.model_copy(
                update={"cpu_user_s": factor * 0.01, "cpu_sys_s": factor * 0.02}
            )
            run.records[n] = it.model_copy(update={"servers": use})
    assert starts_that_differ(run.data, "nginx", RULE) is None
