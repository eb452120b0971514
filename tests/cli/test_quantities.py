"""Lengths of time on the command line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webdyno.cli.quantities import UNITS_S, parse_duration_s
from webdyno.model.mistake import Mistake


@given(st.integers(1, 10**6), st.sampled_from(sorted(UNITS_S)))
def test_number_and_unit_multiply(number: int, unit: str) -> None:
    assert parse_duration_s(f"{number}{unit}", "--budget") == pytest.approx(number * UNITS_S[unit])


@pytest.mark.parametrize("text", ["", "s", "-5s", "0s", "5 weeks", "nan", "1e3s", "٣s"])
def test_anything_else_is_refused_with_the_flag_and_examples(text: str) -> None:
    with pytest.raises(Mistake, match=r"--budget .*90s"):
        parse_duration_s(text, "--budget")
