"""Whether it is reported that slots become dearer with what requests write, and what that does."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from validity.broken import found_in, quiet_readings, run_with, with_thirds
from webdyno.comparison.bias import bounds_of
from webdyno.core.metrics import METRICS
from webdyno.core.readings import DatabaseUse
from webdyno.core.records import SlotRecord

RATE = METRICS["throughput_rps"]
POSTS = {"path": "/notes", "method": "POST"}


def growing(
    *, bytes_per_slot: int = 20_000, slower_per_slot: float = 0.03, rows: int = 400
) -> Callable[[SlotRecord], SlotRecord]:
    """Make a change of slots: the database grows so in each, and the throughput falls."""

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
        return slowed(slot, slower_per_slot).model_copy(update={"readings": readings})

    return change


def slowed(slot: SlotRecord, per_slot: float) -> SlotRecord:
    """Give it with fewer responses the later it comes in its round, for the same CPU time."""
    completed = round(20_000 * (1 - per_slot * slot.slot + 0.001 * (slot.round % 3)))
    requests = slot.load.requests.model_copy(update={"completed": completed})
    return slot.model_copy(update={"load": slot.load.model_copy(update={"requests": requests})})


def at_a_price(slot: SlotRecord) -> SlotRecord:
    """Give it with CPU time in proportion to its responses: a request costs the same."""
    cpu_s = (slot.load.requests.completed + slot.load.requests.drained) * 20e-6
    use = {"cpu_user_s": cpu_s, "cpu_sys_s": 0.0}
    return slot.model_copy(update={"servers": slot.servers.model_copy(update=use)})


def reported(change: Callable[[SlotRecord], SlotRecord]) -> Mapping[str, tuple[str, str]]:
    """Give what is reported, and what to do, by rule."""
    found = found_in(run_with(change))
    rules = ("state-grows", "trend")
    return {it: (found[it].what, found[it].fix) for it in rules if it in found}


def test_a_table_that_grows_and_costs_more_is_reported_with_its_remedy() -> None:
    found = reported(growing())
    assert set(found) == {"state-grows"}
    what, fix = found["state-grows"]
    assert "each slot of a round costs" in what
    assert "more CPU per request than the one before (99.5% CI " in what
    assert "(400 rows in a slot, most of it in note, its database grows from" in what
    assert "state.reset=slot" in fix


def test_what_waits_and_costs_no_more_is_reported_by_its_throughput() -> None:
    what, _ = reported(lambda slot: at_a_price(growing()(slot)))["state-grows"]
    assert "its throughput falls by " in what


@pytest.mark.parametrize("bytes_per_slot", [0, 100])
def test_what_writes_nothing_explains_no_trend(bytes_per_slot: int) -> None:
    assert set(reported(growing(bytes_per_slot=bytes_per_slot, rows=0))) == {"trend"}


def test_rows_that_are_written_over_make_no_table_larger() -> None:
    what, _ = reported(growing(bytes_per_slot=0))["state-grows"]
    assert "(400 rows in a slot, most of it in log)" in what


def test_what_grows_and_costs_the_same_is_not_worth_a_word() -> None:
    assert not reported(growing(slower_per_slot=0.0))


def test_what_becomes_cheaper_only_settles() -> None:
    assert set(reported(growing(slower_per_slot=-0.03))) == {"trend"}


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_requests_that_write_where_no_database_shows(method: str) -> None:
    run = run_with(lambda slot: slowed(slot, 0.03))
    given = run.head.experiment.model_dump(exclude={"load": {"paths"}})
    given["requests"] = [POSTS | {"method": method}]
    experiment = type(run.head.experiment).model_validate(given)
    found = found_in(replace(run, head=run.head.replace(experiment=experiment)))
    if method == "GET":
        assert "state-grows" not in found
        return
    assert "its requests may write (POST /notes)" in found["state-grows"].what
    assert "state.before_round" in found["state-grows"].fix


def test_a_database_that_is_put_back_before_each_slot_explains_no_trend() -> None:
    run = run_with(growing())
    state = run.head.experiment.state.replace(reset="slot")
    experiment = run.head.experiment.replace(state=state)
    found = found_in(replace(run, head=run.head.replace(experiment=experiment)))
    assert "state-grows" not in found


@pytest.mark.parametrize(("last", "fix"), [(6_000, "--rate"), (8_000, "slot_s=2")])
def test_rows_of_a_slot_that_weigh_much_ask_for_more_rows_and_no_longer_slots(
    last: int, fix: str
) -> None:
    def change(slot: SlotRecord) -> SlotRecord:
        thirds = (7_000, 7_000, last + 20 * (slot.round % 3))
        return with_thirds(growing(slower_per_slot=0.0)(slot), thirds)

    assert fix in found_in(run_with(change))["slot-trend"].fix


def test_what_both_have_of_it_cancels_and_what_one_has_more_counts() -> None:
    grown = run_with(growing())
    both = replace(
        grown,
        records=[
            growing()(it) if isinstance(it, SlotRecord) and it.variant == "nginx" else it
            for it in grown.records
        ],
    )
    (bound,) = bounds_of(grown.data, "apache", "nginx", RATE)
    assert bound.cause == "state-grows"
    assert bound.up == bound.down > 0.05
    assert not bounds_of(grown.data, "nginx", "apache", RATE)
    assert not bounds_of(both.data, "apache", "nginx", RATE)
