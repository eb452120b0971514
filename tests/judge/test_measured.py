"""Which of a run's records count."""

from builders import SimulatedArm, simulated_run
from webdyno.judge.point_data import PointData
from webdyno.model.records import BlockRecord, SlotRecord

RUN = simulated_run({"nginx": SimulatedArm(), "apache": SimulatedArm()}, blocks=2)


def test_warmups_do_not_count() -> None:
    evidence = RUN.data
    assert len(evidence.blocks) == 2
    assert all(slot.phase == "measure" for slot in evidence.slots)
    assert [slot.arm for slot in evidence.blocks[0].slots] == evidence.blocks[0].record.order
    assert len(evidence.blocks[0].of("nginx")) == 4


def test_an_unfinished_block_does_not_count() -> None:
    assert isinstance(RUN.records[-1], BlockRecord)
    assert len(PointData.of(RUN.head, RUN.records[:-1]).blocks) == 1


def test_a_block_begun_again_counts_from_its_second_beginning() -> None:
    ends = [i for i, record in enumerate(RUN.records) if isinstance(record, BlockRecord)]
    first, second = RUN.records[: ends[0] + 1], RUN.records[ends[0] + 1 :]
    torn = [record for record in second if isinstance(record, SlotRecord)][:5]
    again = PointData.of(RUN.head, [*first, *torn, *second])
    assert again.blocks == RUN.data.blocks


def test_slots_can_be_left_out() -> None:
    evidence = RUN.data
    gone = evidence.blocks[0].slots[0]
    left = evidence.without([(gone.block, gone.slot)])
    assert len(left.slots) == len(evidence.slots) - 1
    assert gone not in left.slots
