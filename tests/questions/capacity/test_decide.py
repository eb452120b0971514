"""Searches for the capacity of one variant, judged: there is nothing to compare it with."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from builders import point_data
from comparison.searches import ROUNDS, Variant, searched
from webdyno.comparison import decide, judge, judge_sweep, question_of
from webdyno.core.experiment import Experiment
from webdyno.core.judgement import Verdict
from webdyno.core.records import RoundRecord
from webdyno.evidence.point_data import PointData
from webdyno.report.result_page import write_report
from webdyno.report.view import run_view


def test_the_answer_is_a_rate_with_its_interval() -> None:
    run = searched(nginx=Variant(15_000))
    judged = judge(run.data)
    assert judged.verdict is Verdict.MEASURED
    assert judged.headline.startswith("nginx can take 14,")
    assert "req/s (95% CI " in judged.headline
    assert judged.headline.endswith(f"{ROUNDS} rounds")
    assert judged.comparisons == []
    assert [it.variant for it in judged.saturation] == ["nginx"]


def test_beyond_the_client_it_is_at_least() -> None:
    run = searched(nginx=Variant(50_000, client_rps=30_000))
    headline = judge(run.data).headline
    assert headline.startswith("nginx can take at least 29,")
    assert " with p99<50ms, where it was client-limited, " in headline


def test_where_no_rate_holds_there_is_no_answer() -> None:
    run = searched(nginx=Variant(15_000, holds=False))
    assert judge(run.data).verdict is Verdict.INVALID


def test_it_stops_when_the_capacity_is_known_or_time_is_used_up() -> None:
    run = searched(nginx=Variant(15_000))
    ends = [at for at, it in enumerate(run.records, 1) if isinstance(it, RoundRecord)]
    experiment = run.head.experiment
    exact = experiment.model_copy(
        update={"measure": experiment.measure.model_copy(update={"precision": 0.0001})}
    )
    rough = experiment.model_copy(
        update={"measure": experiment.measure.model_copy(update={"precision": 0.1})}
    )
    few = run.records[: ends[experiment.measure.min_rounds - 2]]
    assert decide(point_data(few, rough), 0.0) is None
    known = decide(point_data(run.records, rough), 0.0)
    assert known
    assert (known.reason, known.why) == ("precision", "the capacity is known to ±10%")
    assert decide(point_data(run.records, exact), 0.0) is None
    late = decide(point_data(run.records, exact), 1e6)
    assert late
    assert late.reason == "budget"


def test_after_too_few_rounds_it_is_inconclusive() -> None:
    run = searched(nginx=Variant(15_000))
    ends = [at for at, it in enumerate(run.records, 1) if isinstance(it, RoundRecord)]
    assert judge(PointData.of(run.head, run.records[: ends[0]])).verdict is Verdict.INCONCLUSIVE
    assert judge(PointData.of(run.head, [])).verdict is Verdict.INCOMPLETE
    question = question_of(run.head.experiment)
    first = point_data(run.records[: ends[0]], run.head.experiment)
    assert question.so_far(first).endswith("(first CI after round 2)")
    assert question.so_far(run.data).startswith("capacity 14,")


def test_the_report_shows_of_it(tmp_path: Path) -> None:
    run = searched(nginx=Variant(15_000))
    view = run_view(run.whole, judge_sweep(run.whole))
    assert [it.tone for it in view.answers] == [Verdict.MEASURED]
    write_report(tmp_path, view)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "nginx can take 14," in page


def test_without_an_objective_one_variant_is_too_few() -> None:
    run = searched(nginx=Variant(15_000))
    reported = run.head.experiment.model_dump(exclude_unset=True) | {
        "capacity": None,
        "measure": {},
    }
    with pytest.raises(ValidationError, match="needs two variants at least"):
        Experiment.model_validate(reported)
