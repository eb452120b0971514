"""Which of a point's records count, and that what is derived of them is derived once."""

from builders import SimulatedVariant, simulated_run
from webdyno.core.records import Record, RoundRecord, SlotRecord
from webdyno.evidence.point_data import PointData, compute_once
from webdyno.validity import excluded_slots

RUN = simulated_run({"nginx": SimulatedVariant(), "apache": SimulatedVariant()}, rounds=2)


def test_warmups_do_not_count() -> None:
    evidence = RUN.data
    assert len(evidence.rounds) == 2
    assert all(slot.phase == "measure" for slot in evidence.slots)
    assert [slot.variant for slot in evidence.rounds[0].slots] == evidence.rounds[0].record.order
    assert len(evidence.rounds[0].of("nginx")) == 4


def test_an_unfinished_round_does_not_count() -> None:
    assert isinstance(RUN.records[-1], RoundRecord)
    assert len(PointData.of(RUN.head, RUN.records[:-1]).rounds) == 1


def test_a_round_begun_again_counts_from_its_second_beginning() -> None:
    ends = [i for i, record in enumerate(RUN.records) if isinstance(record, RoundRecord)]
    first, second = RUN.records[: ends[0] + 1], RUN.records[ends[0] + 1 :]
    torn = [record for record in second if isinstance(record, SlotRecord)][:5]
    again = PointData.of(RUN.head, [*first, *torn, *second])
    assert again.rounds == RUN.data.rounds


def test_a_wake_up_has_the_position_of_its_slot_and_does_not_count() -> None:
    woken = list[Record]()
    for record in RUN.records:
        if isinstance(record, SlotRecord) and record.phase == "measure":
            woken.append(record.replace(phase="wake-up"))
        woken.append(record)
    assert PointData.of(RUN.head, woken).rounds == RUN.data.rounds
    torn = [record for record in woken if isinstance(record, SlotRecord)][:5]
    assert PointData.of(RUN.head, [*torn, *woken]).rounds == RUN.data.rounds


def test_slots_can_be_excluded() -> None:
    evidence = RUN.data
    gone = evidence.rounds[0].slots[0]
    left = evidence.without([(gone.round, gone.slot)])
    assert len(left.slots) == len(evidence.slots) - 1
    assert gone not in left.slots


def test_what_is_derived_is_computed_once() -> None:
    asked = []

    @compute_once
    def slots(data: PointData, least: int) -> int:
        asked.append(least)
        return max(len(data.slots), least)

    data = RUN.data
    assert [slots(data, 0), slots(data, 0), slots(data, 99)] == [16, 16, 99]
    assert slots(data.first(1), 0) == 8
    assert asked == [0, 99, 0]


def test_one_more_slot_changes_nothing_until_its_round_has_ended() -> None:
    *before, last = RUN.records
    data = PointData.of(RUN.head, before[:-1])
    excluded = excluded_slots(data)
    more = data.and_then(before[-1])
    assert excluded_slots(more) is excluded
    ended = more.and_then(last)
    assert ended.rounds == RUN.data.rounds
    assert excluded_slots(ended) is not excluded


def test_other_variants_are_another_question_about_the_same_slots() -> None:
    turned = RUN.data.among(["apache", "nginx"])
    assert list(turned.experiment.variants) == ["apache", "nginx"]
    assert turned.slots == RUN.data.slots
    assert turned.among(["apache", "nginx"]) is turned
