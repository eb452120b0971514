"""What terminal and page both show, put in order: a plain run is a sweep of one point."""

import pytest

from builders import SimulatedRun, SimulatedVariant, simulated_run
from report import comparisons, runs, sweeps
from webdyno.core.judgement import QuantileRange, VariantValue, Verdict
from webdyno.report.brief import why_no_figures
from webdyno.report.words import within_a_round


def test_a_plain_run_is_a_sweep_of_one_point() -> None:
    view = runs.seen(comparisons.decided())
    assert not view.several
    assert [answer.tone for answer in view.answers] == [Verdict.FASTER]
    assert view.sentences == []
    assert view.points[0].deciding == view.deciding[0]
    assert "throughput_rps" not in {table.metric.name for table in view.points[0].alongside}


def test_the_verdicts_name_is_not_said_twice() -> None:
    (answer,) = runs.seen(comparisons.decided()).answers
    assert answer.sentence.startswith("1.91× the throughput of apache-event")
    assert "faster" not in answer.sentence


def test_where_the_client_was_the_limit_of_both_the_answer_is_what_the_run_was_judged_by() -> None:
    variants = {
        "nginx": SimulatedVariant(busy=0.97),
        "apache": SimulatedVariant(server_cpu_us=40, busy=0.97),
    }
    view = runs.seen(simulated_run(variants, rounds=8))
    (answer,) = view.answers
    assert answer.tone is view.points[0].judgement.verdict is Verdict.SLOWER
    assert "oth apache and nginx were client-limited" in answer.further[0]


def test_each_variant_that_was_asked_about_has_an_answer() -> None:
    view = runs.seen(comparisons.several_variants())
    asked = [
        found for found in view.points[0].judgement.comparisons if found.metric == "throughput_rps"
    ]
    assert len(view.answers) == len([found for found in asked if not found.same_variant])


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        ([(6_100, 6_500), (6_200, 6_540), (5_000, 9_000)], "6.10–6.54 ms"),
        ([(6_100, None), (6_200, None), (5_000, 9_000)], "above 6.10 ms"),
        ([(None, None)], "too few responses in a round"),
        ([], ""),
    ],
)
def test_a_percentile_of_a_typical_round(
    ends: list[tuple[float | None, float | None]], said: str
) -> None:
    ranges = [QuantileRange(low=low, high=high) for low, high in ends]
    value = VariantValue(
        variant="a", metric="latency_p99_us", by_round=[], interval=None, within_rounds=ranges
    )
    assert within_a_round(value) == said


def test_warnings_of_several_points_are_reported_once() -> None:
    view = runs.seen(sweeps.broken_point())
    groups = {group.name: group for group in view.warnings}
    assert groups["wrong-status"].tone is Verdict.INVALID
    assert groups["wrong-status"].lines[0] == (
        "nginx at 1 of 6 points (connections = 1, keepalive = always)"
    )
    assert groups["wrong-status"].lines[-1].startswith("for example: ")
    assert view.counts[Verdict.INVALID] == 1


def test_at_one_point_a_warning_says_what_was_found_and_no_place() -> None:
    warnings = runs.seen(comparisons.invalid()).warnings
    assert warnings
    assert all(" point" not in line for warning in warnings for line in warning.lines)
    assert any("404" in line for warning in warnings for line in warning.lines)


def test_a_factor_with_a_single_level_is_a_plain_run() -> None:
    view = runs.seen(sweeps.sweep({"load.connections": [64]}))
    assert not view.several
    assert dict(view.how)["Varied"] == "connections: 64"


def test_rounds_in_which_no_slot_counts_are_not_reported_as_none() -> None:
    wrong = SimulatedVariant(wrong_status=404)
    view = runs.seen(simulated_run({"nginx": wrong, "apache": wrong}, rounds=6))
    assert view.deciding == []
    assert (
        why_no_figures(view.points)
        == "No slot counts for what decides: each broke a rule, as the warnings say."
    )
    assert "ended before" in why_no_figures(runs.seen(comparisons.no_round()).points)


def test_nothing_measured_is_no_error() -> None:
    run = sweeps.two_factors()
    view = runs.seen(SimulatedRun(run.head, []))
    assert view.deciding == []
    assert [point.deciding for point in view.points] == [None] * 6
