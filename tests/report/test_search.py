"""What a search for better settings has, before it was judged."""

import tomllib

import pytest
from rich.cells import cell_len

from report import questions
from report.approved import assert_as_approved
from report.in_terminal import in_terminal
from webdyno.core.setting import TunedVariant, TuningStep
from webdyno.questions.tune.show import MOST_STEPS, search_document, settings_toml

NGINX, NODE = questions.tuned().head.experiment.tuning


def printed(*tuning: TunedVariant, width: int = 80) -> str:
    return in_terminal(search_document(tuning), width)


@pytest.mark.parametrize("width", [80, 100])
def test_a_search_without_its_final_run_reads_as_it_was_last_approved(width: int) -> None:
    assert_as_approved(f"search-{width}", printed(NGINX, NODE, width=width))


@pytest.mark.parametrize("width", [60, 80, 200])
def test_lines_are_never_longer_than_the_terminal_or_100_columns(width: int) -> None:
    lines = printed(NGINX, NODE, width=width).splitlines()
    assert max(map(cell_len, lines)) <= min(width, 100)


def test_a_search_without_any_round_says_so() -> None:
    began = NODE.model_copy(
        update={"used_s": 0.0, "tried": 0, "rounds": 0, "measurements": 0, "steps": []}
    )
    said = printed(began)
    assert "0 combinations tried in 0 rounds, 0 measurements" in said
    assert "nothing better than the default" in said
    assert "Best so far" not in said


def test_of_a_long_search_the_last_batches_with_something_better_are_drawn() -> None:
    steps = [TuningStep(used_s=10.0 * n, gain=1 + n // 2 / 100) for n in range(1, 61)]
    said = printed(NGINX.model_copy(update={"steps": steps}))
    drawn = [line for line in said.splitlines() if "after" in line]
    assert len(drawn) == MOST_STEPS
    assert "1.30×" in drawn[-1]


def test_a_best_that_proved_to_be_worse_than_the_default_has_no_bar() -> None:
    steps = [TuningStep(used_s=10.0, gain=1.2), TuningStep(used_s=20.0, gain=1.0)]
    drawn = printed(NGINX.model_copy(update={"steps": steps})).splitlines()
    assert next(it for it in drawn if "after 20 s" in it).rstrip().endswith("1.00×")


def test_settings_are_lines_that_can_be_pasted_whatever_a_side_is_called() -> None:
    found = {"workers": 4, "mode": 'a "b"', "share": 0.1234567, "cache": True}
    tuned = NGINX.model_copy(update={"name": "rev:v1.2 again", "settings": found})
    pasted = tomllib.loads(settings_toml(tuned))
    assert pasted["variants"]["rev:v1.2 again"]["settings"] == found | {"share": 0.123457}
