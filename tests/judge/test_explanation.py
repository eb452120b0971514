"""Differences of CPU time are taken apart into parts that add up."""

import pytest

from builders import SimulatedArm, SimulatedRun, simulated_run
from webdyno.judge import judge
from webdyno.judge.explanation import explain
from webdyno.model.explanation import Explanation
from webdyno.model.records import ServerUse, SlotRecord
from webdyno.report.explanation import explanation_sentence

ARMS = {"nginx": SimulatedArm(server_cpu_us=10.0), "apache": SimulatedArm(server_cpu_us=40.0)}


def with_interrupts(run: SimulatedRun, arm: str, share: float) -> SimulatedRun:
    """Give interrupts a share of what an arm's servers used."""

    def use(slot: SlotRecord) -> ServerUse:
        return slot.servers.model_copy(update={"interrupts_s": share * slot.servers.cpu_s})

    records = [
        it.model_copy(update={"servers": use(it)})
        if isinstance(it, SlotRecord) and it.arm == arm
        else it
        for it in run.records
    ]
    return SimulatedRun(run.head, records)


def explained(run: SimulatedRun) -> Explanation:
    found = explain(run.data, "apache", "nginx")
    assert found
    return found


def test_parts_add_up_to_the_whole() -> None:
    run = with_interrupts(simulated_run(ARMS), "apache", 0.1)
    found = explained(run)
    assert [it.what for it in found.parts] == ["in the programs", "in the kernel", "in interrupts"]
    for value in ("a_us", "b_us"):
        parts = sum(getattr(it, value) for it in found.parts)
        assert parts == pytest.approx(getattr(found.whole, value))
    difference = sum(it.more_us.estimate for it in found.parts)
    assert difference == pytest.approx(found.whole.more_us.estimate)


def test_each_part_is_found() -> None:
    found = explained(simulated_run(ARMS))
    programs, kernel = found.parts
    assert programs.more_us.low < 10 < programs.more_us.high
    assert kernel.more_us.low < 20 < kernel.more_us.high
    said = explanation_sentence(found)
    assert said
    assert said.startswith("A request costs apache ")
    assert " in the kernel, " in said  # the larger part
    assert said.endswith(" in the programs.")


def test_equals_are_not_explained() -> None:
    alike = {"nginx": SimulatedArm(), "apache": SimulatedArm()}
    sure = [explanation_sentence(explained(simulated_run(alike, seed=seed))) for seed in range(20)]
    assert sum(it is not None for it in sure) <= 4


def test_one_block_explains_nothing() -> None:
    run = simulated_run(ARMS, blocks=1)
    assert explain(run.data, "apache", "nginx") is None


def test_a_judgement_says_what_differences_are_made_of() -> None:
    run = simulated_run(ARMS)
    (found,) = judge(run.data).explanations
    assert (found.a, found.b) == ("apache", "nginx")
