"""What is said of a run while it goes on."""

from pathlib import Path

import pytest

from builders import SimulatedRun, SimulatedVariant, simulated_run
from report import comparisons, runs, sweeps
from webdyno.comparison import question_of
from webdyno.core.records import Record, RoundRecord, SlotRecord
from webdyno.core.sweep import Point
from webdyno.evidence.point_data import PointData
from webdyno.interfaces.cli.report import diff, report
from webdyno.launch.caller import LineProgress, round_name, slot_words
from webdyno.media.console import notify


def so_far(run: SimulatedRun) -> str:
    return question_of(run.head.experiment).so_far(run.data)


def test_a_line_has_the_figures_of_the_report() -> None:
    words = so_far(comparisons.decided())
    (answer,) = runs.seen(comparisons.decided()).answers
    ratio, _, interval = words.removeprefix("throughput: nginx ").partition("× ")
    assert f"{ratio}×" in answer.sentence
    assert interval.strip("()") in answer.sentence


def test_why_there_is_no_ratio_yet() -> None:
    assert so_far(comparisons.one_round()) == "(first CI after round 2)"
    wrong = SimulatedVariant(wrong_status=404)
    late = simulated_run({"nginx": comparisons.NGINX, "apache": wrong}, rounds=14)
    assert so_far(late) == ("no ratio yet, 0 valid rounds of 14: most slots broke the rule non-2xx")


def test_failures_and_requests_that_were_sent_once_more_are_reported_of_a_slot() -> None:
    slot = next(it for it in comparisons.decided().records if isinstance(it, SlotRecord))
    assert slot_words(slot).endswith("busy")
    requests = slot.load.requests.model_copy(update={"retried": 2})
    load = slot.load.model_copy(update={"requests": requests})
    reported = slot_words(slot.model_copy(update={"load": load}))
    assert reported.endswith("busy, 2 requests retried")


def test_a_point_is_named_by_its_levels_alone() -> None:
    there = Point(number=3, levels={"load.connections": 64, "load.keepalive": "always"})
    assert round_name(there, 2) == "64, always · round 2"
    assert round_name(Point(number=0, levels={}), 2) == "round 2"


def test_a_line_per_round_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    run = sweeps.hostile_markup()
    records: list[Record] = [record for record in run.records if record.point == 0]
    (this_round, *_) = [record for record in records if isinstance(record, RoundRecord)]
    with LineProgress(run.head, notify) as progress:
        progress.round_begins(Point(number=0, levels={"load.paths": ["/[/].txt"]}), 1, 10)
        progress.slot_begins("[/]", "measure")
        progress.round_ends(this_round, PointData.of(run.head, records))
    reported = capsys.readouterr().err.splitlines()
    assert reported[0] == "each line: paths · round"
    assert reported[1].startswith("/[/].txt · round 1  ")
    assert "[/]" in reported[1]


def test_what_takes_a_while_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("before", "after"):
        comparisons.decided().stored(tmp_path / name)
    report(tmp_path / "before")
    assert "takes a while" not in capsys.readouterr().err
    monkeypatch.setattr("webdyno.interfaces.cli.result.LONG_BYTES", 1)
    report(tmp_path / "before")
    reported = capsys.readouterr().err
    assert "reading and judging" in reported
    assert "drawing" in reported
    diff(tmp_path / "before", tmp_path / "after")
    assert "reading and judging" in capsys.readouterr().err
