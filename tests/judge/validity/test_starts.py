"""Starts that differ, with slots that don't: told, and told apart from noise."""

from random import Random

from builders import SimulatedArm, SimulatedRun, simulated_run
from webdyno.judge.validity import findings_of
from webdyno.judge.validity.starts import starts_that_differ
from webdyno.model.metrics import CPU_TIME, metric_rule
from webdyno.model.records import SlotRecord

ARMS = {"nginx": SimulatedArm(), "apache": SimulatedArm()}
RULE = metric_rule(CPU_TIME)


def bimodal(seed: int, blocks: int = 12, factor: float = 1.3) -> SimulatedRun:
    """Each start of nginx draws whether its requests cost so many times as much."""
    run = simulated_run(ARMS, blocks=blocks, restart_sd=0.005, slot_sd=0.01, seed=seed)
    random = Random(seed)
    dear = {block: random.random() < 0.5 for block in range(blocks)}
    for n, it in enumerate(run.records):
        if isinstance(it, SlotRecord) and it.arm == "nginx" and dear[it.block]:
            use = it.servers.model_copy(update={"cpu_user_s": it.servers.cpu_user_s * factor})
            use = use.model_copy(update={"cpu_sys_s": use.cpu_sys_s * factor})
            run.records[n] = it.model_copy(update={"servers": use})
    return run


def test_two_states_of_starts_are_told() -> None:
    told = 0
    for seed in range(20):
        found = starts_that_differ(bimodal(seed).data, "nginx", RULE)
        told += found is not None and found.states is not None
        if found and found.states:
            assert abs(found.states[1] / found.states[0] - 1.3) < 0.03
    assert told >= 18


def test_ordinary_noise_is_not_taken_for_starts_that_differ() -> None:
    for seed in range(20):
        run = simulated_run(ARMS, blocks=12, restart_sd=0.02, slot_sd=0.02, seed=seed)
        assert starts_that_differ(run.data, "nginx", RULE) is None


def test_the_finding_names_both_states_and_helps() -> None:
    run = bimodal(3)
    (found,) = (it for it in findings_of(run.data) if it.rule == "starts-differ")
    assert found.arm == "nginx"
    assert "two states, 1.00 and 1.3" in found.what
    assert "More starts help" in found.remedy


def test_what_weighs_on_all_arms_of_a_block_is_the_machines() -> None:
    run = bimodal(3)
    dear = {it.block for it in run.records if isinstance(it, SlotRecord) and it.arm == "nginx"}
    for n, it in enumerate(run.records):
        if isinstance(it, SlotRecord):
            factor = 1.3 if it.block % 2 and it.block in dear else 1.0
            use = it.servers.model_copy(
                update={"cpu_user_s": factor * 0.01, "cpu_sys_s": factor * 0.02}
            )
            run.records[n] = it.model_copy(update={"servers": use})
    assert starts_that_differ(run.data, "nginx", RULE) is None
