"""How the times of a run were found, and how much of its time counted."""

import csv
from io import StringIO

import pytest

from report import comparisons, runs
from webdyno.core.records import RoundRecord, SlotRecord
from webdyno.report.exports import summary_csv
from webdyno.validity import counting_share, excluded_slots, used_s


def test_the_share_of_time_in_windows_that_count() -> None:
    data = comparisons.decided().data
    measured = [it for it in data.records if isinstance(it, SlotRecord) and it.phase == "measure"]
    windows_s = sum(it.load.measured_s for it in measured)
    rounds_s = sum(it.took_s for it in data.records if isinstance(it, RoundRecord))
    assert counting_share([data]) == pytest.approx(windows_s / rounds_s)
    pilots_s, rounds, measured_again = 5.0, 8, 2
    assert counting_share([comparisons.piloted().data]) == pytest.approx(
        windows_s * (rounds - measured_again) / rounds / (rounds_s + pilots_s)
    )


def test_time_of_slots_excluded_does_not_count() -> None:
    data = comparisons.invalid().data
    assert excluded_slots(data)
    windows_s = sum(slot.load.measured_s for slot in data.slots)
    assert (counting_share([data]) or 0.0) < windows_s / used_s(data)


def test_points_are_counted_one_by_one() -> None:
    data = comparisons.decided().data
    assert counting_share([data] * 2) == counting_share([data])


def test_before_the_first_round_there_is_no_share() -> None:
    assert counting_share([comparisons.no_round().data]) is None


def test_cold_figures_and_times_are_in_the_table() -> None:
    rows = list(csv.DictReader(StringIO(summary_csv(runs.seen(comparisons.piloted())))))
    found = {(it["metric"], it["variant"]): it["estimate"] for it in rows if it["kind"] == "pilot"}
    assert found["cold_first_response_s", "nginx"] == "0.071"
    assert found["pilot_period_s", "apache-event"] == "0.6"
    assert ("pilot_period_s", "nginx") not in found
