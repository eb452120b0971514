"""How many slots a block gets."""

import pytest

from builders import SimulatedArm, SimulatedRun, simulated_run
from webdyno.judge.variance import MOST_SLOTS, PILOT_BLOCKS, slots_per_arm
from webdyno.model.experiment import FIRST_SLOTS, Measure
from webdyno.model.records import BlockRecord, Record

ARMS = {"a": SimulatedArm(), "b": SimulatedArm(rate_rps=50_000), "c": SimulatedArm()}
DEAR_STARTS = Measure(warmup_s=20.0, seed=1)


def blocks(run: SimulatedRun, count: int) -> list[Record]:
    """The records up to the end of so many blocks, and the beginning of the next one."""
    ends = [number for number, it in enumerate(run.records) if isinstance(it, BlockRecord)]
    return run.records[: ends[count - 1] + 5]


@pytest.mark.parametrize(
    ("restart_sd", "slot_sd", "slots"), [(0.05, 0.01, FIRST_SLOTS), (0.001, 0.05, MOST_SLOTS)]
)
def test_noisy_slots_get_more_of_them(restart_sd: float, slot_sd: float, slots: int) -> None:
    run = simulated_run(
        ARMS, blocks=8, measure=DEAR_STARTS, restart_sd=restart_sd, slot_sd=slot_sd, seed=3
    )
    assert slots_per_arm(run.records, run.head.experiment) == slots


def test_the_first_blocks_alone_decide() -> None:
    """So that a run that is resumed, and every later block, chooses alike."""
    run = simulated_run(
        ARMS, blocks=12, measure=DEAR_STARTS, restart_sd=0.001, slot_sd=0.05, seed=3
    )
    chosen = [slots_per_arm(blocks(run, count), run.head.experiment) for count in range(1, 12)]
    before = PILOT_BLOCKS - 1
    assert chosen == [FIRST_SLOTS] * before + [MOST_SLOTS] * (11 - before)


def test_a_number_that_was_asked_for_stays() -> None:
    measure = Measure(slots_per_arm=2, seed=1)
    run = simulated_run(ARMS, measure=measure, restart_sd=0.001, slot_sd=0.05)
    assert slots_per_arm(run.records, run.head.experiment) == 2


def test_the_difference_of_the_arms_has_no_part_in_it() -> None:
    """Else intervals would lean."""
    fast = ARMS | {"b": SimulatedArm(rate_rps=160_000)}
    runs = [simulated_run(arms, restart_sd=0.01, slot_sd=0.04, seed=5) for arms in (ARMS, fast)]
    first, second = (slots_per_arm(run.records, run.head.experiment) for run in runs)
    assert first == second


def test_without_a_valid_slot_nothing_is_chosen() -> None:
    broken = {name: SimulatedArm(wrong_status=500) for name in ARMS}
    run = simulated_run(broken)
    assert slots_per_arm(run.records, run.head.experiment) == FIRST_SLOTS
