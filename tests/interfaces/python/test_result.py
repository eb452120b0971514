"""What Python is given of a run: values, tables, charts, HTML; nothing is measured."""

import sys
from pathlib import Path

import pytest

import webdyno
from builders import SimulatedRun
from report import comparisons, questions, runs, sweeps
from webdyno import (
    CapacityResult,
    GateAnswer,
    GateRun,
    OperationError,
    Result,
    Rows,
    UserError,
    Verdict,
    open_run,
)
from webdyno.core.registry import python_calls


def opened(run: SimulatedRun, folder: Path) -> Result:
    run.stored(folder / "run")
    return open_run(folder / "run")


def test_the_answer_is_the_report_s(tmp_path: Path) -> None:
    result = opened(comparisons.decided(), tmp_path)
    view = runs.seen(comparisons.decided())
    (judgement,) = (point.judgement for point in view.points)
    assert result.verdict is Verdict.FASTER
    assert result.headline == judgement.headline
    assert result.ratio == judgement.comparisons[0].decisive
    assert result.warnings == judgement.warnings
    assert repr(result).startswith(f"<Result {tmp_path}/run: nginx")


def test_the_ratio_is_the_one_that_the_verdict_rests_on(tmp_path: Path) -> None:
    result = opened(comparisons.interference(), tmp_path)
    assert result.comparison.worst_case
    assert result.ratio == result.comparison.worst_case != result.comparison.ratio


def test_tables_are_plain_rows(tmp_path: Path) -> None:
    result = opened(comparisons.decided(), tmp_path)
    row = next(it for it in result.ratios() if it["metric"] == "throughput_rps")
    assert (row["variant"], row["baseline"], row["confidence"]) == ("nginx", "apache-event", 0.95)
    assert row["low"] < row["ratio"] < row["high"]
    values = [it for it in result.values() if it["metric"] == "throughput_rps"]
    assert [it["variant"] for it in values] == ["apache-event", "nginx"]
    assert {it["unit"] for it in values} == {"req/s"}
    slots = result.slots()
    assert {tuple(it) for it in slots} == {tuple(slots[0])}
    assert "load.requests.completed" in slots[0]


def test_a_run_may_be_held_against_an_earlier_one(tmp_path: Path) -> None:
    result = opened(comparisons.decided(), tmp_path)
    (same,) = result.since(result).points
    assert same.levels == {}
    assert same.comparison.mismatches == []


def test_points_have_answers_of_their_own(tmp_path: Path) -> None:
    result = opened(sweeps.connections(), tmp_path)
    assert len(result.points) > 1
    with pytest.raises(UserError, match=r"points, each with an answer of its own: see \.points"):
        result.verdict  # noqa: B018
    levels = {row["load.connections"] for row in result.ratios()}
    assert len(levels) == len(result.points)
    assert result.headline


def test_without_a_ratio_it_is_said_why(tmp_path: Path) -> None:
    result = opened(comparisons.one_round(), tmp_path)
    with pytest.raises(UserError, match="has no ratio"):
        result.ratio  # noqa: B018


def test_a_search_has_capacities(tmp_path: Path) -> None:
    result = opened(questions.capacities(), tmp_path)
    assert isinstance(result, CapacityResult)
    assert set(result.capacities) == set(result.head.experiment.variants)
    assert all(it.low <= it.estimate <= it.high for it in result.capacities.values())


def test_a_gate_has_an_answer_and_claims(tmp_path: Path) -> None:
    result = opened(questions.gated(), tmp_path)
    assert isinstance(result, GateRun)
    gate = result.gate
    assert gate.answer in GateAnswer
    assert gate.passed is (gate.answer is GateAnswer.PASS)
    assert {"metric", "worse", "low", "high", "tolerance"} <= set(gate.claims()[0])
    assert str(gate.answer) in gate._repr_html_()


def test_charts_are_the_report_s_and_stand_alone(tmp_path: Path) -> None:
    result = opened(comparisons.decided(), tmp_path)
    chart = result.chart()
    assert chart.name == "ratios"
    assert "nginx ÷ apache-event" in chart.description
    assert chart.save(tmp_path / "c.svg").read_text() == chart.svg
    assert chart.save(tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(UserError, match=r"written as \.svg or \.png"):
        chart.save(tmp_path / "c.jpg")
    with pytest.raises(UserError, match=r"there is no chart named 'x'; there are .*ratios"):
        result.chart("x")


def test_a_notebook_shows_text_that_others_wrote_as_text(tmp_path: Path) -> None:
    shown = opened(comparisons.hostile(), tmp_path)._repr_html_()
    assert "<script" not in shown
    assert "<table>" in shown
    assert "&lt;" in shown
    rows = Rows([{"<b>": "<i>"}] * 70)
    assert "<td>&lt;i&gt;</td>" in rows._repr_html_()
    assert "10 more rows" in rows._repr_html_()


def test_tables_of_other_libraries_are_given_where_they_are_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(OperationError, match="takes pandas"):
        Rows().to_pandas()
    with pytest.raises(OperationError, match="takes pyarrow"):
        Rows().to_arrow()


def test_all_public_names_are_there_and_documented() -> None:
    for name in webdyno.__all__:
        found = getattr(webdyno, name)
        assert found.__doc__, name
    assert set(webdyno.__all__) <= set(dir(webdyno))
    assert python_calls().keys() < set(webdyno.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        webdyno.nothing  # noqa: B018
