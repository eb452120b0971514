"""What a page says to do where the answer is open or invalid."""

from pathlib import Path

import pytest

from report import comparisons, runs
from webdyno.report.headlines import what_to_do, without_advice

RUN = Path("/runs/a-run")


def test_an_open_answer_says_what_would_decide_and_types_it() -> None:
    view = runs.seen(comparisons.inconclusive())
    ((_, said),) = what_to_do(view, RUN)
    assert said.startswith("About 29 more rounds (4 minutes) should decide")
    assert f"resume {RUN} --time 4m`." in said
    left = [term for answer in without_advice(view.answers) for term, _ in answer.facts]
    assert "Known" in left
    assert "Do" not in left


def test_an_invalid_answer_says_what_to_change() -> None:
    ((_, said),) = what_to_do(runs.seen(comparisons.invalid()), RUN)
    assert said.startswith("Name a page that all variants have, by --path or --site")


@pytest.mark.parametrize("make", [comparisons.decided, comparisons.interference])
def test_an_answer_leaves_nothing_to_do(make: runs.Make) -> None:
    assert not [*what_to_do(runs.seen(make()), RUN)]
