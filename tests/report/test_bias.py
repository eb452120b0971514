"""How far off a comparison can be, in words."""

from dataclasses import replace

import pytest

from report import comparisons, runs
from webdyno.comparison.sentences import sentence
from webdyno.core.base import Interval
from webdyno.core.format import between
from webdyno.core.judgement import Bias, Comparison
from webdyno.report.words import bias_sentences, ratio_and_interval, worst_case_words


def comparison(**update: object) -> Comparison:
    found = runs.seen(comparisons.decided()).points[0].judgement.comparisons[0]
    clean: dict[str, object] = {"worst_case": None, "biases": [], "limited_by": {}}
    return found.model_copy(update=clean | update)


def test_nothing_is_said_without_interference() -> None:
    assert list(bias_sentences(comparison())) == []


def test_both_intervals_and_the_causes_are_reported() -> None:
    said = " ".join(
        bias_sentences(
            comparison(
                worst_case=Interval(low=1.8, estimate=1.91, high=2.01),
                biases=[
                    Bias(cause="other-work", variant="nginx", too_low=1.0001, too_high=1.0),
                    Bias(cause="steal", variant="apache-event", too_low=1.013, too_high=1.0),
                    Bias(cause="client-limited", variant="nginx", too_low=None, too_high=1.0),
                ],
            )
        )
    )
    assert "worst case 1.80–2.01×" in said
    assert "nginx by an unknown share too low (client-limited); apache-event at most 1.3%" in said
    assert "other-work" not in said


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (3.05, 1e200, "from 3.05×"),
        (1e-200, 0.312, "up to 0.312×"),
        (1e-200, 1e200, "unknown"),
        (3.05, 3.21, "3.05–3.21×"),
    ],
)
def test_an_end_that_is_not_bounded_is_no_figure(low: float, high: float, said: str) -> None:
    assert between(Interval(low=low, estimate=(low * high) ** 0.5, high=high)) == said


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [(3.05, 1e200, "≥ 3.05"), (1e-200, 0.312, "≤ 0.312"), (1e-200, 1e200, "any")],
)
def test_in_a_table_there_is_room_for_little(low: float, high: float, said: str) -> None:
    worst_case = Interval(low=low, estimate=(low * high) ** 0.5, high=high)
    assert worst_case_words(comparison(worst_case=worst_case)) == said
    assert worst_case_words(comparison()) == ""


def test_a_ratio_that_is_a_bound_is_marked() -> None:
    assert ratio_and_interval(comparison(limited_by={"nginx": "client"}))[0].startswith("≥ ")
    assert ratio_and_interval(comparison(limited_by={"apache-event": "link"}))[0].startswith("≤ ")
    both = comparison(limited_by={"nginx": "link", "apache-event": "link"})
    assert not ratio_and_interval(both)[0].startswith(("≥", "≤"))


def test_a_run_with_bounds_is_not_called_free_of_interference() -> None:
    view = runs.seen(comparisons.decided())
    assert view.without_interference
    moved = comparison(biases=[Bias(cause="steal", variant="nginx", too_low=1.01, too_high=1.0)])
    point = view.points[0]
    assert point.deciding
    rows = [replace(row, comparison=row.comparison and moved) for row in point.deciding.rows]
    deciding = replace(point.deciding, rows=rows)
    assert not replace(view, points=[replace(point, deciding=deciding)]).without_interference


def test_headline_and_side_table_have_the_interval_on_which_verdicts_rest() -> None:
    found = runs.seen(comparisons.interference()).points[0].judgement.comparisons[0]
    assert found.worst_case
    wide = between(found.worst_case)
    assert f"95% CI {wide})" in sentence(found)
    assert f"{worst_case_words(found)}×" == wide
