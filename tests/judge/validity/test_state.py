"""Whether it is told that what a database holds grew from slot to slot, with what that costs."""

import pytest

from judge.validity.broken import found_in, quiet_readings, run_with
from webdyno.model.readings import DatabaseUse
from webdyno.model.records import SlotRecord


def growing(bytes_per_slot: int, slower_per_slot: float, rows: int = 400) -> dict[str, str]:
    """Give what is told of a variant whose database grows so in each slot."""

    def change(slot: SlotRecord) -> SlotRecord:
        before = 100_000 + bytes_per_slot * slot.slot
        use = DatabaseUse(
            calls=100,
            rows_written=rows,
            bytes_before=before,
            bytes_after=before + bytes_per_slot,
            grown={"note": bytes_per_slot, "log": 1},
        )
        readings = quiet_readings(slot).model_copy(update={"databases": {"db": use}})
        completed = round(20_000 * (1 - slower_per_slot * slot.slot + 0.001 * (slot.round % 3)))
        requests = slot.load.requests.model_copy(update={"completed": completed})
        load = slot.load.model_copy(update={"requests": requests})
        return slot.model_copy(update={"readings": readings, "load": load})

    warnings = found_in(run_with(change))
    return {it: warnings[it].what for it in ("state-grows", "trend") if it in warnings}


def test_a_table_that_grows_and_slows_is_told_with_its_remedy() -> None:
    told = growing(20_000, 0.03)
    assert set(told) == {"state-grows"}
    assert "(400 rows written in a slot, most of it in note)" in told["state-grows"]
    assert ", and its throughput falls by " in told["state-grows"]


@pytest.mark.parametrize("bytes_per_slot", [0, 100])
def test_what_hardly_grows_explains_no_trend(bytes_per_slot: int) -> None:
    assert set(growing(bytes_per_slot, 0.03)) == {"trend"}


def test_what_grows_and_costs_the_same_is_not_worth_a_word() -> None:
    assert growing(20_000, 0.0) == {}
