"""How the times of a run were found, and how much of its time counted."""

import csv
from io import StringIO

import pytest

from report import runs
from webdyno.judge.usage import counting_share
from webdyno.model.records import BlockRecord, SlotRecord
from webdyno.report.summary import summary_csv


def test_the_share_of_time_in_windows_that_count() -> None:
    records = runs.decided().records
    measured = [it for it in records if isinstance(it, SlotRecord) and it.phase == "measure"]
    windows_s = sum(it.load.measured_s for it in measured)
    blocks_s = sum(it.took_s for it in records if isinstance(it, BlockRecord))
    assert counting_share([(records, [])]) == pytest.approx(windows_s / blocks_s)
    pilots_s, blocks, measured_anew = 5.0, 8, 2
    assert counting_share([(runs.piloted().records, [])]) == pytest.approx(
        windows_s * (blocks - measured_anew) / blocks / (blocks_s + pilots_s)
    )


def test_time_of_slots_left_out_does_not_count() -> None:
    judgement = runs.seen(runs.invalid()).points[0].judgement
    assert judgement.left_out
    share = counting_share([(runs.invalid().records, [])])
    less = counting_share([(runs.invalid().records, judgement.left_out)])
    assert share is not None
    assert (less or 0.0) < share


def test_points_are_counted_one_by_one() -> None:
    records = runs.decided().records
    assert counting_share([(records, [])] * 2) == counting_share([(records, [])])


def test_before_the_first_block_there_is_no_share() -> None:
    assert counting_share([(runs.no_block().records, [])]) is None


def test_cold_figures_and_times_are_in_the_table() -> None:
    rows = list(csv.DictReader(StringIO(summary_csv(runs.seen(runs.piloted())))))
    found = {(it["metric"], it["arm"]): it["estimate"] for it in rows if it["kind"] == "pilot"}
    assert found["cold_first_answer_s", "nginx"] == "0.071"
    assert found["pilot_period_s", "apache-event"] == "0.6"
    assert ("pilot_period_s", "nginx") not in found
