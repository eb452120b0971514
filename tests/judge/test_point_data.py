"""Which of a point's records count, and that what is derived of them is derived once."""

from builders import SimulatedArm, simulated_run
from webdyno.judge.point_data import PointData, derived
from webdyno.judge.validity import excluded_slots
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


def test_slots_can_be_excluded() -> None:
    evidence = RUN.data
    gone = evidence.blocks[0].slots[0]
    left = evidence.without([(gone.block, gone.slot)])
    assert len(left.slots) == len(evidence.slots) - 1
    assert gone not in left.slots


def test_what_is_derived_is_computed_once() -> None:
    asked = []

    @derived
    def slots(data: PointData, least: int) -> int:
        asked.append(least)
        return max(len(data.slots), least)

    data = RUN.data
    assert [slots(data, 0), slots(data, 0), slots(data, 99)] == [16, 16, 99]
    assert slots(data.first(1), 0) == 8
    assert asked == [0, 99, 0]


def test_one_more_slot_changes_nothing_until_its_block_has_ended() -> None:
    *before, last = RUN.records
    data = PointData.of(RUN.head, before[:-1])
    excluded = excluded_slots(data)
    more = data.and_then(before[-1])
    assert excluded_slots(more) is excluded
    ended = more.and_then(last)
    assert ended.blocks == RUN.data.blocks
    assert excluded_slots(ended) is not excluded


def test_other_arms_are_another_question_about_the_same_slots() -> None:
    turned = RUN.data.among(["apache", "nginx"])
    assert list(turned.experiment.arms) == ["apache", "nginx"]
    assert turned.slots == RUN.data.slots
    assert turned.among(["apache", "nginx"]) is turned
