"""Quantities that stand alone on the command line."""

import pytest

from webdyno.core.errors import UserError
from webdyno.interfaces.cli.flags import parse_duration_s, parse_size


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("1.5m", 90), ("2h", 7200), ("7", 7)])
def test_lengths_of_time(text: str, seconds: float) -> None:
    assert parse_duration_s(text, "--time") == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "s", "-5s", "5 weeks", "nan", "1e3s", "٣s"])
def test_anything_else_is_refused_with_the_flag_and_examples(text: str) -> None:
    with pytest.raises(UserError, match=r"--time .*look like 90s"):
        parse_duration_s(text, "--time")


@pytest.mark.parametrize("text", ["0s", "900000h"])
def test_a_length_out_of_bounds_is_refused_with_them(text: str) -> None:
    with pytest.raises(UserError, match=r"--time .*more than 0 s and at most 720 h"):
        parse_duration_s(text, "--time")


def test_sizes_are_read_like_those_of_files() -> None:
    assert parse_size("10KB", "--body") == 10_000
    with pytest.raises(UserError, match=r"--body big: .*512MB"):
        parse_size("big", "--body")
